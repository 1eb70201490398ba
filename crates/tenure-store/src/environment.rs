//! What the environment adds to a store URL: the password, and how PostgreSQL's tools are told to encrypt.
//!
//! The command and the library read the same variables, and here they mean the same. Variables are looked up through a
//! function, so that tests need not change those of their process.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// How a variable of the environment is looked up.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Why the environment is of no use for a store URL. No message contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A variable is not text.
    #[error("{0} in the environment is not UTF-8")]
    NotText(&'static str),
    /// The file with the password cannot be read.
    #[error("the password in `{file}` cannot be read: {source}")]
    PasswordFile {
        /// Which file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file with the password is empty.
    #[error("the password in `{0}` cannot be read: the file is empty")]
    EmptyPasswordFile(String),
    /// The URL names no user.
    #[error("there is a password, but no user in the store URL; write {example}")]
    NoUser {
        /// What the URL should look like.
        example: String,
    },
    /// Tenure has no such mode.
    #[error(
        "PGSSLMODE={0} is not supported; use disable, prefer, require or verify-full, or name sslmode in the store URL"
    )]
    SslMode(String),
}

/// The URL with the password of its user, and with the mode of encryption that `PGSSLMODE` names, unless it has them.
///
/// The password is that of the file, or else of `TENURE_STORE_PASSWORD`, or else that which the tools of the database
/// would use: `PGPASSWORD` and `~/.pgpass`, or `MYSQL_PWD`. Stores without users have none.
///
/// # Errors
/// [`EnvironmentError`].
pub fn with_credentials(
    url: &str,
    password_file: Option<&Path>,
    variable: Variable<'_>,
) -> Result<String, EnvironmentError> {
    let Some((scheme, _)) = url.split_once("://") else { return Ok(url.to_owned()) };
    let url = with_password(url, || password(password_file, variable), variable)?;
    if !is_postgres(scheme) {
        return Ok(url);
    }
    match text("PGSSLMODE", variable)? {
        Some(mode) if MODES.contains(&mode.as_str()) => Ok(with_parameter(&url, "sslmode", &mode)),
        Some(mode) => Err(EnvironmentError::SslMode(mode)),
        None => Ok(url),
    }
}

/// Adds a parameter to a URL, unless it has it.
#[must_use]
pub fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let has = |pair: &str| pair.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    if url.split_once('?').is_some_and(|(_, query)| query.split('&').any(has)) {
        return url.to_owned();
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{name}={value}")
}

/// The modes that a PostgreSQL URL may name.
const MODES: [&str; 4] = ["disable", "prefer", "require", "verify-full"];

fn is_postgres(scheme: &str) -> bool {
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn is_mysql(scheme: &str) -> bool {
    ["mysql", "mariadb"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// A variable that says something.
fn text(name: &'static str, variable: Variable<'_>) -> Result<Option<String>, EnvironmentError> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    value.into_string().map(Some).map_err(|_| EnvironmentError::NotText(name))
}

/// The password from the file, or else from the environment.
fn password(file: Option<&Path>, variable: Variable<'_>) -> Result<Option<String>, EnvironmentError> {
    let Some(file) = file else { return text("TENURE_STORE_PASSWORD", variable) };
    let shown = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(source) => return Err(EnvironmentError::PasswordFile { file: shown, source }),
    };
    // The end of the line is an editor's, and no part of it.
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    match password {
        "" => Err(EnvironmentError::EmptyPasswordFile(shown)),
        password => Ok(Some(password.to_owned())),
    }
}

/// Puts a password behind the user of a URL, unless there is one.
fn with_password(
    url: &str,
    password: impl FnOnce() -> Result<Option<String>, EnvironmentError>,
    variable: Variable<'_>,
) -> Result<String, EnvironmentError> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(url.to_owned()) };
    // A group of Tenure's own nodes has no users: certificates say who may ask.
    if scheme.eq_ignore_ascii_case("raft") {
        return Ok(url.to_owned());
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@');
    if user.is_some_and(|(user, _)| user.contains(':')) {
        return Ok(url.to_owned());
    }
    let database = tail.trim_start_matches('/').split('?').next().unwrap_or_default();
    let usual = || usual_password(scheme, user?.0, user?.1, database, variable);
    let Some(password) = password()?.or_else(usual) else { return Ok(url.to_owned()) };
    let Some((user, hosts)) = user.filter(|(user, _)| !user.is_empty()) else {
        // Where the host was forgotten, `user:password` reads like a host and its port.
        let is_port = |host: &str| host.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok());
        let hosts = if authority.split(',').all(is_port) { authority } else { "HOST" };
        return Err(EnvironmentError::NoUser { example: format!("{scheme}://USER@{hosts}/{database}") });
    };
    let password = utf8_percent_encode(&password, NON_ALPHANUMERIC);
    Ok(format!("{scheme}://{user}:{password}@{hosts}{tail}"))
}

/// The password that the tools of this database would use for this user; `hosts` and `database` as in the URL.
fn usual_password(
    scheme: &str,
    user: &str,
    hosts: &str,
    database: &str,
    variable: Variable<'_>,
) -> Option<String> {
    let set = |name| text(name, variable).ok().flatten();
    if is_mysql(scheme) {
        return set("MYSQL_PWD");
    }
    if !is_postgres(scheme) {
        return None;
    }
    set("PGPASSWORD").or_else(|| {
        let file = set("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| Some(PathBuf::from(set("HOME")?).join(".pgpass")))?;
        if !is_private(&file) {
            return None;
        }
        let text = std::fs::read_to_string(file).ok()?;
        let (host, port) = first(hosts);
        find(&text, [host, port, database, user])
    })
}

/// As `psql` does: what others may read is no secret.
fn is_private(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o077 == 0)
}

/// The first of several hosts, and its port.
fn first(hosts: &str) -> (&str, &str) {
    let host = hosts.split(',').next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "5432"),
    }
}

/// The password of the first line that fits: `host:port:database:user:password`, where `*` fits everything.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = fields(line).into_iter();
        let fits =
            wanted.iter().all(|wanted| fields.next().is_some_and(|field| field == "*" || field == *wanted));
        fits.then(|| fields.next()).flatten()
    })
}

/// The fields of a line; a backslash keeps the next character from meaning anything.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => field.extend(characters.next()),
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(url: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        with_credentials(url, None, &variable).map_err(|error| error.to_string())
    }

    const OURS: &str = "TENURE_STORE_PASSWORD";

    #[test]
    fn a_password_is_put_behind_the_user() {
        assert_eq!(
            with("postgres://me@h1,h2/db?a=b", &[(OURS, "p:@/?%x")]).unwrap(),
            "postgres://me:p%3A%40%2F%3F%25x@h1,h2/db?a=b"
        );
        assert_eq!(with("postgres://me@h1", &[(OURS, "x")]).unwrap(), "postgres://me:x@h1");
    }

    #[test]
    fn a_url_with_a_password_or_of_a_store_without_users_stays_as_it_is() {
        for url in ["postgres://me:mine@h1/db", "sqlite:/var/lib/x.db", "memory:", "raft://h1:7101,h2:7101"] {
            assert_eq!(with(url, &[(OURS, "other"), ("MYSQL_PWD", "other")]).unwrap(), url);
        }
    }

    #[test]
    fn a_password_needs_a_user() {
        let message = with("postgres://h1/db", &[(OURS, "secret")]).unwrap_err();
        assert!(message.contains("postgres://USER@h1/db") && !message.contains("secret"), "{message}");
        let message = with("postgres://me:secret/db", &[(OURS, "secret")]).unwrap_err();
        assert!(message.contains("postgres://USER@HOST/db") && !message.contains("secret"), "{message}");
    }

    #[test]
    fn what_the_tools_of_a_database_use_comes_after_what_is_meant_for_tenure() {
        let all = [(OURS, "ours"), ("PGPASSWORD", "pg"), ("MYSQL_PWD", "my")];
        assert_eq!(with("mysql://me@h/db", &all).unwrap(), "mysql://me:ours@h/db");
        assert_eq!(with("mariadb://me@h/db", &all[1..]).unwrap(), "mariadb://me:my@h/db");
        assert_eq!(with("postgresql://me@h/db", &all[1..]).unwrap(), "postgresql://me:pg@h/db");
        assert_eq!(with("zk://me@h/db", &all[1..]).unwrap(), "zk://me@h/db");
    }

    #[test]
    fn the_mode_of_encryption_is_taken_unless_the_url_names_one() {
        let mode = [("PGSSLMODE", "disable")];
        assert_eq!(with("postgres://me@h/db", &mode).unwrap(), "postgres://me@h/db?sslmode=disable");
        let own = "postgres://me@h/db?sslmode=require";
        assert_eq!(with(own, &mode).unwrap(), own);
        assert_eq!(with("mysql://me@h/db", &mode).unwrap(), "mysql://me@h/db");
        let refused = with("postgres://me@h/db", &[("PGSSLMODE", "allow")]).unwrap_err();
        assert!(refused.contains("PGSSLMODE=allow is not supported; use disable"), "{refused}");
    }

    #[test]
    fn a_line_of_the_password_file_fits_by_host_port_database_and_user() {
        let text = "# mine\ndb1:5432:app:me:first\n*:*:*:me:s\\:e\\\\c:ret\n";
        let find = |wanted| find(text, wanted);
        assert_eq!(find(["db1", "5432", "app", "me"]).as_deref(), Some("first"));
        assert_eq!(find(["db2", "5432", "app", "me"]).as_deref(), Some("s:e\\c:ret"));
        assert_eq!(find(["db1", "5432", "app", "you"]), None);
        assert_eq!((first("h1:6432,h2"), first("h1")), (("h1", "6432"), ("h1", "5432")));
    }
}
