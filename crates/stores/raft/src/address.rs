//! The store URL: `raft://h1:7101,h2:7101,h3:7101?data=DIR&listen=h1:7101`.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tenure_store::{StoreUrl, UrlError};

use crate::tls::{Files, is_loopback};

const EXAMPLE: &str = "raft://h1:7101,h2:7101,h3:7101";
const KNOWN: [&str; 8] =
    ["data", "listen", "bind", "plaintext", "tls-cert", "tls-key", "tls-ca", "heartbeat"];
const DEFAULT_HEARTBEAT: Duration = Duration::from_millis(100);

/// Where the group is, and what this process is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Where members are reached, or shall be: sorted, each once.
    pub peers: Vec<String>,
    /// This process is a member; otherwise it only uses the group.
    pub seat: Option<Seat>,
    pub files: Option<Files>,
    /// How often the member that leads shows that it is alive. All patience is a multiple of it.
    pub heartbeat: Duration,
}

/// A member's own place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its directory.
    pub data: PathBuf,
    /// Where the others reach it.
    pub address: String,
    /// Where it listens, if not there.
    pub bind: Option<String>,
}

fn wrong(problem: impl Into<String>) -> UrlError {
    UrlError::Rest { scheme: "raft", problem: problem.into(), example: EXAMPLE }
}

impl Address {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&KNOWN)?;
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let parameter = |name: &str| url.parameter(name).map(decoded);
        let hosts = url.rest.strip_prefix("//").ok_or_else(|| wrong("it begins with `//`"))?;
        let mut peers = Vec::new();
        for peer in hosts.trim_end_matches('/').split(',') {
            host_of(peer)?;
            peers.push(peer.to_owned());
        }
        peers.sort();
        peers.dedup();
        let seat = match (parameter("data"), parameter("listen")) {
            (None, None) => None,
            (Some(data), listen) => Some(seat(data, listen, parameter("bind"), &peers)?),
            (None, Some(listen)) => {
                return Err(bad(
                    "listen",
                    listen,
                    "only a member listens, and a member has a directory",
                    "data=/var/lib/tenure",
                ));
            }
        };
        let address = Self {
            files: files([parameter("tls-cert"), parameter("tls-key"), parameter("tls-ca")])?,
            heartbeat: parameter("heartbeat").map_or(Ok(DEFAULT_HEARTBEAT), |value| heartbeat(&value))?,
            peers,
            seat,
        };
        address.refuse_open_networks(parameter("plaintext").as_deref())?;
        Ok(address)
    }

    /// Unencrypted connections do not leave the machine, unless somebody says that they may.
    fn refuse_open_networks(&self, plaintext: Option<&str>) -> Result<(), UrlError> {
        let allowed = match plaintext {
            None | Some("false") => false,
            Some("" | "true") => true,
            Some(other) => {
                return Err(bad("plaintext", other.to_owned(), "it is true or false", "plaintext=true"));
            }
        };
        let own = self.seat.iter().flat_map(|seat| std::iter::once(&seat.address).chain(&seat.bind));
        let open = self.peers.iter().chain(own).find(|peer| !host_of(peer).is_ok_and(is_loopback));
        match open {
            Some(peer) if self.files.is_none() && !allowed => Err(wrong(format!(
                "{peer} is reached over a network, where everybody could read along and join in; name the \
                 group's certificates with tls-cert=, tls-key= and tls-ca=, or say plaintext=true \
                 (--raft-plaintext) if nobody else is on it"
            ))),
            _ => Ok(()),
        }
    }
}

/// The host of `host:port` or `[host]:port`.
pub(crate) fn host_of(peer: &str) -> Result<&str, UrlError> {
    let (host, port) =
        peer.rsplit_once(':').ok_or_else(|| wrong(format!("`{peer}` names no port, such as {peer}:7101")))?;
    if port.parse::<u16>().is_err() {
        return Err(wrong(format!("`{port}` in `{peer}` is no port")));
    }
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains(['/', '@', '?', '#']) {
        return Err(wrong(format!("`{peer}` names no host")));
    }
    Ok(host)
}

fn seat(
    data: String,
    listen: Option<String>,
    bind: Option<String>,
    peers: &[String],
) -> Result<Seat, UrlError> {
    let address = match listen {
        Some(listen) => listen,
        // With one address there is no doubt whose it is.
        None if peers.len() == 1 => peers[0].clone(),
        None => {
            return Err(wrong(
                "there are several addresses, and a member must say which is its own: listen=h1:7101 (--raft-listen)",
            ));
        }
    };
    host_of(&address)?;
    bind.as_deref().map(host_of).transpose()?;
    Ok(Seat { data: PathBuf::from(data), address, bind })
}

fn files(named: [Option<String>; 3]) -> Result<Option<Files>, UrlError> {
    match named {
        [None, None, None] => Ok(None),
        [Some(certificate), Some(key), Some(authority)] => {
            Ok(Some(Files { certificate: certificate.into(), key: key.into(), authority: authority.into() }))
        }
        _ => Err(wrong("both sides show a certificate: tls-cert=, tls-key= and tls-ca= go together")),
    }
}

fn heartbeat(value: &str) -> Result<Duration, UrlError> {
    let number = value.strip_suffix("ms").and_then(|number| number.parse().ok());
    let heartbeat = number.filter(|millis| (10..=5000).contains(millis)).map(Duration::from_millis);
    heartbeat
        .ok_or_else(|| bad("heartbeat", value.to_owned(), "it is between 10ms and 5000ms", "heartbeat=100ms"))
}

fn bad(name: &'static str, value: String, problem: &str, example: &'static str) -> UrlError {
    UrlError::BadParameter { name, value, problem: problem.to_owned(), example }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Address, UrlError> {
        Address::of(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn fuzz_whatever_a_url_says_it_is_understood_or_refused() {
        let samples = [
            "raft://a:7101,b:7101,c:7101?data=/a/b&listen=a:7101&heartbeat=50ms&plaintext=true",
            "raft://[::1]:1?tls-cert=/a&tls-key=/b&tls-ca=/c",
            "raft://a:1?bind=0.0.0.0:1",
        ];
        tenure_testkit::fuzz::fuzz_text(&samples, |url| {
            let _ = StoreUrl::parse(url).map(|url| Address::of(&url));
        });
    }

    #[test]
    fn a_url_names_the_group_and_a_member_its_own_place() {
        let client = of("raft://localhost:7102,127.0.0.1:7101").unwrap();
        assert_eq!(
            (client.peers, client.seat),
            (vec!["127.0.0.1:7101".into(), "localhost:7102".into()], None)
        );
        let member =
            of("raft://127.0.0.1:1,127.0.0.2:1?data=%2Fvar%2Flib%2Fx%3F&listen=127.0.0.2:1").unwrap();
        let seat = Seat { data: PathBuf::from("/var/lib/x?"), address: "127.0.0.2:1".into(), bind: None };
        assert_eq!(member.seat, Some(seat));
        assert_eq!(of("raft://[::1]:9?data=d").unwrap().seat.unwrap().address, "[::1]:9");
    }

    #[test]
    fn a_wrong_url_is_refused_by_the_part_that_is_wrong() {
        let message = |url: &str| of(url).unwrap_err().to_string();
        assert!(message("raft:h1:7101").contains("begins with `//`"));
        assert!(message("raft://localhost").contains("names no port"));
        assert!(message("raft://localhost:x").contains("is no port"));
        assert!(message("raft://127.0.0.1:1,127.0.0.2:1?data=d").contains("which is its own"));
        assert!(message("raft://127.0.0.1:1?listen=127.0.0.1:1").contains("data=/var/lib/tenure"));
        assert!(message("raft://127.0.0.1:1?tls-cert=a").contains("go together"));
        assert!(message("raft://127.0.0.1:1?heartbeat=1s").contains("between 10ms"));
        assert!(message("raft://127.0.0.1:1?pool=1").contains("unknown parameter"));
    }

    #[test]
    fn nothing_unencrypted_leaves_the_machine_unless_it_is_said() {
        assert!(of("raft://h1:7101").unwrap_err().to_string().contains("--raft-plaintext"));
        assert!(of("raft://127.0.0.1:1?data=d&bind=0.0.0.0:1").is_err());
        assert!(of("raft://h1:7101?plaintext=true").is_ok());
        assert!(of("raft://h1:7101?tls-cert=a&tls-key=b&tls-ca=c").is_ok());
    }
}
