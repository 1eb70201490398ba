//! Tenure over HTTP.
//!
//! | part | what it is |
//! |---|---|
//! | [`leader_only`] | requests that only the leader may answer: a tower layer, and a reverse proxy |
//! | [`Api`] | the API of a node: who leads, who is there, what has happened, probes, metrics |
//! | [`Server`] | a server for it, with limits, TLS and access control |
//! | `feed` | the history as it grows: read once, and handed to everybody who follows it |
//! | [`Worker`] | a node whose partitions a program beside it works on |
//! | [`Client`] | asks nodes, as their page does |
//! | [`Coordinator`] | a node that stands for an election and does nothing else: what `tenure node` runs |
//!
//! The API and its server come with the feature `server`, which is on by default.

mod client;
pub mod leader_only;
mod provider;

#[cfg(feature = "server")]
mod access;
#[cfg(feature = "server")]
mod api;
#[cfg(feature = "server")]
mod coordinator;
#[cfg(feature = "server")]
mod feed;
#[cfg(feature = "server")]
mod metrics;
#[cfg(feature = "server")]
mod problem;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod worker;

pub use client::{Client, NoAnswer};

#[cfg(feature = "server")]
pub use access::{Access, Token, TokenError};
#[cfg(feature = "server")]
pub use api::{Api, ApiSettings, Lease, description};
#[cfg(feature = "server")]
pub use coordinator::Coordinator;
#[cfg(feature = "server")]
pub use metrics::Metrics;
#[cfg(feature = "server")]
pub use problem::Problem;
#[cfg(feature = "server")]
pub use server::{Limits, Server, Tls, TlsError};
#[cfg(feature = "server")]
pub use worker::Worker;
