//! The store URL: where the servers are, and below which znode.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use tenure_store::{StoreUrl, UrlError};

use crate::access::{self, Access};
use crate::foreign::Foreign;
use crate::layout::Layout;

/// Below which everything of Tenure is, unless the URL says otherwise.
const BASE: &str = "/tenure";
const EXAMPLE: &str = "zk://h1:2181,h2:2181/tenure";
/// What may stand in the URL beside what every store understands, and what is about access.
const KNOWN: [&str; 2] = ["layout", "tick"];

/// An ensemble, and Tenure's place on it.
#[derive(Clone)]
pub(crate) struct Address {
    /// `h1:2181,h2:2181`; empty if a client was given.
    pub hosts: String,
    /// Absolute, without a slash at its end.
    pub base: String,
    pub access: Access,
    /// The servers' tick, if the URL tells it.
    pub tick: Option<Duration>,
    /// Elections that are shared with another library.
    pub foreign: Option<Foreign>,
}

impl Address {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, UrlError> {
        let (authority, path) = parts(url)?;
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
        if hosts.is_empty() || hosts.split(',').any(|host| host.is_empty() || host.starts_with(':')) {
            return Err(wrong("a host is missing"));
        }
        let with_port = |host: &str| {
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            if has_port { host.to_owned() } else { format!("{host}:2181") }
        };
        let hosts = hosts.split(',').map(with_port).collect::<Vec<_>>().join(",");
        let user = user.map(decoded).transpose()?;
        if user.as_ref().is_some_and(|user| !user.contains(':')) {
            return Err(wrong("the user has no password"));
        }
        let access = Access::of(url, user)?;
        access.check(&hosts)?;
        Self::at(url, path, hosts, access)
    }

    /// The same for a client that was given, which has its servers and its user already.
    pub(crate) fn of_client(url: &StoreUrl) -> Result<Self, UrlError> {
        let (authority, path) = parts(url)?;
        let access = Access::of(url, None)?;
        if !authority.is_empty() || !access.is_silent() {
            return Err(UrlError::Rest {
                scheme: "zk",
                problem: String::from("servers, user and encryption are those of the client that was given"),
                example: "zk:///tenure",
            });
        }
        Self::at(url, path, String::new(), access)
    }

    fn at(url: &StoreUrl, path: &str, hosts: String, access: Access) -> Result<Self, UrlError> {
        let tick = url.parameter("tick").map(milliseconds).transpose()?;
        let foreign = match url.parameter("layout") {
            None | Some("tenure") => None,
            Some(name) => Some(Foreign { layout: layout_named(name)?, base: shared(path)? }),
        };
        // What is Tenure's own stays apart from what is shared.
        let base = if foreign.is_some() { BASE.to_owned() } else { base(path)? };
        Ok(Self { hosts, base, access, tick, foreign })
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address")
            .field("hosts", &self.hosts)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// What stands before the first slash, and the rest.
fn parts(url: &StoreUrl) -> Result<(&str, &str), UrlError> {
    let known: Vec<&str> = KNOWN.into_iter().chain(access::KNOWN).collect();
    url.only(&known)?;
    let rest = url.rest.strip_prefix("//").ok_or_else(|| wrong("`//` is missing"))?;
    Ok(rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

fn base(path: &str) -> Result<String, UrlError> {
    let path = decoded(path.trim_end_matches('/'))?;
    if path.is_empty() {
        return Ok(BASE.to_owned());
    }
    let good = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    if !path[1..].split('/').all(good) || path == "/zookeeper" || path.starts_with("/zookeeper/") {
        return Err(wrong(&format!("`{path}` is no path for a znode of ours")));
    }
    Ok(path)
}

/// Where the elections of others are; empty for the root.
fn shared(path: &str) -> Result<String, UrlError> {
    if path.trim_end_matches('/').is_empty() { Ok(String::new()) } else { base(path) }
}

fn layout_named(name: &str) -> Result<Layout, UrlError> {
    let problem = "it is tenure, curator-latch, curator-selector, kazoo or go-leaderelection";
    Layout::named(name).ok_or_else(|| UrlError::parameter("layout", name, problem, "layout=curator-latch"))
}

fn decoded(text: &str) -> Result<String, UrlError> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| wrong("it is not UTF-8"))?.into_owned())
}

fn milliseconds(value: &str) -> Result<Duration, UrlError> {
    let number = value.strip_suffix("ms").and_then(|number| number.parse().ok()).filter(|&ms: &u64| ms > 0);
    let problem = "it is the tickTime of the servers, in milliseconds";
    number
        .map(Duration::from_millis)
        .ok_or_else(|| UrlError::parameter("tick", value, problem, "tick=2000ms"))
}

fn wrong(problem: &str) -> UrlError {
    UrlError::Rest { scheme: "zk", problem: problem.to_owned(), example: EXAMPLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address, UrlError> {
        Address::of(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn fuzz_whatever_a_url_says_it_is_understood_or_refused() {
        let samples = [
            "zk://user:pass@a:2181,b:2181/chroot?layout=curator-latch&auth=sasl&tls-ca=/a/b",
            "zookeeper://[::1]:2181",
            "zk://a/x/y?layout=kazoo",
        ];
        tenure_testkit::fuzz::fuzz_text(&samples, |url| {
            let _ = StoreUrl::parse(url).map(|url| Address::of(&url));
        });
    }

    #[test]
    fn a_url_is_taken_apart() {
        let all = address("zk://me:se%40cret@h1:2182,h2/apps/blue?tick=500ms").unwrap();
        assert_eq!((all.hosts.as_str(), all.base.as_str()), ("h1:2182,h2:2181", "/apps/blue"));
        assert_eq!(all.tick, Some(Duration::from_millis(500)));
        assert!(!format!("{all:?}").contains("cret"), "nothing secret is shown");
        let little = address("zk://h1").unwrap();
        assert_eq!((little.hosts.as_str(), little.base.as_str()), ("h1:2181", "/tenure"));
    }

    #[test]
    fn a_layout_of_others_has_its_elections_at_the_path_and_tenure_its_own_elsewhere() {
        let shared = address("zk://h1/services/leaders?layout=kazoo").unwrap();
        assert_eq!(shared.base, "/tenure");
        let foreign = shared.foreign.unwrap();
        assert_eq!((foreign.layout, foreign.base.as_str()), (Layout::Kazoo, "/services/leaders"));
        assert!(address("zk://h1/x?layout=tenure").unwrap().foreign.is_none());
        assert!(address("zk://h1/x?layout=etcd").unwrap_err().to_string().contains("curator-latch"));
    }

    #[test]
    fn a_client_that_was_given_brings_its_servers_along() {
        let of_client = |url: &str| Address::of_client(&StoreUrl::parse(url).unwrap());
        let given = of_client("zk:///apps/blue?tick=500ms&acl=creator").unwrap();
        assert_eq!((given.hosts.as_str(), given.base.as_str()), ("", "/apps/blue"));
        for url in ["zk://h1/apps/blue", "zk:///apps/blue?sslrootcert=r.pem"] {
            assert!(of_client(url).unwrap_err().to_string().contains("client that was given"), "{url}");
        }
    }

    #[test]
    fn a_wrong_url_names_the_part_that_is_wrong() {
        let message = |url: &str| address(url).unwrap_err().to_string();
        assert!(message("zk:h1").contains("`//` is missing"));
        assert!(message("zk:///tenure").contains("host is missing"));
        assert!(message("zk://h1,,h2").contains("host is missing"));
        assert!(message("zk://me@h1").contains("no password"));
        assert!(message("zk://h1/a/../b").contains("no path"));
        assert!(message("zk://h1/zookeeper/x").contains("no path"));
        assert!(message("zk://h1/?tick=2").contains("tick=2000ms"));
        assert!(message("zk://h1/?tock=2").contains("unknown parameter `tock`"));
    }
}
