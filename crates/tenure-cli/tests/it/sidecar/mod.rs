//! `tenure node --upstream`: a program beside every node, and only the leader's gets writes. Behind real nginx
//! and HAProxy, and with programs in other languages.

mod balancer;
mod clients;
mod cluster;
mod drill;
mod failovers;
mod ledger;
mod services;
mod upstream;
