//! A node's address, looked at before it is used.
//!
//! Addresses come from the registry, where every node writes its own. Before a client is sent to one, or a
//! request with its secrets is, it must be the plain origin of a server, and nothing that a vandal would
//! like us to call.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

/// Longer than any host name with scheme and port.
const LONGEST: usize = 300;

/// `http://host:port` or `https://host:port`, and nothing else.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    authority: Authority,
}

/// Why an address is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// It is no URL.
    #[error("it is no URL; write http://host:port")]
    Malformed,
    /// It is neither http nor https.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// It has a user or a password.
    #[error("it has a user in it; leave that out")]
    UserInfo,
    /// It has more than scheme, host and port.
    #[error("it has a path or a query; write only scheme, host and port")]
    NotBare,
    /// Its host is one that no node of a cluster has.
    #[error("its host is no address of a server: unspecified, link-local, multicast, or not a host name")]
    Host,
}

impl Origin {
    /// The host, without the brackets of an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port, also where it is the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Whether it is reached with TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// `host:port`, as in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The same path and query on this origin.
    #[must_use]
    pub fn with_path_of(&self, uri: &Uri) -> Uri {
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// Whether a server of a cluster may have this address. Asked again of what a name resolves to.
    pub(super) fn may_be_called(address: IpAddr) -> bool {
        let address = address.to_canonical();
        let link_local = match address {
            IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
            IpAddr::V6(v6) => is_unicast_link_local(v6),
        };
        !(address.is_unspecified() || address.is_multicast() || link_local)
    }
}

fn is_unicast_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(address: &str) -> Result<Self, OriginError> {
        if address.len() > LONGEST {
            return Err(OriginError::Malformed);
        }
        let uri = Uri::from_str(address).map_err(|_| OriginError::Malformed)?;
        let scheme = uri.scheme().cloned().ok_or(OriginError::Malformed)?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(OriginError::Scheme);
        }
        let authority = uri.authority().cloned().ok_or(OriginError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(OriginError::UserInfo);
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || address.contains(['#', '?']) {
            return Err(OriginError::NotBare);
        }
        let origin = Self { scheme, authority };
        let host = origin.host();
        let named = |host: &str| {
            let fine = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            // `http://2130706433` is 127.0.0.1 to some: a name has a letter in it.
            !host.is_empty() && host.chars().all(fine) && host.contains(|c: char| c.is_ascii_alphabetic())
        };
        let fine = match host.parse::<IpAddr>() {
            Ok(address) => Self::may_be_called(address),
            Err(_) => named(host) && !host.starts_with("0x"),
        };
        let port = &origin.authority.as_str()[origin.authority.host().len()..];
        if !port.is_empty() && !port[1..].parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(OriginError::Malformed);
        }
        if fine { Ok(origin) } else { Err(OriginError::Host) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str) -> Option<OriginError> {
        address.parse::<Origin>().err()
    }

    #[test]
    fn origins_are_accepted() {
        for (address, host, port) in [
            ("http://127.0.0.1:8001", "127.0.0.1", 8001),
            ("http://[::1]:8001/", "::1", 8001),
            ("https://[2001:db8::1]", "2001:db8::1", 443),
            ("https://node-1.example", "node-1.example", 443),
            ("http://my_host", "my_host", 80),
        ] {
            let origin: Origin = address.parse().unwrap_or_else(|error| panic!("{address}: {error}"));
            assert_eq!((origin.host(), origin.port()), (host, port));
        }
    }

    #[test]
    fn what_a_vandal_would_register_is_refused() {
        for (address, error) in [
            ("javascript:alert(1)", OriginError::Malformed),
            ("//evil.example", OriginError::Malformed),
            ("evil.example", OriginError::Malformed),
            ("ftp://evil.example", OriginError::Scheme),
            ("http://me:secret@evil.example", OriginError::UserInfo),
            ("http://evil.example/path", OriginError::NotBare),
            ("http://evil.example/?a=b", OriginError::NotBare),
            ("http://evil.example#x", OriginError::NotBare),
            ("http://169.254.169.254", OriginError::Host),
            ("http://[::ffff:169.254.169.254]", OriginError::Host),
            ("http://[fe80::1]:80", OriginError::Host),
            ("http://0.0.0.0:80", OriginError::Host),
            ("http://255.255.255.255", OriginError::Host),
            ("http://[ff02::1]", OriginError::Host),
            ("http://2130706433", OriginError::Host),
            ("http://0xa9fea9fe", OriginError::Host),
            ("http://a:99999", OriginError::Malformed),
            ("http://a:0", OriginError::Malformed),
            ("http://a\r\nX: y", OriginError::Malformed),
            ("", OriginError::Malformed),
        ] {
            assert_eq!(refused(address), Some(error), "{address}");
        }
        assert_eq!(refused(&format!("http://{}.example", "a".repeat(400))), Some(OriginError::Malformed));
    }

    #[test]
    fn path_and_query_are_kept_and_cannot_change_the_host() {
        let origin: Origin = "http://10.0.0.7:8001".parse().unwrap();
        for path in ["/a/b?c=d%20e", "//evil.example/x", "/@evil.example"] {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(origin.with_path_of(&uri).to_string(), format!("http://10.0.0.7:8001{path}"));
        }
    }
}
