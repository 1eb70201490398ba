//! Real servers, started privately: on a free loopback port, in a temporary directory, gone when dropped.
//! A server that is already there is never touched.
//!
//! A server that is not installed fails the test loudly, and says what to install.

mod clock;
mod disk;
mod etcd;
mod home;
mod mariadb;
mod pgbouncer;
mod postgres;
mod process;
mod template;
mod zookeeper;

pub use disk::Disk;
pub use etcd::Etcd;
pub use mariadb::MariaDb;
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use process::free_port;
pub(crate) use process::succeed;
pub use zookeeper::{Connection, ZooKeeper};
