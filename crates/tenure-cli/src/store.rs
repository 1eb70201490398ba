//! The store of a command: found, connected to, and asked with a limit.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tenure::{ConnectError, Namespace, Options, Setup, Store, StoreError};
use tenure_store::environment::{with_credentials, with_parameter};
use tenure_store::{StoreUrl, Told, UrlError};

use crate::cli::{Global, SeatSettings};
use crate::credentials::{hide_secrets, unambiguous};
use crate::failure::{Failure, chain};

/// How long a question may take before the store counts as not reachable.
const LIMIT: Duration = Duration::from_secs(10);

/// The namespace in which `check` measures. Nobody stands there.
const SCRATCH: &str = "tenure-check";

/// Connects to the store that the settings name, which must be there: a command that only looks creates nothing.
pub async fn connect(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    in_time(global, open(url(global)?.as_deref(), &global.namespace, Setup::Never)).await
}

/// Connects to the store that the settings name, and sets it up if need be.
pub async fn connect_or_create(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    in_time(global, open(url(global)?.as_deref(), &global.namespace, Setup::Create)).await
}

/// Connects to the same store in a namespace where measurements are in nobody's way. One event of it is kept.
pub async fn connect_to_scratch(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    let url = url_of_scratch(global, SCRATCH)?;
    in_time(global, tenure::connect(url)).await
}

/// The URL in force, with this namespace in place of the user's, and a history of one event.
///
/// # Errors
/// As for [`url`].
pub fn url_of_scratch(global: &Global, namespace: &str) -> Result<String, Failure> {
    let url = match url(global)? {
        Some(url) => url,
        None => format!("sqlite:{}", tenure::default_path()?.display()),
    };
    let url = without_parameters(&url, &["namespace", "history"]);
    Ok(with_parameter(&with_parameter(&url, "namespace", namespace), "history", "1"))
}

/// Why there is no connection; if the URL is wrong, with the URL as it was written.
pub fn refused(global: &Global, error: ConnectError) -> Failure {
    let error = match error {
        // The command refuses it: nobody else could take part.
        ConnectError::Url(UrlError::UnknownScheme { scheme, known }) => {
            ConnectError::Url(UrlError::UnknownScheme { scheme, known: known.replace(", `memory:`", "") })
        }
        other => other,
    };
    match (Failure::from(error), &global.store) {
        (Failure::Usage(problem), Some(url)) => {
            let problem = by_its_scheme(&problem, url);
            Failure::Usage(format!("store URL `{}`: {problem}", hide_secrets(url)))
        }
        (failure, _) => failure,
    }
}

/// The problem with the scheme that was written, where a store knows itself by another.
fn by_its_scheme(problem: &str, url: &str) -> String {
    let Some((written, parsed)) = url.split_once(':').zip(StoreUrl::parse(url).ok()) else {
        return problem.to_owned();
    };
    let (written, known) = (written.0.to_ascii_lowercase(), parsed.scheme);
    problem
        .replace(&format!("`{known}:`"), &format!("`{written}:`"))
        .replace(&format!("`{known}://"), &format!("`{written}://"))
}

async fn in_time(
    global: &Global,
    connecting: impl Future<Output = Result<Arc<dyn Store>, ConnectError>>,
) -> Result<Arc<dyn Store>, Failure> {
    match tokio::time::timeout(LIMIT, connecting).await {
        Ok(connected) => connected.map_err(|error| refused(global, error)),
        Err(_) => Err(silent()),
    }
}

/// Connects to a store, or to the default one, however long that takes.
pub async fn open(
    url: Option<&str>,
    namespace: &Namespace,
    setup: Setup,
) -> Result<Arc<dyn Store>, ConnectError> {
    match (url, setup) {
        (Some(url), Setup::Create) => tenure::connect(url).await,
        (Some(url), Setup::Never) => tenure::connect_existing(url).await,
        (None, setup) => {
            let namespace = namespace.clone();
            tenure::connect_default_with(Options { namespace, setup, ..Options::default() }).await
        }
    }
}

/// The file of a store that is one; `None` for servers.
pub fn file(url: Option<&str>) -> Option<PathBuf> {
    let Some(url) = url else { return tenure::default_path().ok() };
    let url = StoreUrl::parse(url).ok()?;
    (url.scheme == "sqlite").then(|| PathBuf::from(url.rest))
}

/// The URL in force, with the namespace and the password in it; `None`: the default store.
///
/// # Errors
/// If the password cannot be read, or there is nobody whose it could be.
pub fn url(global: &Global) -> Result<Option<String>, Failure> {
    let Some(url) = &global.store else { return Ok(None) };
    if url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("memory:")) {
        return Err(Failure::Usage(String::from(
            "a `memory:` store is inside one process, so no other process would take part; name a file of this \
             machine, such as sqlite:/var/lib/tenure.db, or a server that all machines share",
        )));
    }
    // Before anything is added to it.
    if let Err(UrlError::NoScheme(url)) = StoreUrl::parse(url) {
        return Err(Failure::Usage(UrlError::NoScheme(hide_secrets(&url)).to_string()));
    }
    let file = global.store_password_file.as_deref();
    let url = with_credentials(&unambiguous(url)?, file, &|name| std::env::var_os(name))
        .map_err(|error| Failure::Usage(chain(&error)))?;
    let url = with_parameter(&url, "namespace", global.namespace.as_str());
    match global.raft_plaintext {
        true if url.starts_with(RAFT) => Ok(Some(with_parameter(&url, "plaintext", "true"))),
        true => Err(only_raft("--raft-plaintext")),
        false => Ok(Some(url)),
    }
}

/// The store as people may read it: the URL without its password, or the file of the default store.
pub fn shown(global: &Global) -> String {
    match &global.store {
        Some(url) => hide_secrets(url),
        None => tenure::default_path().map_or_else(
            |_| String::from("the default SQLite file"),
            |path| format!("sqlite:{}", path.display()),
        ),
    }
}

/// The URL for a process that takes part in the group of a `raft:` store, if it is told to. Those that act
/// for it, or only ask, use [`url`]: there is one member in a directory.
///
/// # Errors
/// As for [`url`]; and if the store has no members.
pub fn url_with_seat(global: &Global, seat: &SeatSettings) -> Result<Option<String>, Failure> {
    let Some(url) = url(global)? else {
        return match seat {
            SeatSettings { data: None, raft_listen: None } => Ok(None),
            _ => Err(only_raft("--data")),
        };
    };
    let mut url = url;
    let data = seat.data.as_ref().map(|data| data.to_string_lossy().into_owned());
    for (flag, name, value) in [("--data", "data", &data), ("--raft-listen", "listen", &seat.raft_listen)] {
        if let Some(value) = value {
            if !url.starts_with(RAFT) {
                return Err(only_raft(flag));
            }
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
            url = with_parameter(&url, name, &value);
        }
    }
    Ok(Some(url))
}

const RAFT: &str = "raft:";

fn only_raft(flag: &str) -> Failure {
    Failure::Usage(format!(
        "{flag} is for a store whose members are Tenure's own nodes, such as --store raft://h1:7101,h2:7101,h3:7101"
    ))
}

/// A URL without these parameters.
fn without_parameters(url: &str, names: &[&str]) -> String {
    let Some((place, query)) = url.split_once('?') else { return url.to_owned() };
    let unwanted = |pair: &&str| names.contains(&pair.split_once('=').map_or(*pair, |(name, _)| name));
    let kept: Vec<&str> = query.split('&').filter(|pair| !unwanted(pair)).collect();
    if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
}

/// Waits for what the store is asked, but not for one that does not answer.
pub async fn within<T>(asked: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(LIMIT, asked).await.map_err(|_| silent())
}

/// Asks the store, and gives up on one that does not answer.
pub async fn ask<T>(question: impl Future<Output = Result<Told<T>, StoreError>>) -> Result<T, Failure> {
    Ok(told(question).await?.value)
}

/// The same, with the identity of the store that answered.
pub async fn told<T>(
    question: impl Future<Output = Result<Told<T>, StoreError>>,
) -> Result<Told<T>, Failure> {
    Ok(within(question).await??)
}

fn silent() -> Failure {
    Failure::Store(format!(
        "the store has not answered within {}; is it up, and reachable from here? `tenure check` tells more",
        humantime::format_duration(LIMIT)
    ))
}
