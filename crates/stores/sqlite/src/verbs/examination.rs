//! Examination: what the connection, the file and its disk really are, not what we asked them to be.

use std::path::Path;

use tenure_store::Finding;

use super::Scope;
use crate::error::Stop;
use crate::place;
use crate::schema::LATEST;

/// Below this, a log that grows in a rush may meet the end of the disk.
const ENOUGH_SPACE: u64 = 64 << 20;

pub(crate) fn examine(scope: &Scope<'_>, path: &Path, told: bool) -> Result<Vec<Finding>, Stop> {
    Ok(vec![
        file(path),
        journal(scope)?,
        synchronous(scope)?,
        schema(scope)?,
        file_system(path),
        news(told),
        space(path),
    ])
}

fn file(path: &Path) -> Finding {
    let size = std::fs::metadata(path).map(|found| found.len());
    let value = match &size {
        Ok(bytes) => format!("{} ({} KiB)", path.display(), bytes.div_ceil(1024)),
        Err(error) => format!("{}: {error}", path.display()),
    };
    Finding::new("file", size.is_ok(), value, "put it back, or stop all nodes before starting a new one")
}

fn journal(scope: &Scope<'_>) -> Result<Finding, Stop> {
    let mode: String = pragma(scope, "PRAGMA journal_mode")?;
    let advice = "somebody has changed it; stop all nodes, and run `PRAGMA journal_mode = WAL`";
    Ok(Finding::new("journal", mode == "wal", mode, advice))
}

fn synchronous(scope: &Scope<'_>) -> Result<Finding, Stop> {
    let level: i64 = pragma(scope, "PRAGMA synchronous")?;
    let name = match level {
        0 => "off",
        1 => "normal",
        2 => "full",
        3 => "extra",
        _ => "unknown",
    };
    let advice = "a term that was granted may be forgotten when the power fails; this is a bug of Tenure";
    Ok(Finding::new("synchronous", matches!(level, 2 | 3), name.to_owned(), advice))
}

fn schema(scope: &Scope<'_>) -> Result<Finding, Stop> {
    let version: i64 = pragma(scope, "SELECT schema FROM tenure_meta")?;
    let advice = format!("this build writes version {LATEST}; use one version of Tenure on all nodes");
    Ok(Finding::new("schema", version == LATEST, format!("version {version}"), &advice))
}

/// The one value of a statement; 0 or nothing if it has none.
fn pragma<T: rusqlite::types::FromSql + Default>(scope: &Scope<'_>, sql: &str) -> Result<T, Stop> {
    Ok(scope.one(sql, [], |row| row.get(0))?.unwrap_or_default())
}

fn file_system(path: &Path) -> Finding {
    let magic = place::file_system(path);
    let shared = magic.and_then(place::shared_file_system);
    let value = match (shared, magic) {
        (Some(name), _) => name.to_owned(),
        (None, Some(magic)) => format!("local ({magic:#x})"),
        (None, None) => String::from("the system does not say"),
    };
    let advice =
        "locks do not hold between machines there, so two leaders could be elected; use a local disk";
    Finding::new("file system", shared.is_none(), value, advice)
}

fn news(told: bool) -> Finding {
    let value = if told { "inotify" } else { "none: candidates have to look" };
    let advice = "raise fs.inotify.max_user_instances and max_user_watches, so that hand-overs take no poll";
    Finding::new("news", told, value.to_owned(), advice)
}

fn space(path: &Path) -> Finding {
    match rustix::fs::statvfs(path) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let value = format!("{} MiB free", free >> 20);
            Finding::new(
                "disk",
                free >= ENOUGH_SPACE,
                value,
                "free some space: nobody can renew on a full disk",
            )
        }
        Err(error) => Finding::new("disk", false, error.to_string(), "see that the file can be reached"),
    }
}
