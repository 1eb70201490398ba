//! What candidates leave behind that survives `kill -9`: the logs of their checks, and the register.

use std::path::Path;

use tempfile::TempDir;
use tenure::sqlite::rusqlite::{self, Connection};
use tenure_testkit::checker::{Leadership, Write, parse_leaderships};
use tenure_testkit::patience::HANG;

/// A directory in memory, where there is one. Nobody here pulls the plug, and what a killed process has written
/// stays in the page cache; a disk would add nothing but its stalls, which on a busy machine last longer than any
/// ttl of these tests. `TENURE_TORTURE_DIR` names another place.
///
/// # Panics
/// If there is no place for temporary files.
#[must_use]
pub fn workplace() -> TempDir {
    let place = std::env::var_os("TENURE_TORTURE_DIR").unwrap_or_else(|| "/dev/shm".into());
    tempfile::tempdir_in(place).or_else(|_| tempfile::tempdir()).expect("there is a place for files")
}

/// Makes the register that candidates write to: a resource that Tenure does not own, which compares terms.
///
/// # Panics
/// If the file cannot be made.
pub fn make_register(path: &Path) {
    let made = Connection::open(path).and_then(|register| {
        register.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE fence (election TEXT PRIMARY KEY, term INTEGER);
             CREATE TABLE writes (id INTEGER PRIMARY KEY AUTOINCREMENT, election TEXT, node TEXT,
                                  pid INTEGER, term INTEGER, accepted INTEGER);",
        )
    });
    made.expect("a register can be made");
}

/// What a register was asked for, in the order in which it judged.
///
/// # Panics
/// If it cannot be read: half the evidence would look like innocence.
#[must_use]
pub fn asked_of_register(path: &Path) -> Vec<Write> {
    let file = Connection::open(path).expect("the register can be opened");
    // Who was killed leaves a log behind that the next one to open it has to look through.
    file.busy_timeout(HANG).expect("a connection can wait");
    writes(&file, "SELECT election, node, pid, term, accepted FROM writes ORDER BY id")
}

/// The writes that a question about a file gives.
///
/// # Panics
/// As for [`asked_of_register`].
#[must_use]
pub fn writes(file: &Connection, sql: &str) -> Vec<Write> {
    let read = || -> rusqlite::Result<Vec<Write>> {
        let mut statement = file.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(Write {
                election: row.get(0)?,
                node: row.get(1)?,
                pid: row.get(2)?,
                term: row.get::<_, i64>(3)?.cast_unsigned(),
                accepted: row.get(4)?,
            })
        })?;
        rows.collect()
    };
    read().expect("what was written can be read")
}

/// All leaderships in the logs (`*.log`) of a directory.
///
/// # Panics
/// If one of them cannot be read; or if a candidate has panicked (`*.stderr`).
#[must_use]
pub fn leaderships(logs: &Path) -> Vec<Leadership> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(logs).expect("there are logs") {
        let path = entry.expect("there are logs").path();
        let read = || std::fs::read_to_string(&path).expect("a log can be read");
        match path.extension().and_then(|end| end.to_str()) {
            Some("log") => all.extend(parse_leaderships(&read()).unwrap_or_else(|e| panic!("{path:?}: {e}"))),
            Some("stderr") => assert!(!read().contains("panicked"), "a candidate panicked: {}", read()),
            _ => {}
        }
    }
    all
}
