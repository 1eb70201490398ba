//! From a URL to a store.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::Namespace;
use tenure_store::environment::{EnvironmentError, Variable, with_credentials, with_parameter};
use tenure_store::{Options, Setup, Store, StoreUrl, UrlError};

use crate::error::{BoxError, ConnectError};

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

/// Connects to the store that the environment names, as the command `tenure` does: for programs whose operators set
/// both alike.
///
/// | variable | what it is |
/// |---|---|
/// | `TENURE_STORE` | the store URL; without it, the [default store](connect_default), and a warning, because only processes on this machine take part |
/// | `TENURE_NAMESPACE` | the namespace, unless the URL has one |
/// | `TENURE_STORE_PASSWORD_FILE` | a file with the password of the URL's user, unless the URL has one |
/// | `TENURE_STORE_PASSWORD` | the password itself, if there is no such file |
/// | `TENURE_RAFT_PLAINTEXT` | `true` adds `plaintext=true` to a `raft:` URL |
///
/// Without a password there, those that the tools of the database use are taken: `PGPASSWORD`, `~/.pgpass`, `MYSQL_PWD`;
/// and `PGSSLMODE`, if the URL has no `sslmode`. A settings file (`TENURE_CONFIG`) is not read.
///
/// # Errors
/// [`ConnectError::Environment`] if a variable cannot be used; otherwise as for [`connect`].
///
/// # Cancel safety
/// As for [`connect`].
pub async fn connect_from_env() -> Result<Arc<dyn Store>, ConnectError> {
    connect_from(&|name| std::env::var_os(name)).await
}

async fn connect_from(variable: Variable<'_>) -> Result<Arc<dyn Store>, ConnectError> {
    match told_by(variable)? {
        (Some(url), _) => connect(url).await,
        (None, namespace) => {
            tracing::warn!(
                store = %default_path()?.display(),
                "TENURE_STORE is not set: only processes on this machine take part"
            );
            connect_default_with(Options { namespace, ..Options::default() }).await
        }
    }
}

/// The URL with everything in it, or none; and the namespace.
fn told_by(variable: Variable<'_>) -> Result<(Option<String>, Namespace), ConnectError> {
    let text = |name: &'static str| {
        let value = variable(name).map(OsString::into_string).transpose();
        value.map_err(|_| ConnectError::Environment { name, source: EnvironmentError::NotText(name).into() })
    };
    let wrong = |name, source: BoxError| ConnectError::Environment { name, source };
    let namespace = match text("TENURE_NAMESPACE")? {
        Some(name) => Namespace::new(name).map_err(|error| wrong("TENURE_NAMESPACE", error.into()))?,
        None => Namespace::default(),
    };
    let Some(url) = text("TENURE_STORE")? else { return Ok((None, namespace)) };
    let file = variable("TENURE_STORE_PASSWORD_FILE").map(PathBuf::from);
    let url = with_credentials(&url, file.as_deref(), variable);
    let url = url.map_err(|error| wrong("TENURE_STORE", error.into()))?;
    let url = with_parameter(&url, "namespace", namespace.as_str());
    match text("TENURE_RAFT_PLAINTEXT")?.as_deref() {
        Some("true") if url.starts_with("raft:") => {
            Ok((Some(with_parameter(&url, "plaintext", "true")), namespace))
        }
        None | Some("true" | "false") => Ok((Some(url), namespace)),
        Some(_) => Err(wrong("TENURE_RAFT_PLAINTEXT", "it is true or false".into())),
    }
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

    fn told(pairs: &[(&str, &str)]) -> Result<(Option<String>, Namespace), ConnectError> {
        told_by(&|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_environment_names_store_namespace_and_password_as_for_the_command() {
        let blue = Namespace::new("blue").unwrap();
        assert_eq!(told(&[]).unwrap(), (None, Namespace::default()));
        assert_eq!(told(&[("TENURE_NAMESPACE", "blue")]).unwrap(), (None, blue));
        let url = |pairs: &[(&str, &str)]| told(pairs).unwrap().0.expect("there is a store");
        let store = ("TENURE_STORE", "postgres://me@h/db");
        assert_eq!(url(&[store]), "postgres://me@h/db?namespace=default");
        let all = [store, ("TENURE_NAMESPACE", "blue"), ("TENURE_STORE_PASSWORD", "s/cret")];
        assert_eq!(url(&all), "postgres://me:s%2Fcret@h/db?namespace=blue");
        let own = [("TENURE_STORE", "sqlite:a.db?namespace=own"), all[1], all[2]];
        assert_eq!(url(&own), "sqlite:a.db?namespace=own");
        let plaintext = ("TENURE_RAFT_PLAINTEXT", "true");
        let group = [("TENURE_STORE", "raft://h1:1,h2:1,h3:1"), plaintext];
        assert_eq!(url(&group), "raft://h1:1,h2:1,h3:1?namespace=default&plaintext=true");
        assert_eq!(url(&[store, plaintext]), "postgres://me@h/db?namespace=default");
    }

    #[test]
    fn a_password_file_goes_before_the_variable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "from the file\n").unwrap();
        let path = file.path().to_str().unwrap();
        let pairs = [
            ("TENURE_STORE", "mysql://me@h/db"),
            ("TENURE_STORE_PASSWORD", "from the variable"),
            ("TENURE_STORE_PASSWORD_FILE", path),
        ];
        let (url, _) = told(&pairs).unwrap();
        assert_eq!(url.unwrap(), "mysql://me:from%20the%20file@h/db?namespace=default");
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let message = |pairs: &[(&str, &str)]| told(pairs).unwrap_err().to_string();
        let store = ("TENURE_STORE", "postgres://h/db");
        assert!(message(&[("TENURE_NAMESPACE", "")]).starts_with("TENURE_NAMESPACE in the environment"));
        let nobody = message(&[store, ("TENURE_STORE_PASSWORD", "secret")]);
        assert!(nobody.contains("TENURE_STORE") && nobody.contains("no user"), "{nobody}");
        assert!(!nobody.contains("secret"), "{nobody}");
        assert!(message(&[store, ("TENURE_RAFT_PLAINTEXT", "yes")]).contains("TENURE_RAFT_PLAINTEXT"));
        let file =
            message(&[("TENURE_STORE", "mysql://me@h/db"), ("TENURE_STORE_PASSWORD_FILE", "/no/such")]);
        assert!(file.contains("`/no/such` cannot be read"), "{file}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn the_store_that_the_environment_names_is_connected_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("named.db");
        let url = OsString::from(format!("sqlite:{}", path.display()));
        connect_from(&|name| (name == "TENURE_STORE").then(|| url.clone())).await.unwrap();
        assert!(path.exists());
    }
}
