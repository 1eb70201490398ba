//! `tenure run` on PostgreSQL: who waits, what the end of a program, a crash and a loss do and how work is divided, as on
//! a SQLite file. How a program is started and signalled is the same on every store, and is tested on that one.

#[path = "../run/crashes.rs"]
mod crashes;
#[path = "../run/ends.rs"]
mod ends;
#[path = "../run/hangs.rs"]
mod hangs;
#[path = "../run/losses.rs"]
mod losses;
#[path = "../run/partitions.rs"]
mod partitions;
#[path = "../run/place.rs"]
mod place;
#[path = "../run/stage.rs"]
mod stage;
#[path = "../run/turns.rs"]
mod turns;
#[path = "../run/witness.rs"]
mod witness;

/// The store of these tests.
const STORE: place::Kind = place::Kind::Postgres;
