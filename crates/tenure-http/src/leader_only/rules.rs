//! Which requests are for the leader only.

use http::{Method, Request};

/// Which requests are for the leader only: by default those that may change something, whatever their path.
///
/// A path rule counts for every method, and the longest prefix that fits decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether a request of a method that only reads is for the leader too.
    reads: bool,
    /// Prefixes, the longest first, and whether they are for the leader.
    paths: Vec<(String, bool)>,
}

impl Rules {
    /// Everything.
    #[must_use]
    pub const fn everything() -> Self {
        Self { reads: true, paths: Vec::new() }
    }

    /// What may change something: all methods but GET, HEAD, OPTIONS and TRACE. So is an upgrade (a
    /// WebSocket is a GET, but who knows what will be said on it).
    #[must_use]
    pub const fn writes() -> Self {
        Self { reads: false, paths: Vec::new() }
    }

    /// This path, and everything below it, is for the leader, or for everybody.
    #[must_use]
    pub fn path(mut self, prefix: impl Into<String>, leader_only: bool) -> Self {
        let prefix = prefix.into();
        let prefix = prefix.trim_end_matches('/').to_owned();
        self.paths.retain(|(known, _)| *known != prefix);
        self.paths.push((prefix, leader_only));
        self.paths.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        self
    }

    /// Whether a request is for the leader only.
    #[must_use]
    pub fn apply_to<B>(&self, request: &Request<B>) -> bool {
        let path = request.uri().path();
        if let Some((_, leader_only)) = self.paths.iter().find(|(prefix, _)| is_below(path, prefix)) {
            // The program may read such a path in another way than we do.
            return *leader_only || is_ambiguous(path);
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
        self.reads || !reads || super::headers::upgrade(request.headers()).is_some()
    }
}

/// `/jobs` is above `/jobs/7`, but not above `/jobsite`.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_ambiguous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["/.", "//", "\\", "%2e", "%2f", "%5c"].iter().any(|doubt| path.contains(doubt))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(rules: &Rules, method: &str, path: &str) -> bool {
        rules.apply_to(&Request::builder().method(method).uri(path).body(()).unwrap())
    }

    #[test]
    fn writes_are_for_the_leader_and_reads_for_everybody() {
        let rules = Rules::writes();
        for method in ["POST", "PUT", "PATCH", "DELETE", "PURGE"] {
            assert!(asked(&rules, method, "/x"), "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(!asked(&rules, method, "/x"), "{method}");
            assert!(asked(&Rules::everything(), method, "/x"), "{method}");
        }
    }

    #[test]
    fn a_socket_may_write() {
        let request = Request::get("/s").header("connection", "Upgrade").header("upgrade", "websocket");
        assert!(Rules::writes().apply_to(&request.body(()).unwrap()));
    }

    #[test]
    fn the_longest_path_decides_for_every_method() {
        let rules = Rules::writes().path("/fresh", true).path("/fresh/public/", false);
        assert!(asked(&rules, "GET", "/fresh") && asked(&rules, "GET", "/fresh/x?y=/fresh/public"));
        assert!(!asked(&rules, "POST", "/fresh/public/x"));
        assert!(!asked(&rules, "GET", "/freshness"));
        for path in ["/fresh/public/../x", "/fresh/public/%2E%2e/x", "/fresh/public//x"] {
            assert!(asked(&rules, "POST", path), "{path}: the program may take it for another");
        }
        assert!(asked(&Rules::writes().path("/", true), "GET", "/anything"));
    }
}
