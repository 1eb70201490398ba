//! What each error of SQLite means for the caller: one table.

use std::borrow::Cow;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ErrorCode::*;
use tenure_store::StoreError;

use crate::lock::Holder;

/// How far a request had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A human has just named this file.
    Connect,
    /// Before `COMMIT`: whatever it is, nothing changed.
    Work,
    /// During `COMMIT`.
    Commit,
}

/// The class of a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Unavailable,
    Indeterminate,
    Misconfigured,
}
use Class::{Indeterminate as I, Misconfigured as M, Unavailable as U};

struct Meaning {
    codes: &'static [ErrorCode],
    connect: Class,
    work: Class,
    commit: Class,
    advice: &'static str,
}

const fn meaning(
    codes: &'static [ErrorCode],
    [connect, work, commit]: [Class; 3],
    advice: &'static str,
) -> Meaning {
    Meaning { codes, connect, work, commit, advice }
}

/// Which failures of `COMMIT` are certain to have changed nothing?
///
/// In WAL mode a commit appends frames to the log, the last of which makes them valid; syncs the
/// log; and then shows the frames to other connections. Busy, read-only and constraint errors
/// come before the first frame. A full disk leaves the last frame incomplete, so its checksum
/// fails for ever. But after an error of `fsync` the last frame may be in the file although
/// nobody sees it: if all processes die now, recovery finds it. So every other error is
/// indeterminate.
const TABLE: &[Meaning] = &[
    meaning(
        &[DatabaseBusy, DatabaseLocked],
        [U, U, U],
        "it is locked by another process that keeps it busy; let that one finish, or find it with `fuser`",
    ),
    meaning(&[DiskFull], [U, U, U], "the disk is full; free some space"),
    meaning(
        &[ReadOnly],
        [M, U, U],
        "it is read-only; give this process write access to the file and its directory",
    ),
    meaning(
        &[CannotOpen, PermissionDenied],
        [M, U, I],
        "it cannot be opened; give this process write access to the file and its directory",
    ),
    meaning(&[NotADatabase], [M, M, I], "it is not a SQLite database; name another file"),
    meaning(
        &[DatabaseCorrupt],
        [M, M, I],
        "it is damaged; see `PRAGMA integrity_check`, and restore it from a backup",
    ),
    meaning(
        &[ConstraintViolation],
        [M, M, M],
        "its rows were edited by hand and contradict each other; see `PRAGMA foreign_key_check`",
    ),
    meaning(&[SystemIoFailure], [U, U, I], "the disk reported an error; see the kernel's log"),
    meaning(
        &[OutOfMemory, OperationInterrupted, OperationAborted, FileLockingProtocolFailed],
        [U, U, I],
        "SQLite gave up; try again",
    ),
];

/// What is left: an unknown table or column, a value of another type.
const OTHERWISE: Meaning = meaning(
    &[],
    [M, M, I],
    "its tables are not as this build wrote them; restore them, or name another file",
);

fn find(code: Option<ErrorCode>) -> &'static Meaning {
    code.and_then(|code| TABLE.iter().find(|meaning| meaning.codes.contains(&code))).unwrap_or(&OTHERWISE)
}

/// An error of SQLite, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("the database `{path}` failed: {advice}")]
pub(crate) struct SqliteFault {
    path: String,
    advice: Cow<'static, str>,
    #[source]
    source: rusqlite::Error,
}

/// Tells the caller what is now true. `holder`: who holds the lock, if that is what was wrong.
pub(crate) fn classify(
    path: &Path,
    phase: Phase,
    source: rusqlite::Error,
    holder: Option<&Holder>,
) -> StoreError {
    let meaning = find(code(&source));
    let class = match phase {
        Phase::Connect => meaning.connect,
        Phase::Work => meaning.work,
        Phase::Commit => meaning.commit,
    };
    let advice = holder.map_or(Cow::Borrowed(meaning.advice), |holder| Cow::Owned(holder.to_string()));
    let fault = SqliteFault { path: path.display().to_string(), advice, source };
    match class {
        Class::Unavailable => StoreError::unavailable(fault),
        Class::Indeterminate => StoreError::indeterminate(fault),
        Class::Misconfigured => StoreError::misconfigured(fault),
    }
}

/// The code of an error, also of one found while reading a statement.
pub(crate) fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. } => {
            Some(error.code)
        }
        _ => None,
    }
}

/// Why a verb stopped before its commit.
#[derive(Debug)]
pub(crate) enum Stop {
    /// SQLite said no.
    Sql(rusqlite::Error),
    /// The verb itself said no.
    Told(StoreError),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: i32, phase: Phase) -> Class {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        match classify(Path::new("/x.db"), phase, error, None) {
            StoreError::Unavailable(_) => U,
            StoreError::Indeterminate(_) => I,
            StoreError::Misconfigured(_) => M,
            StoreError::SessionLost => unreachable!("no SQLite error means this"),
        }
    }

    #[test]
    fn before_the_commit_nothing_is_indeterminate() {
        for code in 1..=26 {
            assert_ne!(class(code, Phase::Work), I, "code {code}");
            assert_ne!(class(code, Phase::Connect), I, "code {code}");
        }
    }

    #[test]
    fn at_the_commit_only_what_comes_before_the_last_frame_is_certain() {
        use rusqlite::ffi;
        for certain in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_FULL, ffi::SQLITE_READONLY] {
            assert_eq!(class(certain, Phase::Commit), U);
        }
        for unsure in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_NOMEM, ffi::SQLITE_ERROR]
        {
            assert_eq!(class(unsure, Phase::Commit), I);
        }
    }

    #[test]
    fn a_read_only_file_is_a_mistake_at_first_and_a_fault_later() {
        assert_eq!(class(rusqlite::ffi::SQLITE_READONLY, Phase::Connect), M);
        assert_eq!(class(rusqlite::ffi::SQLITE_READONLY, Phase::Work), U);
    }
}
