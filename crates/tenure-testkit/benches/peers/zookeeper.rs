//! Who stands on ZooKeeper: Tenure, Curator, kazoo and tooz.

use tenure_testkit::others::{Candidacy, Library};

use crate::common::Outcome;
use crate::common::cast::{Network, Peer, Seat};
use crate::common::process::Troupe;

/// Whose candidates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tenure,
    Other(Library),
}

impl Kind {
    pub const CURATOR: Self = Self::Other(Library::CuratorLatch);
    pub const KAZOO: Self = Self::Other(Library::Kazoo);
    pub const TOOZ: Self = Self::Other(Library::Tooz);

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenure => "Tenure",
            Self::Other(Library::CuratorLatch) => "Curator's LeaderLatch",
            Self::Other(Library::CuratorSelector) => "Curator's LeaderSelector",
            Self::Other(Library::Kazoo) => "kazoo's Election",
            Self::Other(Library::Tooz) => "tooz",
        }
    }

    /// Where its candidates are.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Tenure => "/tenure/default/lines/bench",
            Self::Other(Library::CuratorLatch) => "/latch/bench",
            Self::Other(Library::CuratorSelector) => "/selector/bench",
            Self::Other(Library::Kazoo) => "/kazoo/bench",
            Self::Other(Library::Tooz) => "/tooz/bench/leader",
        }
    }

    /// Who stands, by the data of its znode.
    pub fn candidate(self, data: &[u8]) -> Outcome<String> {
        match self {
            Self::Tenure => {
                let document: serde_json::Value = serde_json::from_slice(data)?;
                Ok(document["node"].as_str().ok_or("a candidate without a name")?.to_owned())
            }
            Self::Other(_) => Ok(String::from_utf8(data.to_vec())?),
        }
    }

    /// Starts one.
    pub fn start(self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let hosts = format!("127.0.0.1:{}", seat.port);
        match self {
            Self::Tenure => {
                troupe.launch(seat.id, &[&format!("zk://{hosts}"), &seat.ttl.as_millis().to_string()])
            }
            Self::Other(library) => {
                let (path, id, timeout) = (self.line(), seat.id, seat.ttl);
                let candidacy = Candidacy { hosts: &hosts, path, id, timeout, witness: None };
                troupe.admit(seat.id, library.candidate(&candidacy))
            }
        }
    }
}

/// Such candidates on the server of this port.
pub struct OnZooKeeper {
    pub kind: Kind,
    pub port: u16,
}

impl Peer for OnZooKeeper {
    fn name(&self) -> String {
        self.kind.name().to_owned()
    }

    fn network(&self) -> Network<'_> {
        Network::Server(self.port)
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        self.kind.start(troupe, seat)
    }
}
