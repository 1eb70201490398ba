//! What every SQL store has to stand: faults, fencing, people, vandalism.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod common;

tenure_testkit::sql_suite!(common::Place);
