//! A simulated node that watches the cluster, as `tenure::Cluster` does: the real [`Members`], fed with the list of
//! nodes, and the leader retires those that fell silent.

use std::time::Duration;

use tenure_core::{
    ExpiryJudge, Failure, Instant, Members, NodeId, Planted, SessionId, Sighting, Stamp, StoreIdentity,
};

use crate::config::{Config, NodeConfig};
use crate::fact::Fact;
use crate::ledger::COORDINATOR;
use crate::store::Moment;
use crate::world::{What, World};

/// How long a look is waited for, at least.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a look at the store told.
pub type Looked = Result<(StoreIdentity, Vec<Sighting>), Failure>;

/// What one life of a node knows of the cluster.
#[derive(Debug)]
pub struct Watch {
    members: Members,
    every: Duration,
    /// The node's own session, as it was at the last look.
    session: Option<SessionId>,
    /// The look that is under way, and when it left.
    flight: Option<(u64, Instant)>,
    serial: u64,
    next: Instant,
    /// Who was live at the last look, and whether it was found silent.
    pub view: Vec<(SessionId, bool)>,
}

impl Watch {
    /// The watch of a node that starts now.
    #[must_use]
    pub fn new(
        me: &NodeId,
        node: &NodeConfig,
        config: &Config,
        planted: Planted,
        now: Instant,
    ) -> Option<Self> {
        let drift = tenure_core::Drift::from_thousandths(config.drift)?;
        let members = Members::new(me.clone(), 1, drift, config.capabilities.expiry).planted(planted);
        Some(Self {
            members,
            every: node.look_every?,
            session: None,
            flight: None,
            serial: 0,
            next: now,
            view: Vec::new(),
        })
    }

    fn patience(&self) -> Duration {
        self.every.max(PATIENCE)
    }

    /// When it wants its turn.
    fn timeout(&self) -> Instant {
        self.flight.map_or(self.next, |(_, sent)| sent + self.patience())
    }

    /// Waits for somebody to fall silent, or for a while.
    fn rest(&mut self, now: Instant) {
        let regular = now + self.every;
        self.flight = None;
        self.next = self.members.next_lapse(now).map_or(regular, |lapse| lapse.min(regular));
    }

    /// Takes its turn: the serial number of a look that it asks for.
    fn turn(&mut self, session: Option<SessionId>, now: Instant) -> Option<u64> {
        if self.flight.is_some_and(|(_, sent)| now >= sent + self.patience()) {
            self.rest(now);
        }
        let due = now >= self.next || session != self.session;
        if self.flight.is_some() || !due {
            return None;
        }
        // A session that was lost may mean a store that is not what it was.
        if self.session.is_some() && self.session != session {
            self.members.distrust(now);
        }
        self.session = session;
        self.serial += 1;
        self.flight = Some((self.serial, now));
        Some(self.serial)
    }

    fn looked(&mut self, serial: u64, told: Looked, now: Instant) -> bool {
        let Some((_, sent)) = self.flight.filter(|(awaited, _)| *awaited == serial) else { return false };
        let told = told.map(|(store, nodes)| {
            self.members.look(store, &nodes, sent, now);
            let live = nodes.iter().filter(|seen| seen.state == tenure_core::NodeState::Live);
            let session = |seen: &Sighting| seen.pulse.stamp.session;
            self.view = live.map(|seen| (session(seen), self.members.lives(session(seen), now))).collect();
        });
        while self.members.poll_change().is_some() {}
        self.rest(now);
        told.is_ok()
    }
}

impl World {
    /// Begins the watch of a node that starts, if it is one that watches.
    pub(crate) fn begin_watch(&mut self, node: usize) {
        let slot = &self.nodes[node];
        let now = slot.now(self.real);
        self.nodes[node].watch = Watch::new(&slot.name, &slot.config, &self.config, self.planted, now);
    }

    /// Gives the watch of a node its turn; says when it wants the next.
    pub(crate) fn attend_watch(&mut self, node: usize, now: Instant) -> Option<Instant> {
        let slot = &mut self.nodes[node];
        let session = slot.machine.as_ref()?.session();
        if let Some(serial) = slot.watch.as_mut()?.turn(session, now) {
            let life = slot.life;
            self.trace.line(self.real, || format!("n{node} looks who is there"));
            self.send_off(node, What::Look { node, life, serial });
        }
        self.nodes[node].watch.as_ref().map(Watch::timeout)
    }

    /// There is news: the watch looks at once.
    pub(crate) fn hurry_watch(&mut self, node: usize) {
        let now = self.nodes[node].now(self.real);
        if let Some(watch) = self.nodes[node].watch.as_mut() {
            watch.next = watch.next.min(now);
        }
    }

    /// A look reaches the store.
    pub(crate) fn look(&mut self, node: usize, life: u32, serial: u64) {
        if self.store_ails.hangs > 0 {
            return;
        }
        let told = if self.store_ails.refuses > 0 {
            Err(Failure::Unavailable)
        } else {
            Ok((self.store.identity(), self.store.nodes(self.moment())))
        };
        if !self.cut_off(node) {
            let at = self.real + self.travel(node);
            self.at(at, What::Looked { node, life, serial, told: Box::new(told) });
        }
    }

    /// The answer to a look reaches its node. If it leads, it has those retired that fell silent.
    pub(crate) fn looked(&mut self, node: usize, serial: u64, told: Looked) {
        // A driver looks at its clocks before anything else.
        self.drive(node, |_, _| {});
        let leads = self.nodes[node].check(COORDINATOR, self.real).is_some();
        let slot = &mut self.nodes[node];
        let now = slot.clock.read(self.real);
        let pulses: Vec<_> =
            told.iter().flat_map(|(_, nodes)| nodes).map(|seen| (seen.pulse.stamp, seen.pulse.ttl)).collect();
        let Some(watch) = slot.watch.as_mut().filter(|_| slot.machine.is_some()) else { return };
        if !watch.looked(serial, told, now) {
            return;
        }
        let silent: Vec<SessionId> =
            watch.view.iter().filter(|(_, lives)| !lives).map(|(session, _)| *session).collect();
        let retire = if leads { watch.members.silent(now) } else { Vec::new() };
        for (stamp, ttl) in pulses.into_iter().filter(|(stamp, _)| silent.contains(&stamp.session)) {
            let applied = self.store.first_applied(stamp).unwrap_or(self.real);
            self.facts.push(Fact::FoundSilent {
                by: node,
                session: stamp.session,
                applied,
                ttl,
                at: self.real,
            });
        }
        for stamp in retire {
            self.trace.line(self.real, || format!("n{node} has {stamp:?} retired"));
            self.send_off(node, What::Retire(stamp));
        }
        self.drive(node, |_, _| {});
    }

    /// A request to retire a session reaches the store. Whoever sent it learns of it with its next look.
    pub(crate) fn retire(&mut self, stamp: Stamp) {
        if self.store_ails.hangs > 0 || self.store_ails.refuses > 0 {
            return;
        }
        let now: Moment = self.moment();
        self.store.retire_for_leader(stamp, now);
        self.after_store();
    }

    /// Whether silent nodes are retired by whoever leads the cluster.
    pub(crate) fn is_cleaned_up(&self) -> bool {
        let leader = self.leader(COORDINATOR).map(|(leader, _)| leader);
        let watches = leader.is_some_and(|leader| self.nodes[leader].watch.is_some());
        watches || self.config.capabilities.expiry == ExpiryJudge::Store
    }
}
