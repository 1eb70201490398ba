//! Requests that only the leader may answer: the layer, the way to the leader, the program behind.

mod elsewhere;
mod forwarding;
mod passing;
mod stage;
mod upstream;
