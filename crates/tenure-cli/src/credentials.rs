//! The user and the password in a store URL: kept from being shown, and from being misread.

use crate::failure::Failure;

/// Stands for a password.
const HIDDEN: &str = "***";

/// A URL without its password. What might be a part of it is hidden as well: everything up to the last `@`, and what
/// stands where a port should be.
pub fn hide_secrets(value: &str) -> String {
    // A file has no password, and its path may contain anything.
    if value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("sqlite:")) {
        return value.to_owned();
    }
    let (before, rest) = value.split_at(value.find("//").map_or(0, |at| at + 2));
    match rest.rsplit_once('@') {
        Some((person, place)) => match person.split_once(':') {
            Some((user, _)) => format!("{before}{user}:{HIDDEN}@{}", without_parameter(place)),
            None => format!("{before}{person}@{}", without_parameter(place)),
        },
        None if before.is_empty() => value.to_owned(),
        None => {
            let (hosts, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            let hosts: Vec<String> = hosts.split(',').map(without_strange_port).collect();
            format!("{before}{}{}", hosts.join(","), without_parameter(tail))
        }
    }
}

/// Where the host was forgotten, `user:password` reads like a host and its port.
fn without_strange_port(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}:{HIDDEN}", name.split(':').next().unwrap_or_default())
        }
        _ => host.to_owned(),
    }
}

/// A password that was given as a parameter.
fn without_parameter(place: &str) -> String {
    let Some((place, query)) = place.split_once('?') else { return place.to_owned() };
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if ["password", "passwd", "pwd", "pass"].contains(&name) => {
            format!("{name}={HIDDEN}")
        }
        _ => pair.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').map(hidden).collect();
    format!("{place}?{}", pairs.join("&"))
}

/// The URL with a user and a password that every store reads in the same way.
///
/// # Errors
/// If the password has characters that end it in a URL, so that a part of it would be taken for a host or a parameter.
pub fn unambiguous(url: &str) -> Result<String, Failure> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(url.to_owned()) };
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    let strays = std::iter::once(path).chain(names).any(|part| part.contains('@'));
    if strays && rest.rsplit_once('@').is_some_and(|(person, _)| person.contains(':')) {
        return Err(Failure::Usage(format!(
            "store URL `{}`: there is an `@` after a `/` or `?`, so it is not clear where the password ends; in a \
             password, write `/` as %2F, `?` as %3F and `@` as %40, or give it in TENURE_STORE_PASSWORD",
            hide_secrets(url)
        )));
    }
    Ok(match authority.rsplit_once('@') {
        Some((person, hosts)) if person.contains('@') => {
            format!("{scheme}://{}@{hosts}{tail}", person.replace('@', "%40"))
        }
        _ => url.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for password in ["secret", "s@cret", "s/cret", "s?cret=1", "s#cret", "a@b/c?d@e#f:g", "5432/x"] {
            for scheme in ["postgres", "postgresql", "mysql", "mariadb", "zk", "zookeeper", "what"] {
                let shown = hide_secrets(&format!("{scheme}://me:{password}@h1:1,h2/db?x=1"));
                assert_eq!(shown, format!("{scheme}://me:***@h1:1,h2/db?x=1"));
            }
            assert_eq!(hide_secrets(&format!("//me:{password}@h1/db")), "//me:***@h1/db");
            assert_eq!(hide_secrets(&format!("me:{password}@h1/db")), "me:***@h1/db");
        }
        assert_eq!(hide_secrets("postgres://me:secret/db"), "postgres://me:***/db");
        assert_eq!(hide_secrets("postgres://h/db?password=secret&a=b"), "postgres://h/db?password=***&a=b");
        assert_eq!(hide_secrets("mysql://me@h/db?pwd=secret"), "mysql://me@h/db?pwd=***");
    }

    #[test]
    fn a_url_without_a_password_is_shown_as_it_is() {
        for url in [
            "postgres://me@h1/db",
            "postgres://h1:5432,h2:5432/db?x=1",
            "postgres://[::1]/db",
            "postgres://[::1]:5432/db",
            "sqlite:/var/lib/tenure:a@b.db",
            "./a.db",
            "raft://h1:7101,h2:7101",
            "zk://h1/base",
        ] {
            assert_eq!(hide_secrets(url), url);
        }
    }

    #[test]
    fn a_password_that_a_url_would_cut_is_refused_and_how_to_write_it_is_said() {
        for url in
            ["postgres://me:se/cret@h/db", "mysql://me:se?cret@h/db", "postgres://me:a@b/cret@h/db?x=1"]
        {
            let problem = unambiguous(url).unwrap_err().to_string();
            assert!(problem.contains("write `/` as %2F") && problem.contains("me:***@h/db"), "{problem}");
            assert!(!problem.contains("cret") && !problem.contains("a@b"), "{problem}");
        }
        let url = "postgres://me:secret@h/db?application_name=a@b";
        assert_eq!(unambiguous(url).unwrap(), url);
        assert_eq!(unambiguous("sqlite:/a:b@c").unwrap(), "sqlite:/a:b@c");
    }

    #[test]
    fn an_at_sign_in_a_password_ends_it_for_no_store() {
        assert_eq!(unambiguous("postgres://me:s@cr@t@h/db").unwrap(), "postgres://me:s%40cr%40t@h/db");
    }
}
