//! Who belongs to the cluster: who has come and gone, who has fallen silent, and whether enough live.
//!
//! Fed with the list of nodes as the store has it. Silence is timed exactly as a candidate times that of
//! a leader: who retires a session too early would depose a leader that still leads.

use std::collections::{BTreeMap, VecDeque};

use crate::capabilities::ExpiryJudge;
use crate::name::NodeId;
use crate::plants::{Plant, Planted};
use crate::record::{Pulse, SessionId, Stamp, StoreIdentity};
use crate::silence::{Look, Silence, Trust};
use crate::time::{Drift, Instant};

/// Whether a node's session is live, as far as the store has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NodeState {
    /// Open, and nobody has found it silent.
    Live,
    /// Closed by the node itself.
    Left,
    /// Found silent for its whole life, and retired.
    Expired,
}

/// A node as one look at the store showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which.
    pub node: NodeId,
    /// What the store says of it.
    pub state: NodeState,
    /// The last sign of life of its session.
    pub pulse: Pulse,
}

/// What is different from the look before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// To which node.
    pub node: NodeId,
    /// What it is now. `Live`: it has registered, with another session than before if it was there.
    pub state: NodeState,
}

/// What one node knows of all.
#[derive(Debug)]
pub struct Members {
    me: NodeId,
    minimum: usize,
    drift: Drift,
    judge: ExpiryJudge,
    store: Option<StoreIdentity>,
    trust: Trust,
    known: BTreeMap<NodeId, Member>,
    changes: VecDeque<Change>,
    planted: Planted,
}

#[derive(Debug)]
struct Member {
    state: NodeState,
    stamp: Stamp,
    silence: Silence,
    /// From when on it may be taken for dead, if it is live.
    lapses: Instant,
}

impl Member {
    fn lives(&self, judge: ExpiryJudge, now: Instant) -> bool {
        self.state == NodeState::Live && (judge == ExpiryJudge::Store || now < self.lapses)
    }
}

impl Members {
    /// Nothing is known yet. The cluster needs `minimum` nodes, of which `me` is one.
    #[must_use]
    pub fn new(me: NodeId, minimum: usize, drift: Drift, judge: ExpiryJudge) -> Self {
        Self {
            me,
            minimum,
            drift,
            judge,
            store: None,
            trust: Trust { epoch: 0, since: Instant::ZERO },
            known: BTreeMap::new(),
            changes: VecDeque::new(),
            planted: Planted::default(),
        }
    }

    /// The same with a bug planted, for the simulation.
    #[must_use]
    pub fn planted(self, planted: Planted) -> Self {
        Self { planted, ..self }
    }

    /// What a look at the store showed: every node once, with its newest session.
    pub fn look(&mut self, store: StoreIdentity, nodes: &[Sighting], sent: Instant, received: Instant) {
        let went_back = |seen: &Sighting| {
            let known = self.known.get(&seen.node).map(|member| member.stamp);
            known.is_some_and(|known| {
                known.session == seen.pulse.stamp.session && known.sequence > seen.pulse.stamp.sequence
            })
        };
        if self.store != Some(store) || nodes.iter().any(went_back) {
            self.store = Some(store);
            self.distrust(received);
        }
        self.known.retain(|node, _| nodes.iter().any(|seen| seen.node == *node));
        for seen in nodes {
            self.note(seen, Look { sent, received });
        }
    }

    fn note(&mut self, seen: &Sighting, look: Look) {
        let stamp = seen.pulse.stamp;
        let known = self.known.get(&seen.node);
        let same = known.is_some_and(|known| known.stamp.session == stamp.session);
        if known.map(|known| known.state) != Some(seen.state) || !same {
            self.changes.push_back(Change { node: seen.node.clone(), state: seen.state });
        }
        let member = self.known.entry(seen.node.clone()).or_insert_with(|| Member {
            state: seen.state,
            stamp,
            silence: Silence::default(),
            lapses: look.received + seen.pulse.ttl,
        });
        if !same {
            member.silence.reset();
        }
        member.lapses = member.silence.observe(&seen.pulse, look, self.trust, self.drift, Planted::default());
        if self.planted.has(Plant::MembersJudgedEarly) {
            member.lapses = member.lapses - seen.pulse.ttl / 2;
        }
        (member.state, member.stamp) = (seen.state, stamp);
    }

    /// The store may not be what it was: whatever was seen of anybody's silence is void.
    pub fn distrust(&mut self, now: Instant) {
        self.trust = Trust { epoch: self.trust.epoch + 1, since: now };
    }

    /// What is different since the look before.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Whom a leader may retire: sessions that were silent for their whole life, by our own clock.
    /// Never this node's own, nor where the store judges by itself.
    #[must_use]
    pub fn silent(&self, now: Instant) -> Vec<Stamp> {
        if self.judge == ExpiryJudge::Store || self.planted.has(Plant::MembersNeverRetired) {
            return Vec::new();
        }
        let others = self.known.iter().filter(|(node, _)| **node != self.me);
        let silent = |member: &&Member| member.state == NodeState::Live && member.lapses <= now;
        others.map(|(_, member)| member).filter(silent).map(|member| member.stamp).collect()
    }

    /// When the next one falls silent, unless it shows a sign of life before.
    #[must_use]
    pub fn next_lapse(&self, now: Instant) -> Option<Instant> {
        let live = self.known.values().filter(|member| member.lives(self.judge, now));
        live.map(|member| member.lapses).min().filter(|_| self.judge == ExpiryJudge::Candidate)
    }

    /// Whether this session is live, and not silent.
    #[must_use]
    pub fn lives(&self, session: SessionId, now: Instant) -> bool {
        let mut members = self.known.values();
        members.any(|member| member.stamp.session == session && member.lives(self.judge, now))
    }

    /// How many live.
    #[must_use]
    pub fn live(&self, now: Instant) -> usize {
        self.known.values().filter(|member| member.lives(self.judge, now)).count()
    }

    /// How many must.
    #[must_use]
    pub const fn minimum(&self) -> usize {
        self.minimum
    }

    /// Whether fewer live than must. Before the first look nobody knows.
    #[must_use]
    pub fn degraded(&self, now: Instant) -> Option<bool> {
        self.store.map(|_| self.live(now) < self.minimum)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Age;

    const STORE: StoreIdentity = StoreIdentity(1);
    const TTL: u64 = 9_000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn name(id: &str) -> NodeId {
        NodeId::new(id).unwrap()
    }

    fn seen(id: &str, session: u128, sequence: u64, age: Option<u64>) -> Sighting {
        let stamp = Stamp { session: SessionId::from_u128(session), sequence };
        let age = age.map_or(Age::Unknown, |age| Age::Exact(Duration::from_millis(age)));
        let pulse = Pulse { stamp, ttl: Duration::from_millis(TTL), age };
        Sighting { node: name(id), state: NodeState::Live, pulse }
    }

    fn members(minimum: usize) -> Members {
        Members::new(name("me"), minimum, Drift::DEFAULT, ExpiryJudge::Candidate)
    }

    fn changes(members: &mut Members) -> Vec<(String, NodeState)> {
        std::iter::from_fn(|| members.poll_change()).map(|c| (c.node.to_string(), c.state)).collect()
    }

    #[test]
    fn who_comes_goes_and_comes_back_is_told_once() {
        let mut members = members(1);
        let mut look = |nodes: &[Sighting], now: u64| {
            members.look(STORE, nodes, at(now), at(now));
            changes(&mut members)
        };
        use NodeState::{Expired, Left, Live};
        let told = |id: &str, state| vec![(id.to_owned(), state)];
        assert_eq!(look(&[seen("a", 1, 1, None)], 0), told("a", Live));
        assert_eq!(look(&[seen("a", 1, 2, None)], 10), []);
        let left = Sighting { state: Left, ..seen("a", 1, 2, None) };
        assert_eq!(look(std::slice::from_ref(&left), 20), told("a", Left));
        assert_eq!(look(&[left], 30), []);
        assert_eq!(look(&[seen("a", 2, 1, None)], 40), told("a", Live));
        assert_eq!(look(&[seen("a", 3, 1, None)], 50), told("a", Live), "it was restarted in between");
        assert_eq!(look(&[Sighting { state: Expired, ..seen("a", 3, 1, None) }], 60), told("a", Expired));
        assert_eq!(look(&[], 70), [], "forgotten");
    }

    #[test]
    fn a_node_is_silent_after_a_full_ttl_on_our_own_clock_and_not_before() {
        let mut members = members(2);
        members.look(STORE, &[seen("me", 1, 1, None), seen("b", 2, 7, None)], at(0), at(5));
        assert_eq!(members.next_lapse(at(5)), Some(at(5 + TTL)));
        members.look(STORE, &[seen("me", 1, 2, None), seen("b", 2, 7, None)], at(4_000), at(4_000));
        assert_eq!((members.silent(at(4 + TTL)), members.live(at(4 + TTL))), (vec![], 2));
        assert_eq!(members.degraded(at(4 + TTL)), Some(false));
        let silent = vec![Stamp { session: SessionId::from_u128(2), sequence: 7 }];
        assert_eq!((members.silent(at(5 + TTL)), members.live(at(5 + TTL))), (silent, 1));
        assert_eq!(members.degraded(at(5 + TTL)), Some(true));
        members.look(STORE, &[seen("me", 1, 3, None), seen("b", 2, 8, None)], at(9_500), at(9_500));
        assert_eq!((members.silent(at(9_500)), members.live(at(9_500))), (vec![], 2), "it was only slow");
    }

    #[test]
    fn nobody_is_silent_on_first_sight_however_old_its_pulse_is_said_to_be() {
        let mut members = members(1);
        members.look(STORE, &[seen("b", 2, 7, Some(3_600_000))], at(100), at(100));
        assert_eq!(members.silent(at(100 + TTL - 1)), []);
        assert_eq!(members.silent(at(100 + TTL)).len(), 1);
    }

    #[test]
    fn a_store_that_is_another_one_or_went_back_begins_anew() {
        let nodes = [seen("b", 2, 7, Some(0)), seen("c", 3, 9, Some(0))];
        for (store, b) in [(StoreIdentity(2), 7), (STORE, 6)] {
            let mut members = members(1);
            members.look(STORE, &nodes, at(0), at(0));
            let now = TTL - 10;
            let after = [seen("b", 2, b, Some(TTL - 10)), seen("c", 3, 9, Some(TTL - 10))];
            members.look(store, &after, at(now), at(now));
            assert_eq!(members.silent(at(now + TTL - 1)), [], "a true leader needs that long to notice");
            assert_eq!(members.silent(at(now + TTL)).len(), 2);
        }
    }

    #[test]
    fn a_node_never_retires_itself_nor_anybody_where_the_store_judges() {
        let mut members = members(1);
        members.look(STORE, &[seen("me", 1, 1, None)], at(0), at(0));
        assert_eq!(members.silent(at(10 * TTL)), []);
        let mut members = Members::new(name("me"), 1, Drift::DEFAULT, ExpiryJudge::Store);
        members.look(STORE, &[seen("b", 2, 1, None)], at(0), at(0));
        assert_eq!((members.silent(at(10 * TTL)), members.live(at(10 * TTL))), (vec![], 1));
        assert_eq!(members.next_lapse(at(0)), None);
    }
}
