//! Requests that only the leader may answer: the layer, the way to the leader, the program behind.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod elsewhere;
mod forwarding;
mod passing;
mod stage;
mod upstream;
