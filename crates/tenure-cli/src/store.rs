//! The store of a command: found, connected to, and asked with a limit.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tenure::{ConnectError, Namespace, Options, Retention, Setup, Store, StoreError};
use tenure_store::{StoreUrl, Told, UrlError};

use crate::cli::{Global, SeatSettings};
use crate::clients;
use crate::credentials::{hide_secrets, unambiguous};
use crate::failure::Failure;

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

/// The same store in a namespace where whatever is written is in nobody's way, and one event of it is kept.
pub async fn connect_to_scratch(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    let url = url(global)?;
    let Some(url) = url else {
        let namespace = Namespace::new(SCRATCH).map_err(Failure::system)?;
        let options = Options { namespace, retention: Retention { events: 1 }, ..Options::default() };
        return in_time(global, tenure::connect_default_with(options)).await;
    };
    let url = without_parameters(&url, &["namespace", "history"]);
    let url = with_parameter(&with_parameter(&url, "namespace", SCRATCH), "history", "1");
    in_time(global, tenure::connect(url)).await
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
    let url = with_password(&unambiguous(url)?, || password(global))?;
    let url = match url.split_once("://").map(|(scheme, _)| clients::is_postgres(scheme)) {
        Some(true) => match clients::ssl_mode()? {
            Some(mode) => with_parameter(&url, "sslmode", &mode),
            None => url,
        },
        _ => url,
    };
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

/// Adds a parameter to a URL, unless it has it.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let has = |pair: &str| pair.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    if url.split_once('?').is_some_and(|(_, query)| query.split('&').any(has)) {
        return url.to_owned();
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{name}={value}")
}

/// A URL without these parameters.
fn without_parameters(url: &str, names: &[&str]) -> String {
    let Some((place, query)) = url.split_once('?') else { return url.to_owned() };
    let unwanted = |pair: &&str| names.contains(&pair.split_once('=').map_or(*pair, |(name, _)| name));
    let kept: Vec<&str> = query.split('&').filter(|pair| !unwanted(pair)).collect();
    if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
}

/// The password from the file, or else from the environment. It is no flag: everybody reads command lines.
fn password(global: &Global) -> Result<Option<String>, Failure> {
    let Some(file) = &global.store_password_file else {
        return match std::env::var("TENURE_STORE_PASSWORD") {
            Ok(password) => Ok(Some(password).filter(|password| !password.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(Failure::Usage(String::from("the password in TENURE_STORE_PASSWORD is not UTF-8")))
            }
        };
    };
    let wrong = |problem: &str| {
        Failure::Usage(format!("the password in `{}` cannot be read: {problem}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error.to_string()))?;
    // The end of the line is an editor's, and no part of it.
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err(wrong("the file is empty"));
    }
    Ok(Some(password.to_owned()))
}

/// Puts a password behind the user of a URL, unless there is one. Stores without users have none.
fn with_password(
    url: &str,
    password: impl FnOnce() -> Result<Option<String>, Failure>,
) -> Result<String, Failure> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(url.to_owned()) };
    // A group of Tenure's own nodes has no users: certificates say who may ask.
    if scheme == "raft" {
        return Ok(url.to_owned());
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@');
    if user.is_some_and(|(user, _)| user.contains(':')) {
        return Ok(url.to_owned());
    }
    let database = tail.trim_start_matches('/').split('?').next().unwrap_or_default();
    let usual = || clients::password(scheme, user?.0, user?.1, database);
    let Some(password) = password()?.or_else(usual) else { return Ok(url.to_owned()) };
    let Some((user, hosts)) = user.filter(|(user, _)| !user.is_empty()) else {
        return Err(Failure::Usage(format!(
            "there is a password, but nobody in the store URL whose it is; write {scheme}://USER@{authority}{tail}"
        )));
    };
    let password = utf8_percent_encode(&password, NON_ALPHANUMERIC);
    Ok(format!("{scheme}://{user}:{password}@{hosts}{tail}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(url: &str, password: &str) -> Result<String, String> {
        with_password(url, || Ok(Some(password.to_owned()))).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_password_is_put_behind_the_user() {
        assert_eq!(
            with("postgres://me@h1,h2/db?a=b", "p:@/?%x").unwrap(),
            "postgres://me:p%3A%40%2F%3F%25x@h1,h2/db?a=b"
        );
        assert_eq!(with("postgres://me@h1", "x").unwrap(), "postgres://me:x@h1");
    }

    #[test]
    fn a_url_with_a_password_or_of_a_store_without_users_stays_as_it_is() {
        for url in ["postgres://me:mine@h1/db", "sqlite:/var/lib/x.db", "memory:"] {
            assert_eq!(with(url, "other").unwrap(), url);
        }
    }

    #[test]
    fn a_password_needs_a_user() {
        let message = with("postgres://h1/db", "secret").unwrap_err();
        assert!(message.contains("postgres://USER@h1/db") && !message.contains("secret"), "{message}");
    }
}
