//! Elections in a MySQL or MariaDB database.
//!
//! Every verb is one call of one procedure in the database: one statement, one round trip, one
//! transaction. What it has in common with other databases is in `tenure-sql`: the verbs, their answers,
//! connections.
//!
//! | file | what it is |
//! |---|---|
//! | `tables.sql` | tables and views, for people too |
//! | `verbs.sql`, `parts.sql` | the rules of the contract, as procedures; and what they are made of |
//! | `ledger.sql` | the same for partitions: who owns which of them |
//! | `looks.sql` | procedures that only look, or wait for news |
//! | `triggers.sql` | what is refused to people who edit by hand |
//! | `grants.sql` | what a user needs who uses Tenure and does nothing else |
//! | `database` | what is particular to MySQL: how a procedure is called |
//! | `address` | the store URL: where the database is |
//! | `connect` | a connection: every one is opened there, and in the same way |
//! | `setup` | tables and procedures: made once, also when three nodes start at once |
//! | `news` | a connection that sleeps in the server until somebody wakes it up: hints, and never truth |
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

pub use database::MySql;
pub use fence::transaction;
/// The driver, in the version whose transactions [`transaction`] hands out.
pub use mysql_async;
pub use tenure_store::TransactionError;

/// Sessions and leases in a MySQL or MariaDB database: connects to `mysql://user@host/database`, and makes
/// Tenure's tables if there are none.
pub type MySqlStore = tenure_sql::SqlStore<MySql>;

/// Connects with the options that the application has for its own connections or pool, instead of a URL.
///
/// The connections are Tenure's own: see `docs/stores/mysql.md` for why a pool cannot be handed in. What is
/// Tenure's is in the URL, which names no host, such as `mysql:?namespace=shop`.
///
/// # Errors
/// As for [`MySqlStore::connect`].
pub async fn connect_with(
    options: &mysql_async::Opts,
    url: &tenure_store::StoreUrl,
) -> Result<MySqlStore, tenure_store::StoreError> {
    MySqlStore::with_database(MySql::configured(options, url)?, url.options.clone()).await
}
