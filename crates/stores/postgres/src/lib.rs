//! Elections in a PostgreSQL database.
//!
//! Every verb is one call of one function in the database: one statement, one round trip, one
//! transaction. Nothing rests on a database session, so it is right behind a pool that hands connections
//! from one transaction to the next (PgBouncer in transaction mode).
//!
//! What it has in common with other databases is in `tenure-sql`: the verbs, their answers, connections.
//!
//! | file | what it is |
//! |---|---|
//! | `schema.sql` | tables and views for people, and the functions: the rules of the contract |
//! | `ledger.sql` | the same for partitions: who owns which of them |
//! | `grants.sql` | what a user needs who uses Tenure and does nothing else |
//! | `database` | what is particular to PostgreSQL |
//! | `address` | the store URL: where the database is, and in which schema |
//! | `tls` | encryption, as the driver wants it |
//! | `connect` | a connection: every one is opened there, and in the same way |
//! | `setup` | the schema: made once, also when three nodes start at once |
//! | `news` | LISTEN on a connection of its own: hints, and never truth |
//! | `examination` | what `tenure check` shows |
//! | `fence` | transactions of the application, which hold its lease |
//! | `error` | what each failure means for the caller |

mod address;
mod connect;
mod database;
mod error;
mod examination;
mod fence;
mod news;
mod setup;
mod tls;

pub use database::Postgres;
pub use fence::transaction;
pub use tenure_store::TransactionError;
/// The driver, in the version whose transactions [`transaction`] hands out.
pub use tokio_postgres;

/// Sessions and leases in a PostgreSQL database: connects to `postgres://user@host/database`, and makes
/// Tenure's schema if there is none.
pub type PostgresStore = tenure_sql::SqlStore<Postgres>;

/// Connects with the configuration that the application has for its own connections or pool, instead of a URL.
///
/// The connections are Tenure's own: see `docs/stores/postgres.md` for why a pool cannot be handed in. What is
/// Tenure's is in the URL, which names no host, such as `postgres:?schema=tenure&namespace=shop`.
///
/// # Errors
/// As for [`PostgresStore::connect`].
pub async fn connect_with(
    config: tokio_postgres::Config,
    url: &tenure_store::StoreUrl,
) -> Result<PostgresStore, tenure_store::StoreError> {
    PostgresStore::with_database(Postgres::configured(config, url)?, url.options.clone()).await
}
