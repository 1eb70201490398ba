//! The tables: whose file this is, and how it becomes ours.

use rusqlite::{Connection, TransactionBehavior};
use tenure_store::StoreError;

use crate::error::Stop;
use crate::moment::Moment;

/// Marks a file that holds nothing but Tenure's tables ("Tenu").
pub(crate) const APPLICATION_ID: i32 = 0x5465_6E75;

/// What brings version n to version n + 1. Never edited once released; only added to.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("registry.sql"),
    include_str!("ledger.sql"),
    include_str!("leases.sql"),
    include_str!("health.sql"),
    include_str!("succession.sql"),
];

/// This build's version.
pub(crate) const LATEST: i64 = MIGRATIONS.len() as i64;

const META: &[&str] = &["only_row", "schema", "store", "created_at"];

/// What a file holds before we touch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing at all.
    Empty,
    /// Tables of the application, none of ours.
    Foreign,
    /// Our tables, of this version.
    Ours(i64),
}

impl Found {
    pub(crate) fn is_current(self) -> bool {
        self == Self::Ours(LATEST)
    }
}

/// Looks at a file without changing it.
///
/// The application's tables may live beside ours, or else a fenced transaction could not write
/// to them. But a file that another product has marked as its own, or names of ours in another
/// shape, mean that the path is wrong.
pub(crate) fn examine(connection: &Connection) -> Result<Found, Stop> {
    let snapshot = connection.unchecked_transaction()?;
    examine_within(&snapshot)
}

fn examine_within(snapshot: &Connection) -> Result<Found, Stop> {
    let application: i32 = snapshot.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != 0 && application != APPLICATION_ID {
        return Err(refusal(format!(
            "the file belongs to another product (its application_id is {application:#010x}); name another file"
        )));
    }
    let tables: u32 = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let ours: u32 = snapshot.query_row(
        r"SELECT count(*) FROM sqlite_schema WHERE name LIKE 'tenure\_%' ESCAPE '\'",
        [],
        |row| row.get(0),
    )?;
    match (tables, ours) {
        (0, _) => Ok(Found::Empty),
        (_, 0) => Ok(Found::Foreign),
        _ => Ok(Found::Ours(version(snapshot)?)),
    }
}

fn version(snapshot: &Connection) -> Result<i64, Stop> {
    let columns = snapshot
        .prepare("SELECT name FROM pragma_table_info('tenure_meta') ORDER BY cid")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    // Later versions may add columns; these four stay, or no build could tell what it sees.
    if !columns.iter().map(String::as_str).take(META.len()).eq(META.iter().copied()) {
        return Err(refusal(String::from(
            "the file has a table `tenure_…` that Tenure did not write; rename it, or name another file",
        )));
    }
    let version: i64 = snapshot.query_row("SELECT schema FROM tenure_meta", [], |row| row.get(0))?;
    if version > LATEST {
        return Err(refusal(format!(
            "the file's tables have version {version}, which is newer than version {LATEST} that this build \
             understands; upgrade Tenure on this machine"
        )));
    }
    Ok(version)
}

fn refusal(problem: String) -> Stop {
    Stop::Told(StoreError::misconfigured(problem))
}

/// Brings a file to this build's version, in one transaction: of several processes that start at
/// once one does it, and the others find it done.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Stop> {
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let found = examine_within(&transaction)?;
    let from = match found {
        Found::Empty | Found::Foreign => 0,
        Found::Ours(version) => version,
    };
    for migration in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    if from == 0 {
        transaction.execute(
            "INSERT INTO tenure_meta (only_row, schema, store, created_at) VALUES (1, ?1, ?2, ?3)",
            (LATEST, random_name()?, Moment::now().wall),
        )?;
    } else {
        transaction.execute("UPDATE tenure_meta SET schema = ?1", [LATEST])?;
    }
    if found == Found::Empty {
        transaction.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
    }
    transaction.commit()?;
    Ok(())
}

/// A new history's name, in the usual form of a random UUID.
fn random_name() -> Result<String, Stop> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::unavailable(format!("the system gave no random numbers: {error}")))?;
    let number = u128::from_be_bytes(bytes) & !(0xF << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{number:032x}");
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_gets_our_tables_and_our_mark_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(examine(&connection).unwrap(), Found::Empty);
        migrate(&mut connection).unwrap();
        let name = |c: &Connection| {
            c.query_row("SELECT store FROM tenure_meta", [], |row| row.get::<_, String>(0)).unwrap()
        };
        let first = name(&connection);
        migrate(&mut connection).unwrap();
        assert_eq!(name(&connection), first);
        assert!(examine(&connection).unwrap().is_current());
        let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
        assert_eq!(id, APPLICATION_ID);
    }

    #[test]
    fn a_file_of_an_older_version_keeps_what_it_knows() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection
            .execute_batch(
                "INSERT INTO tenure_meta VALUES (1, 1, 'the old name', '');
                 INSERT INTO tenure_elections (namespace, election, term, floor, attempt, ended, stood, events)
                 VALUES ('default', 'reports', 7, 0, 0, 0, 1, 9);
                 INSERT INTO tenure_sessions (id, namespace, node, hostname, pid, state, sequence, ttl_ms,
                                              opened_at, renewed_at, renewed_boot_ns)
                 VALUES ('01', 'default', 'a', 'here', 1, 'live', 3, 10000, '', '', 0)",
            )
            .unwrap();
        assert_eq!(examine(&connection).unwrap(), Found::Ours(1));
        migrate(&mut connection).unwrap();
        assert!(examine(&connection).unwrap().is_current());
        let sql = "SELECT term || store || degraded FROM tenure_elections, tenure_meta";
        let kept: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "7the old name0");
        let sql = "SELECT node || (problem IS NULL) || (unhealthy_since IS NULL) FROM tenure_nodes";
        let healthy: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(healthy, "a11");
    }

    #[test]
    fn tables_are_added_beside_those_of_the_application_without_our_mark() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE tenures (x)").unwrap();
        assert_eq!(examine(&connection).unwrap(), Found::Foreign);
        migrate(&mut connection).unwrap();
        let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
        assert_eq!(id, 0);
    }

    #[test]
    fn names_of_histories_are_random_uuids() {
        let name = random_name().unwrap();
        assert_eq!((name.len(), &name[14..15]), (36, "4"));
        assert_ne!(name, random_name().unwrap());
    }
}
