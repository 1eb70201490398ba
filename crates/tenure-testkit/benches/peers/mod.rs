//! Tenure, and what people use today: how each of them is started, and the parts of those that were written for
//! these benches.
#![allow(dead_code, reason = "every bench uses a part of it")]

pub mod advisory;
pub mod etcd;
pub mod global;
pub mod lease;
pub mod locks;
pub mod poller;
pub mod tenure;
pub mod zookeeper;

use std::time::Duration;

use crate::common::cast::{Network, Peer, Seat};
use crate::common::process::Troupe;
use crate::common::{Outcome, candidate};

/// What the processes do that are started from a bench's own binary.
pub fn part(words: &[&str]) -> Outcome<()> {
    match words {
        [_, "advisory", how, url] => advisory::part(how, url),
        [id, "locks", url, ttl] => locks::part(id, locks::Design::Locks, url, millis(ttl)?),
        [id, "helix", url, ttl] => locks::part(id, locks::Design::Helix, url, millis(ttl)?),
        [id, "lease", url, ttl] => lease::part(id, url, millis(ttl)?),
        words => candidate::part(words),
    }
}

fn millis(text: &str) -> Outcome<Duration> {
    Ok(Duration::from_millis(text.parse()?))
}

/// A candidate that is part of this binary, on a server.
pub struct Part<'a> {
    pub name: &'a str,
    /// Which part; none: Tenure's.
    pub part: &'a [&'a str],
    pub server: u16,
    /// The server's URL by way of a port.
    pub url: Box<dyn Fn(u16) -> String + Sync + 'a>,
}

impl Peer for Part<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn network(&self) -> Network<'_> {
        Network::Server(self.server)
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        let (url, ttl) = ((self.url)(seat.port), seat.ttl.as_millis().to_string());
        let mut words = self.part.to_vec();
        words.push(&url);
        // A lock that hangs from a connection has none.
        if self.part.first() != Some(&"advisory") {
            words.push(&ttl);
        }
        troupe.launch(seat.id, &words)
    }
}
