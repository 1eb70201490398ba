//! Tenure where there is no server: in a file, and in a group of its own.

use tenure_testkit::lan::Lan;

use crate::common::Outcome;
use crate::common::cast::{Network, Peer, Seat};
use crate::common::place::Place;
use crate::common::process::{Troupe, part};

/// In a SQLite file on a disk.
pub struct OnFile {
    place: Place,
}

impl OnFile {
    pub fn open() -> Outcome<Self> {
        Ok(Self { place: Place::on_disk()? })
    }
}

impl Peer for OnFile {
    fn name(&self) -> String {
        String::from("Tenure")
    }

    fn network(&self) -> Network<'_> {
        Network::None
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let url = format!("sqlite:{}", self.place.database().display());
        troupe.launch(seat.id, &[&url, &seat.ttl.as_millis().to_string()])
    }
}

/// Three members, each on a machine and a disk of its own.
pub struct Group {
    lan: Lan,
    place: Place,
}

impl Group {
    pub fn open() -> Outcome<Self> {
        Ok(Self { lan: Lan::new(3), place: Place::on_disk()? })
    }
}

impl Peer for Group {
    fn name(&self) -> String {
        String::from("Tenure")
    }

    fn network(&self) -> Network<'_> {
        Network::Lan(&self.lan)
    }

    /// Whoever takes a seat is the member that was there before.
    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let peers: Vec<String> =
            self.lan.machines().iter().map(|machine| format!("{}:7101", machine.address())).collect();
        let member = format!("member-{}", seat.number);
        let data = self.place.database().with_file_name(&member);
        let url = format!(
            "raft://{}?plaintext=true&data={}&listen={}",
            peers.join(","),
            data.display(),
            peers[seat.number]
        );
        let command = part(&member, &[&url, &seat.ttl.as_millis().to_string()])?;
        troupe.admit_on(&self.lan.machines()[seat.number], seat.id, command)
    }
}
