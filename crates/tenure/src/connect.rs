//! From a URL to a store.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_store::{Options, Setup, Store, StoreUrl, UrlError};

use crate::error::ConnectError;

/// A store that Tenure has: its scheme, the feature that it comes with, and whether that is on.
struct Known {
    scheme: &'static str,
    feature: &'static str,
    built: bool,
}

const KNOWN: &[Known] = &[
    Known { scheme: "sqlite", feature: "sqlite", built: cfg!(feature = "sqlite") },
    Known { scheme: "postgres", feature: "postgres", built: cfg!(feature = "postgres") },
    Known { scheme: "mysql", feature: "mysql", built: cfg!(feature = "mysql") },
    Known { scheme: "zk", feature: "zookeeper", built: cfg!(feature = "zookeeper") },
    Known { scheme: "raft", feature: "raft", built: cfg!(feature = "raft") },
    Known { scheme: "memory", feature: "memory", built: cfg!(feature = "memory") },
];

/// The schemes of the stores that this build knows.
#[must_use]
pub fn schemes() -> Vec<&'static str> {
    KNOWN.iter().filter(|known| known.built).map(|known| known.scheme).collect()
}

/// Connects to the store that the URL names, such as `sqlite:./tenure.db`.
///
/// Every store understands the parameters `namespace` (separates users of one store) and
/// `history` (how many events are kept per election).
///
/// # Errors
/// [`ConnectError`]: the part of the URL that is wrong, the feature that is off, or why the store
/// cannot be used.
///
/// # Cancel safety
/// Safe: a store that was reached is left as it is.
pub async fn connect(url: impl AsRef<str>) -> Result<Arc<dyn Store>, ConnectError> {
    connect_to(StoreUrl::parse(url.as_ref())?).await
}

/// The same, but nothing is created or changed on the store: for programs that only look.
///
/// # Errors
/// [`ConnectError`]; a store that Tenure has not been used on is a [`StoreError`](crate::StoreError) for which
/// [`is_not_set_up`](crate::StoreError::is_not_set_up) holds.
///
/// # Cancel safety
/// Safe.
pub async fn connect_existing(url: impl AsRef<str>) -> Result<Arc<dyn Store>, ConnectError> {
    let mut url = StoreUrl::parse(url.as_ref())?;
    url.options.setup = Setup::Never;
    connect_to(url).await
}

async fn connect_to(url: StoreUrl) -> Result<Arc<dyn Store>, ConnectError> {
    match url.scheme.as_str() {
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(tenure_sqlite::SqliteStore::connect(&url).await?)),
        #[cfg(feature = "postgres")]
        "postgres" => Ok(Arc::new(tenure_postgres::PostgresStore::connect(&url).await?)),
        #[cfg(feature = "mysql")]
        "mysql" => Ok(Arc::new(tenure_mysql::MySqlStore::connect(&url).await?)),
        #[cfg(feature = "zookeeper")]
        "zk" => Ok(Arc::new(tenure_zookeeper::ZooKeeperStore::connect(&url).await?)),
        #[cfg(feature = "raft")]
        "raft" => Ok(Arc::new(tenure_raft::RaftStore::connect(&url).await?)),
        #[cfg(feature = "memory")]
        "memory" => Ok(Arc::new(tenure_memory::MemoryStore::connect(&url)?)),
        _ => Err(unknown(url.scheme)),
    }
}

fn unknown(scheme: String) -> ConnectError {
    match KNOWN.iter().find(|known| known.scheme == scheme && !known.built) {
        Some(known) => ConnectError::FeatureOff { scheme, feature: known.feature },
        None => {
            let known: Vec<_> = schemes().iter().map(|scheme| format!("`{scheme}:`")).collect();
            let known = if known.is_empty() { String::from("none") } else { known.join(", ") };
            ConnectError::Url(UrlError::UnknownScheme { scheme, known })
        }
    }
}

/// Connects to the default store: a SQLite file in the user's state directory
/// (`$XDG_STATE_HOME/tenure/tenure.db`, or below `~/.local/state`). The directory is created.
///
/// # Errors
/// [`ConnectError`]; without the feature `sqlite`, always [`ConnectError::FeatureOff`].
///
/// # Cancel safety
/// Safe: the directory and the file may have been created.
pub async fn connect_default() -> Result<Arc<dyn Store>, ConnectError> {
    connect_default_with(Options::default()).await
}

/// The same in another namespace, with another retention, or without creating anything.
///
/// # Errors
/// As for [`connect_default`].
///
/// # Cancel safety
/// As for [`connect_default`].
pub async fn connect_default_with(options: Options) -> Result<Arc<dyn Store>, ConnectError> {
    let path = default_path()?;
    if options.setup == Setup::Create {
        let directory = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(directory)
            .map_err(|source| ConnectError::Directory { path: directory.display().to_string(), source })?;
    }
    open(path, options).await
}

/// The file of the default store. Nothing is created.
///
/// # Errors
/// [`ConnectError::NoStateDirectory`] if the environment names none.
pub fn default_path() -> Result<PathBuf, ConnectError> {
    let directory = state_directory(|name| std::env::var_os(name).map(PathBuf::from))?;
    Ok(directory.join("tenure.db"))
}

#[cfg(feature = "sqlite")]
async fn open(path: PathBuf, options: Options) -> Result<Arc<dyn Store>, ConnectError> {
    // Not by URL: a path may contain a question mark.
    Ok(Arc::new(tenure_sqlite::SqliteStore::open(path, options).await?))
}

#[cfg(not(feature = "sqlite"))]
async fn open(_path: PathBuf, _options: Options) -> Result<Arc<dyn Store>, ConnectError> {
    Err(ConnectError::FeatureOff { scheme: String::from("sqlite"), feature: "sqlite" })
}

fn state_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, ConnectError> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    Ok(state.ok_or(ConnectError::NoStateDirectory)?.join("tenure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_store_lies_in_the_state_directory() {
        let of = |pairs: &[(&str, &str)]| {
            state_directory(|name| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        let both = [("XDG_STATE_HOME", "/state"), ("HOME", "/people/me")];
        assert_eq!(of(&both).unwrap(), PathBuf::from("/state/tenure"));
        assert_eq!(of(&both[1..]).unwrap(), PathBuf::from("/people/me/.local/state/tenure"));
        let relative = [("XDG_STATE_HOME", "state"), ("HOME", "/people/me")];
        assert_eq!(of(&relative).unwrap(), PathBuf::from("/people/me/.local/state/tenure"));
        assert!(matches!(of(&[]), Err(ConnectError::NoStateDirectory)));
    }
}
