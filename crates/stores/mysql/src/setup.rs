//! Tables and procedures: made once, also when three nodes start at once.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tenure_store::{Setup, StoreError};

use crate::address::Address;
use crate::connect::connect;
use crate::error::{NO_TRIGGERS, classify};

const VERSION: i32 = 10;
const TABLES: &str = include_str!("tables.sql");
const PARTS: &str = include_str!("parts.sql");
const VERBS: &str = include_str!("verbs.sql");
const LOOKS: &str = include_str!("looks.sql");
const LEDGER: &str = include_str!("ledger.sql");
const TRIGGERS: &str = include_str!("triggers.sql");

/// A name, wherever it is stored or compared: byte by byte, whatever the database was made with.
const TEXT: &str = "VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
/// Under which everything is made, so that it does the same everywhere: a procedure keeps it.
const MODE: &str =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// What MySQL and MariaDB call differently.
struct Dialect {
    name: &'static str,
    /// The oldest that knows all that is used.
    oldest: (u16, u16),
    /// Which server this is. Of two copies of one history, each has its own.
    server: &'static str,
    variables: &'static str,
    status: &'static str,
    /// The setting that ends a connection which is idle in a transaction.
    idle: &'static str,
}

const MYSQL: Dialect = Dialect {
    name: "MySQL",
    oldest: (8, 0),
    server: "@@server_uuid",
    variables: "performance_schema.global_variables",
    status: "performance_schema.global_status",
    idle: "wait_timeout",
};
const MARIADB: Dialect = Dialect {
    name: "MariaDB",
    oldest: (10, 6),
    server: "CONCAT(@@hostname, ':', @@port, '/', @@server_id)",
    variables: "information_schema.GLOBAL_VARIABLES",
    status: "information_schema.GLOBAL_STATUS",
    idle: "idle_transaction_timeout",
};

/// Sees to it that the tables are there, and ours.
pub(crate) async fn prepare(address: &Address, setup: Setup) -> Result<(), StoreError> {
    let mut connection = connect(address).await?.connection;
    let dialect = dialect(&mut connection).await?;
    match version(&mut connection).await? {
        None if setup == Setup::Never => Err(StoreError::not_set_up(format!(
            "the database `{}` at {} has none of Tenure's tables",
            address.database,
            address.places()
        ))),
        None => create(&mut connection, dialect, address).await,
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(StoreError::misconfigured(format!(
            "the tables in `{}` were made by a newer Tenure (layout {newer}, this one knows {VERSION}); upgrade this \
             node",
            address.database
        ))),
        Some(older) => Err(StoreError::misconfigured(format!(
            "the tables in `{}` have layout {older}, from before the first release, and this Tenure makes layout \
             {VERSION}; stop all nodes and use another database (terms start again)",
            address.database
        ))),
    }
}

async fn dialect(connection: &mut Conn) -> Result<&'static Dialect, StoreError> {
    // Asked, and not taken from the greeting: there, some say a number of long ago.
    let version: String = one(connection, "SELECT VERSION()").await?.unwrap_or_default();
    let dialect = if version.to_ascii_lowercase().contains("mariadb") { &MARIADB } else { &MYSQL };
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if number < dialect.oldest {
        let (major, minor) = dialect.oldest;
        return Err(StoreError::misconfigured(format!(
            "the server is {} {version}, and Tenure needs {major}.{minor} or newer; upgrade it, or use another store",
            dialect.name
        )));
    }
    Ok(dialect)
}

async fn one<T>(connection: &mut Conn, sql: &str) -> Result<Option<T>, StoreError>
where
    T: mysql_async::prelude::FromRow + Send + 'static,
{
    connection.query_first(sql).await.map_err(failed)
}

fn failed(error: Error) -> StoreError {
    classify(error).error
}

/// The layout that is there, if one was finished.
async fn version(connection: &mut Conn) -> Result<Option<i32>, StoreError> {
    let there = "SELECT COUNT(*) FROM information_schema.TABLES
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tenure_meta'";
    match one::<u64>(connection, there).await? {
        Some(0) | None => Ok(None),
        Some(_) => one(connection, "SELECT version FROM tenure_meta").await,
    }
}

/// Behind a lock: whoever comes second finds it done. What defines tables cannot be rolled back here, so
/// every statement may be repeated, and the row that says that all is there comes last.
async fn create(connection: &mut Conn, dialect: &Dialect, address: &Address) -> Result<(), StoreError> {
    // A lock's name has at most 64 characters, and so may the database's have. MySQL 9.7 has no SHA1 by default.
    let lock = "SELECT GET_LOCK(CONCAT('tenure setup ', LEFT(SHA2(DATABASE(), 256), 40)), 30)";
    if one::<Option<u8>>(connection, lock).await?.flatten() != Some(1) {
        return Err(StoreError::unavailable("somebody else has been making Tenure's tables for 30 seconds"));
    }
    if version(connection).await?.is_some() {
        return Ok(());
    }
    // The lock ends with the connection; what else is set here, too.
    connection.query_drop(MODE).await.map_err(failed)?;
    connection.query_drop("SET NAMES utf8mb4 COLLATE utf8mb4_bin").await.map_err(failed)?;
    let texts = [TABLES, PARTS, VERBS, LOOKS, LEDGER];
    for statement in texts.into_iter().flat_map(|text| statements(text, dialect)) {
        connection.query_drop(statement).await.map_err(failed)?;
    }
    for statement in statements(TRIGGERS, dialect) {
        match connection.query_drop(statement).await {
            Err(Error::Server(refused)) if refused.code == NO_TRIGGERS => {
                tracing::warn!(
                    database = address.database,
                    "{}: Tenure's tables are not guarded against edits by hand",
                    refused.message
                );
                break;
            }
            done => done.map_err(failed)?,
        }
    }
    let done = format!("INSERT INTO tenure_meta VALUES (1, {VERSION}, UUID(), UTC_TIMESTAMP(6))");
    connection.query_drop(done).await.map_err(failed)
}

fn statements(text: &'static str, dialect: &Dialect) -> impl Iterator<Item = String> {
    let text = text
        .replace("{text}", TEXT)
        .replace("{server}", dialect.server)
        .replace("{variables}", dialect.variables)
        .replace("{status}", dialect.status)
        .replace("{idle}", dialect.idle);
    text.split("\n//\n").map(str::to_owned).collect::<Vec<_>>().into_iter()
}
