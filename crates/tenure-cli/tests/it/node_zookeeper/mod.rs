//! `tenure node` on ZooKeeper: the very same tests as on a SQLite file.

#[path = "../node/client.rs"]
mod client;
#[path = "../node/health.rs"]
mod health;
#[path = "../node/membership.rs"]
mod membership;
#[path = "../node/orders.rs"]
mod orders;
#[path = "../run/place.rs"]
mod place;
#[path = "../node/rows.rs"]
mod rows;
#[path = "../node/secrets.rs"]
mod secrets;
#[path = "../node/stage.rs"]
mod stage;
#[path = "../node/streams.rs"]
mod streams;

/// The store of these tests.
const STORE: place::Kind = place::Kind::ZooKeeper;
