//! `tenure run` on ZooKeeper: the very same tests as on a SQLite file.

#[path = "../run/crashes.rs"]
mod crashes;
#[path = "../run/ends.rs"]
mod ends;
#[path = "../run/losses.rs"]
mod losses;
#[path = "../run/ordinary.rs"]
mod ordinary;
#[path = "../run/partitions.rs"]
mod partitions;
#[path = "../run/place.rs"]
mod place;
#[path = "../run/stage.rs"]
mod stage;
#[path = "../run/witness.rs"]
mod witness;

/// The store of these tests.
const STORE: place::Kind = place::Kind::ZooKeeper;
