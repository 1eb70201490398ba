//! Erlang's `:global`: the process that has a name on all connected nodes leads.

use tenure_testkit::lan::Lan;
use tenure_testkit::others::global;

use crate::common::Outcome;
use crate::common::cast::{Network, Peer, Seat};
use crate::common::process::Troupe;

/// Three nodes, each on a machine of its own.
pub struct Global {
    lan: Lan,
}

impl Global {
    pub fn open() -> Self {
        Self { lan: Lan::new(3) }
    }
}

impl Peer for Global {
    fn name(&self) -> String {
        String::from("Erlang's :global")
    }

    fn network(&self) -> Network<'_> {
        Network::Lan(&self.lan)
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let machines: Vec<_> = self.lan.machines().iter().map(|machine| machine.address()).collect();
        let command = global::candidate(&machines, seat.number, seat.ttl);
        troupe.admit_on(&self.lan.machines()[seat.number], seat.id, command)
    }
}
