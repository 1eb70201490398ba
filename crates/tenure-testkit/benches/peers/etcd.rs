//! etcd's own election, in Go, of which `etcdctl elect` is made.

use std::path::PathBuf;

use tenure_testkit::others::etcd;

use crate::common::Outcome;
use crate::common::cast::{Network, Peer, Seat};
use crate::common::process::Troupe;

pub struct EtcdElection {
    program: PathBuf,
    port: u16,
}

impl EtcdElection {
    pub const fn program(&self) -> &PathBuf {
        &self.program
    }

    /// On the server of this port.
    pub fn on(port: u16) -> Self {
        Self { program: etcd::program(), port }
    }
}

impl Peer for EtcdElection {
    fn name(&self) -> String {
        String::from("etcd's election")
    }

    fn network(&self) -> Network<'_> {
        Network::Server(self.port)
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let endpoint = format!("127.0.0.1:{}", seat.port);
        troupe.admit(seat.id, etcd::candidate(&self.program, &endpoint, seat.id, seat.ttl))
    }
}
