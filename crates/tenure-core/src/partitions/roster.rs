//! Who is there: the coordinator's view of nodes and of their sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::Sighting;
use super::member::{Member, Readiness};
use super::pace::Pace;
use crate::name::NodeId;
use crate::plants::{Plant, Planted};
use crate::record::{SessionId, Stamp};
use crate::silence::{Look, Silence, Trust};
use crate::time::{Drift, Instant};

/// A node, by its place in the roster.
pub(super) type NodeIndex = u32;

#[derive(Debug)]
pub(super) struct Roster {
    pace: Pace,
    drift: Drift,
    trust: Trust,
    planted: Planted,
    nodes: Vec<Node>,
    names: BTreeMap<NodeId, NodeIndex>,
    /// Places of nodes that were forgotten, to be given to others.
    vacant: Vec<NodeIndex>,
    sessions: BTreeMap<SessionId, Session>,
}

#[derive(Debug)]
struct Node {
    member: Member,
    /// Its live session.
    live: Option<SessionId>,
    /// Since when that has been known.
    began: Instant,
    /// How often in a row its session has ended soon after it began.
    flaps: u32,
    /// Until then it gets nothing more, because it has come and gone too often.
    steady_at: Instant,
    /// Until then it is expected back.
    awaited_until: Instant,
}

#[derive(Debug)]
struct Session {
    node: NodeIndex,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It may be taken for dead at `lapses`.
    Live {
        silence: Silence,
        lapses: Instant,
    },
    /// It was silent for its whole life; the store is yet to retire it.
    Silent {
        silence: Silence,
        stamp: Stamp,
    },
    Over,
}

impl Roster {
    /// `since`: when this node began to trust the store.
    pub fn new(pace: Pace, drift: Drift, since: Instant, planted: Planted) -> Self {
        let trust = Trust { epoch: 0, since };
        let (nodes, names, sessions) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { pace, drift, trust, planted, nodes, names, vacant: Vec::new(), sessions }
    }

    /// Takes note of who was seen. Says whether anything has changed that plans depend on.
    pub fn survey(&mut self, sightings: Vec<Sighting>, sent: Instant, now: Instant) -> bool {
        let mut changed = false;
        let look = Look { sent, received: now };
        let mut seen: Vec<SessionId> = Vec::with_capacity(sightings.len());
        // Who has ended first: a node that returns has ended before.
        let (over, live): (Vec<_>, Vec<_>) = sightings.into_iter().partition(|one| one.pulse.is_none());
        for sighting in over.iter().chain(&live) {
            seen.push(sighting.session);
        }
        seen.sort_unstable();
        for sighting in over {
            changed |= self.is_over(&sighting, now);
        }
        let unseen = self
            .sessions
            .iter()
            .filter(|(id, session)| !matches!(session.state, State::Over) && seen.binary_search(id).is_err());
        for id in unseen.map(|(id, _)| *id).collect::<Vec<_>>() {
            changed |= self.end(id, now);
        }
        for sighting in live {
            changed |= self.is_live(sighting, look, now);
        }
        changed
    }

    /// Takes those for dead that have been silent for too long. Says whether there were any.
    pub fn judge(&mut self, now: Instant) -> bool {
        let lapsed = self.sessions.iter().filter_map(|(id, session)| match &session.state {
            State::Live { lapses, .. } if *lapses <= now => Some(*id),
            _ => None,
        });
        let lapsed: Vec<SessionId> = lapsed.collect();
        for id in &lapsed {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            let State::Live { silence, .. } = &mut session.state else { continue };
            let silence = std::mem::take(silence);
            if let Some(stamp) = silence.stamp() {
                let node = session.node;
                session.state = State::Silent { silence, stamp };
                self.leave(node, *id, now);
            }
        }
        !lapsed.is_empty()
    }

    /// What the store is to retire.
    pub fn silent(&self) -> Vec<Stamp> {
        let stamps = self.sessions.values().filter_map(|session| match &session.state {
            State::Silent { stamp, .. } => Some(*stamp),
            _ => None,
        });
        stamps.collect()
    }

    /// Whether this session may still work, as far as is known. One that was never seen may.
    pub fn may_work(&self, session: SessionId) -> bool {
        match self.sessions.get(&session) {
            Some(Session { state: State::Live { .. }, .. }) | None => true,
            Some(_) => false,
        }
    }

    /// Whether the store has said that this session is over.
    pub fn is_ended(&self, session: SessionId) -> bool {
        matches!(self.sessions.get(&session), Some(Session { state: State::Over, .. }))
    }

    pub fn knows(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The node of a session, as long as it is there or is expected back.
    pub fn node_of(&self, session: SessionId, now: Instant) -> Option<NodeIndex> {
        let node = self.sessions.get(&session)?.node;
        self.readiness(node, now).is_some().then_some(node)
    }

    /// The live session of a node.
    pub fn live(&self, node: NodeIndex) -> Option<SessionId> {
        self.nodes.get(node as usize)?.live
    }

    pub fn find(&self, name: &NodeId) -> Option<NodeIndex> {
        self.names.get(name).copied()
    }

    /// The members of a plan, by their places in the roster. Who is gone has no capacity.
    pub fn members(&self, now: Instant) -> Vec<Member> {
        let member = |(index, node): (NodeIndex, &Node)| match self.readiness(index, now) {
            Some(readiness) => Member { readiness, ..node.member.clone() },
            None => Member { capacity: 0, readiness: Readiness::Held, ..Member::default() },
        };
        (0..).zip(&self.nodes).map(member).collect()
    }

    /// When the next of them changes by itself.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let lapses = self.sessions.values().filter_map(|session| match session.state {
            State::Live { lapses, .. } => Some(lapses),
            _ => None,
        });
        let nodes = self.nodes.iter().map(|node| match node.live {
            Some(_) => node.steady_at,
            None => node.awaited_until,
        });
        lapses.chain(nodes.filter(|at| *at > now)).min()
    }

    fn readiness(&self, index: NodeIndex, now: Instant) -> Option<Readiness> {
        let node = &self.nodes[index as usize];
        match node.live {
            Some(_) if now < node.steady_at => Some(Readiness::Held),
            Some(_) => Some(node.member.readiness),
            None => (now < node.awaited_until).then_some(Readiness::Held),
        }
    }

    // ----- coming and going -----------------------------------------------------------------

    fn enlist(&mut self, sighting: &Sighting) -> NodeIndex {
        if let Some(index) = self.names.get(&sighting.node) {
            return *index;
        }
        let node = Node {
            member: sighting.member.clone(),
            live: None,
            began: Instant::ZERO,
            flaps: 0,
            steady_at: Instant::ZERO,
            awaited_until: Instant::ZERO,
        };
        let index = if let Some(index) = self.vacant.pop() {
            self.nodes[index as usize] = node;
            index
        } else {
            self.nodes.push(node);
            NodeIndex::try_from(self.nodes.len() - 1).unwrap_or(NodeIndex::MAX)
        };
        self.names.insert(sighting.node.clone(), index);
        index
    }

    fn is_live(&mut self, sighting: Sighting, look: Look, now: Instant) -> bool {
        let Some(pulse) = sighting.pulse else { return false };
        let node = self.enlist(&sighting);
        let (trust, drift, planted) = (self.trust, self.drift, self.planted);
        let began = Session { node, state: State::Live { silence: Silence::default(), lapses: now } };
        let known = self.sessions.contains_key(&sighting.session);
        let session = self.sessions.entry(sighting.session).or_insert(began);
        let was_live = known && matches!(session.state, State::Live { .. });
        if let State::Silent { silence, stamp } = &mut session.state {
            if pulse.stamp == *stamp {
                return false;
            }
            // It lives after all.
            session.state = State::Live { silence: std::mem::take(silence), lapses: now };
        }
        let State::Live { silence, lapses } = &mut session.state else { return false };
        *lapses = silence.observe(&pulse, look, trust, drift, planted);
        if planted.has(Plant::PartitionLapseJudgedEarly) {
            *lapses = (*lapses - pulse.ttl / 2).max(now + pulse.ttl / 100);
        }
        let slot = &mut self.nodes[node as usize];
        let changed = !was_live || slot.member != sighting.member;
        slot.member = sighting.member;
        if !was_live {
            self.join(node, sighting.session, now);
        }
        changed
    }

    fn is_over(&mut self, sighting: &Sighting, now: Instant) -> bool {
        if self.sessions.contains_key(&sighting.session) {
            return self.end(sighting.session, now);
        }
        // It ended before we came: what it owned waits for its node from now on.
        let node = self.enlist(sighting);
        self.sessions.insert(sighting.session, Session { node, state: State::Over });
        let slot = &mut self.nodes[node as usize];
        if slot.live.is_none() {
            slot.awaited_until = slot.awaited_until.max(now + self.pace.grace);
        }
        true
    }

    fn end(&mut self, id: SessionId, now: Instant) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        let before = std::mem::replace(&mut session.state, State::Over);
        let node = session.node;
        if matches!(before, State::Live { .. }) {
            self.leave(node, id, now);
        }
        !matches!(before, State::Over)
    }

    fn join(&mut self, index: NodeIndex, session: SessionId, now: Instant) {
        let Pace { forgiven, steady, .. } = self.pace;
        let node = &mut self.nodes[index as usize];
        node.live = Some(session);
        node.began = now;
        // Each time twice as long; but whoever has come through a storm is not left idle for hours after it.
        let unsteady = node.flaps.saturating_sub(forgiven);
        let wait = if unsteady == 0 { 0 } else { 1u32 << (unsteady - 1).min(3) };
        node.steady_at = now + steady * wait;
    }

    fn leave(&mut self, index: NodeIndex, session: SessionId, now: Instant) {
        let Pace { forgiven, steady, grace, .. } = self.pace;
        let node = &mut self.nodes[index as usize];
        if node.live != Some(session) {
            return;
        }
        node.live = None;
        let soon = now.since(node.began) < steady.max(node.steady_at.since(node.began) * 2);
        node.flaps = if soon { node.flaps + 1 } else { 0 };
        node.awaited_until = if node.flaps > forgiven { now } else { now + grace };
    }

    /// Forgets sessions that are over and own nothing, and nodes that have no session any more and are not expected
    /// back. Their places are given to others, so this must follow a plan: it names none of them.
    pub fn forget(&mut self, owns: impl Fn(SessionId) -> bool, now: Instant) {
        self.sessions.retain(|id, session| !matches!(session.state, State::Over) || owns(*id));
        let needed: BTreeSet<NodeIndex> = self.sessions.values().map(|session| session.node).collect();
        // How often a node came and went is remembered for longer than that could hold it back.
        let longest = self.pace.steady * 16;
        let (nodes, vacant) = (&self.nodes, &mut self.vacant);
        self.names.retain(|_, index| {
            let node = &nodes[*index as usize];
            let gone = node.live.is_none() && now >= node.awaited_until + longest && !needed.contains(index);
            if gone {
                vacant.push(*index);
            }
            !gone
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::{Age, Pulse};

    const TTL: Duration = Duration::from_secs(10);

    fn sighting(life: u128, there: bool) -> Sighting {
        let session = SessionId::from_u128(life);
        let pulse = Pulse { stamp: Stamp { session, sequence: 1 }, ttl: TTL, age: Age::Unknown };
        let node = NodeId::new("flapping").expect("a word is a name");
        Sighting { node, session, pulse: there.then_some(pulse), member: Member::default() }
    }

    #[test]
    fn whoever_came_and_went_is_held_longer_each_time_but_not_for_hours() {
        let pace = Pace { forgiven: 1, ..Pace::new(TTL) };
        let mut roster = Roster::new(pace, Drift::DEFAULT, Instant::ZERO, Planted::default());
        let mut now = Instant::ZERO + TTL * 100;
        let mut held = Vec::new();
        for life in 1..=9 {
            roster.survey(vec![sighting(life, true)], now, now);
            let steady = roster.nodes[0].steady_at.since(now);
            held.push(u32::try_from(steady.as_nanos() / pace.steady.as_nanos()).unwrap_or(u32::MAX));
            now = now + TTL / 2;
            roster.survey(vec![sighting(life, false)], now, now);
        }
        assert_eq!(held, [0, 0, 1, 2, 4, 8, 8, 8, 8], "in times of `steady`");
    }

    #[test]
    fn nodes_that_come_once_and_never_again_are_forgotten() {
        let pace = Pace::new(TTL);
        let mut roster = Roster::new(pace, Drift::DEFAULT, Instant::ZERO, Planted::default());
        let mut now = Instant::ZERO + TTL * 100;
        for life in 1..=1000 {
            let node = NodeId::new(format!("run-{life}")).expect("a word is a name");
            let there = |there| Sighting { node: node.clone(), ..sighting(life, there) };
            roster.survey(vec![there(true)], now, now);
            now = now + TTL;
            roster.survey(vec![there(false)], now, now);
            roster.forget(|_| false, now);
        }
        let most =
            usize::try_from((pace.steady * 16 + pace.grace).as_nanos() / TTL.as_nanos()).unwrap_or(0) + 2;
        assert!(roster.nodes.len() <= most && most < 200, "{} of {most}", roster.nodes.len());
        assert_eq!(roster.names.len() + roster.vacant.len(), roster.nodes.len());
    }
}
