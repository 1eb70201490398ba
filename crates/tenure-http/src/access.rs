//! Who may do what: a token for what changes something, and no stranger's page in between.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, StatusCode};

use crate::problem::Problem;

/// Shorter ones can be guessed.
const SHORTEST: usize = 16;

/// A secret that whoever wants to change something must show.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the token in `{path}` cannot be read: {source}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It can be guessed, or cannot be sent.
    #[error(
        "the token in `{path}` is unusable: it needs {SHORTEST} to 4096 visible ASCII characters in one line"
    )]
    Unusable {
        /// Which file.
        path: String,
    },
}

impl Token {
    /// The first line of a file.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Unreadable { path: shown.clone(), source })?;
        Self::new(text.trim_end_matches(['\r', '\n'])).ok_or(TokenError::Unusable { path: shown })
    }

    /// This one, if it is long enough and can be sent in a header.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        let usable =
            (SHORTEST..=4096).contains(&secret.len()) && secret.bytes().all(|b| b.is_ascii_graphic());
        usable.then(|| Self(secret.as_bytes().to_vec()))
    }

    /// Compares every byte, whatever the first ones said, so that the time taken tells nothing.
    fn is(&self, shown: &[u8]) -> bool {
        let mut different = u8::from(self.0.len() != shown.len());
        for (index, byte) in self.0.iter().enumerate() {
            different |= byte ^ shown.get(index).copied().unwrap_or(0);
        }
        std::hint::black_box(different) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The rules of one server.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// What changes something needs this; without one, nothing can be changed.
    pub token: Option<Token>,
    /// Under which names this node is known, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

impl Access {
    /// Whether a request may change something.
    pub(crate) fn may_change(&self, headers: &HeaderMap) -> Result<(), Problem> {
        self.same_origin(headers)?;
        let refused = |title: &str| Problem::new(StatusCode::UNAUTHORIZED, title);
        let Some(token) = &self.token else {
            let problem = Problem::new(StatusCode::FORBIDDEN, "nothing can be changed through this node");
            return Err(problem.detail("it was started without a token; start it with --token-file FILE"));
        };
        let shown = headers.get(AUTHORIZATION).ok_or_else(|| {
            refused("this needs the token").detail("send it as `Authorization: Bearer TOKEN`")
        })?;
        let (scheme, shown) = shown.as_bytes().split_at(shown.len().min(7));
        if scheme.eq_ignore_ascii_case(b"bearer ") && token.is(shown) {
            Ok(())
        } else {
            Err(refused("this is not the token"))
        }
    }

    /// A browser says from whose page a request comes. Only our own may change anything.
    fn same_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let foreign = match (headers.get(ORIGIN), text(HOST)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(host)) => {
                let origin = text(ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
                origin.is_none_or(|origin| !origin.eq_ignore_ascii_case(host))
            }
        };
        let cross_site =
            headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
        if foreign || cross_site {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "another site's page may not change anything here",
            ));
        }
        Ok(())
    }

    /// Whether this node goes by the name that a request calls it. A name of somebody else's that leads
    /// here is how a page in a browser would read what is not its own.
    pub(crate) fn knows(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let name = name.trim_end_matches('.');
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn access() -> Access {
        Access { token: Token::new("correct-horse-battery"), hosts: vec![String::from("node-1.example")] }
    }

    #[test]
    fn only_the_token_opens() {
        let access = access();
        let may = |pairs: &[(&'static str, &str)]| access.may_change(&with(pairs)).is_ok();
        assert!(may(&[("authorization", "Bearer correct-horse-battery")]));
        assert!(may(&[("authorization", "bearer correct-horse-battery")]));
        for wrong in [
            "Bearer correct-horse-batterx",
            "Bearer correct",
            "Bearer ",
            "Basic x",
            "",
            "Bearer correct-horse-battery2",
        ] {
            assert!(!may(&[("authorization", wrong)]), "{wrong}");
        }
        assert!(!may(&[]));
        assert!(Access::default().may_change(&with(&[("authorization", "Bearer x")])).is_err());
        assert!(Token::new("short").is_none() && Token::new("with a space in the middle").is_none());
    }

    #[test]
    fn another_sites_page_changes_nothing_even_with_the_token() {
        let access = access();
        let may = |more: &[(&'static str, &str)]| {
            let mut headers =
                with(&[("authorization", "Bearer correct-horse-battery"), ("host", "127.0.0.1:8001")]);
            headers.extend(with(more));
            access.may_change(&headers).is_ok()
        };
        assert!(may(&[("origin", "http://127.0.0.1:8001")]));
        assert!(may(&[("sec-fetch-site", "same-origin")]));
        assert!(!may(&[("origin", "http://127.0.0.1:8002")]));
        assert!(!may(&[("origin", "https://evil.example")]));
        assert!(!may(&[("origin", "null")]));
        assert!(!may(&[("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn a_node_goes_by_addresses_localhost_and_its_own_names() {
        let access = access();
        for known in
            ["127.0.0.1:8001", "[::1]:8001", "10.1.2.3", "localhost:1", "LOCALHOST.", "node-1.example:443"]
        {
            assert!(access.knows(known), "{known}");
        }
        for unknown in ["evil.example", "node-1.example.evil", "127.0.0.1.evil.example:80", ""] {
            assert!(!access.knows(unknown), "{unknown}");
        }
    }
}
