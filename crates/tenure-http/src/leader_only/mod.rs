//! Requests that only the leader may answer.
//!
//! [`LeaderOnlyLayer`] goes around any tower service: axum, hyper, tonic. On the leader a request passes,
//! with the [`Term`](tenure::Term) and a [`Pass`](tenure::Pass) in its extensions, and `Tenure-Term` on the
//! response. Elsewhere it is refused (503), sent on (307) or forwarded, as the [`Mode`] says.
//!
//! | file | what it is |
//! |---|---|
//! | `layer` | the layer, and the service that it makes |
//! | `future` | a request on its way through |
//! | `answer` | what is said to those who are not let through |
//! | `rules` | which requests are for the leader only |
//! | `origin` | a node's address, looked at before it is used |
//! | `headers` | the names of our headers, and what may not travel on |
//! | `forward` | the way to the leader, from a node that is not |
//! | `upstream` | a program beside this node, behind the same layer: the reverse proxy |
//! | `wire` | HTTP/1.1 connections that are used again, and what was certainly not sent |
//! | `prompt` | TCP without needless waits |
//! | `tunnel` | what follows an upgrade: WebSockets |
//!
//! # What is promised
//!
//! * The check is made by the clock, at the moment when the request is handed to the service; by the
//!   reverse proxy once more, when the connection to the program is there.
//! * While a request is worked on, a lease that is given up willingly is not given back: the successor
//!   leads when the response's head is out, or after the node's grace. Whoever works on after that
//!   (a stream, a socket) keeps the [`Pass`](tenure::Pass).
//! * No request is sent twice. Forwarding tries again only what certainly was not sent.
//! * A request goes through a node at most once, so nodes that each think the other leads end in a 503.

mod answer;
pub(crate) mod body;
mod forward;
mod future;
pub mod headers;
mod layer;
mod origin;
mod prompt;
mod rules;
mod tunnel;
mod upstream;
pub(crate) mod wire;

pub use body::{Body, BoxError};
pub use forward::Forwarder;
pub use future::ResponseFuture;
pub use layer::{LeaderOnly, LeaderOnlyLayer, Mode};
pub use origin::{Origin, OriginError};
pub use rules::Rules;
pub use upstream::Upstream;
pub use wire::Limits;
