//! Passwords and TLS modes where the databases' own tools look for them: PGPASSWORD, ~/.pgpass, PGSSLMODE, MYSQL_PWD.

use std::path::PathBuf;

use crate::failure::Failure;

/// The modes that a PostgreSQL URL may name.
const MODES: [&str; 4] = ["disable", "prefer", "require", "verify-full"];

pub fn is_postgres(scheme: &str) -> bool {
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn is_mysql(scheme: &str) -> bool {
    ["mysql", "mariadb"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The password that the tools of this database would use for this user; `hosts` and `database` as in the URL.
pub fn password(scheme: &str, user: &str, hosts: &str, database: &str) -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
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
fn is_private(file: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
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

/// The TLS mode that the environment names for PostgreSQL.
///
/// # Errors
/// If Tenure has no such mode.
pub fn ssl_mode() -> Result<Option<String>, Failure> {
    match std::env::var("PGSSLMODE") {
        Ok(mode) if MODES.contains(&mode.as_str()) => Ok(Some(mode)),
        Ok(mode) if !mode.is_empty() => Err(Failure::Usage(format!(
            "PGSSLMODE={mode} is not supported; use disable, prefer, require or verify-full, or name sslmode in the \
             store URL"
        ))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
