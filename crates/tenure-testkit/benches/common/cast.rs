//! Candidates of one kind, in processes of their own, and what lies between them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::Instant;
use tenure_store::clock;
use tenure_testkit::lan::Lan;
use tenure_testkit::proxy::Proxy;

use super::Outcome;
use super::process::Troupe;

/// Whose candidates: how one is started, and where they meet.
pub trait Peer: Sync {
    fn name(&self) -> String;

    fn network(&self) -> Network<'_>;

    /// Starts a candidate in this seat.
    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()>;

    /// Waits until those who live stand, and nobody else. Who cannot see that gives them time.
    fn settle(&self, _troupe: &Troupe, ttl: Duration) -> Outcome<()> {
        // A candidate of Tenure believes ages only after it has known the store for a ttl; a virtual machine of Java
        // starts in one to two seconds.
        std::thread::sleep(ttl + ttl / 2);
        Ok(())
    }
}

/// What lies between candidates.
#[derive(Clone, Copy)]
pub enum Network<'a> {
    /// A server on this port of the loopback.
    Server(u16),
    /// Each is on a machine of its own.
    Lan(&'a Lan),
    /// Nothing: they meet in a file.
    None,
}

/// One of the places that a cast has: whoever sits there is replaced by another.
pub struct Seat<'a> {
    pub number: usize,
    /// A name that none has had.
    pub id: &'a str,
    /// Where the server is reached from here, if there is one.
    pub port: u16,
    pub ttl: Duration,
}

/// How candidates reach a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Direct,
    /// Each over a proxy of its own.
    Proxies,
}

/// The processes end before their proxies.
pub struct Cast<'a> {
    pub troupe: Troupe,
    pub peer: &'a dyn Peer,
    pub leader: String,
    /// Who sits where.
    seats: Vec<String>,
    proxies: Vec<Option<Proxy>>,
    ttl: Duration,
    way: Way,
}

/// Far beyond everything that is measured.
const PATIENCE: Duration = Duration::from_secs(60);

impl<'a> Cast<'a> {
    /// Starts so many candidates. One of them leads.
    pub fn open(peer: &'a dyn Peer, ttl: Duration, way: Way, candidates: usize) -> Outcome<Self> {
        let mut cast = Self::start(peer, ttl, way, candidates)?;
        cast.elected()?;
        Ok(cast)
    }

    /// The same, without waiting for a leader.
    pub fn start(peer: &'a dyn Peer, ttl: Duration, way: Way, candidates: usize) -> Outcome<Self> {
        let (troupe, seats, proxies) = (Troupe::new(), Vec::new(), Vec::new());
        let leader = String::new();
        let mut cast = Self { troupe, peer, leader, seats, proxies, ttl, way };
        for number in 0..candidates {
            cast.seats.push(String::new());
            cast.proxies.push(None);
            cast.launch(number)?;
        }
        Ok(cast)
    }

    /// Starts a candidate in this seat, under a name that none has had.
    fn launch(&mut self, number: usize) -> Outcome<()> {
        static LAUNCHED: AtomicUsize = AtomicUsize::new(1);
        let id = format!("node-{}", LAUNCHED.fetch_add(1, Ordering::Relaxed));
        let port = match (self.peer.network(), self.way) {
            (Network::Server(port), Way::Direct) => port,
            (Network::Server(port), Way::Proxies) => self.proxies[number].insert(Proxy::before(port)).port(),
            (Network::Lan(_) | Network::None, _) => 0,
        };
        self.peer.start(&mut self.troupe, &Seat { number, id: &id, port, ttl: self.ttl })?;
        self.seats[number] = id;
        Ok(())
    }

    /// Waits until those who live stand, and nobody else.
    pub fn settle(&self) -> Outcome<()> {
        self.peer.settle(&self.troupe, self.ttl)
    }

    /// Waits for the next to lead; since when it does.
    pub fn elected(&mut self) -> Outcome<Instant> {
        let told = self.troupe.hear_within(PATIENCE, "leads")?;
        let told = told.ok_or_else(|| format!("nobody of {} leads", self.peer.name()))?;
        self.leader.clone_from(&told.by);
        told.instant()
    }

    /// Hears who leads by now: leadership may have moved while nobody asked.
    pub fn catch_up(&mut self) {
        if let Some(said) = self.troupe.rest().into_iter().rfind(|said| said.word == "leads") {
            self.leader = said.by;
        }
    }

    pub fn pids(&mut self) -> Outcome<Vec<u32>> {
        self.seats.clone().iter().map(|id| self.troupe.pid(id)).collect()
    }

    /// What the leader says is lost from now on, and what it would be told; nobody tells it. False if there is no
    /// network.
    pub fn cut_off_leader(&self) -> Outcome<bool> {
        let seat = self.seat(&self.leader)?;
        match (self.peer.network(), &self.proxies[seat]) {
            (Network::Lan(lan), _) => lan.part(&[&lan.machines()[seat]]),
            (Network::Server(_), Some(proxy)) => proxy.drop_everything(),
            (Network::Server(_), None) => return Err("it has no proxy".into()),
            (Network::None, _) => return Ok(false),
        }
        Ok(true)
    }

    /// Another takes the place of one that led, dead or alive, on a network that is whole.
    pub fn replace(&mut self, former: &str) -> Outcome<()> {
        let seat = self.seat(former)?;
        if self.troupe.names().any(|name| name == former) {
            self.troupe.kill(former)?;
        }
        if let Network::Lan(lan) = self.peer.network() {
            lan.heal();
        }
        self.launch(seat)
    }

    /// Kills the leader; how long it is until another leads.
    pub fn crash(&mut self, round: usize) -> Outcome<Duration> {
        self.settle()?;
        // Met at any instant between two signs of life.
        std::thread::sleep(self.ttl / 21 * u32::try_from(round % 7)?);
        self.catch_up();
        let former = self.leader.clone();
        let killed = clock::now();
        self.troupe.kill(&former)?;
        let elected = self.elected()?;
        self.replace(&former)?;
        Ok(elected.since(killed))
    }

    /// How often they have said something over the network, if there is one.
    pub fn messages(&self) -> Option<u64> {
        match self.peer.network() {
            Network::Server(_) => Some(self.proxies.iter().flatten().map(Proxy::requests).sum()),
            Network::Lan(lan) => Some(lan.machines().iter().map(|machine| machine.messages()).sum()),
            Network::None => None,
        }
    }

    fn seat(&self, id: &str) -> Outcome<usize> {
        Ok(self.seats.iter().position(|one| one == id).ok_or_else(|| format!("{id} has no seat"))?)
    }
}
