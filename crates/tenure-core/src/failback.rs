//! Failback: a candidate asks a leader of lower priority to make way for it.
//!
//! Any operator may ask that of a leader at any time (`tenure transfer`), so nothing here is a matter of safety.
//! A candidate asks only after it has stood behind the same leader for a ttl: a node that comes and goes, or is
//! unhealthy, takes nothing from anybody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::members::NodeState;
use crate::name::NodeId;
use crate::plants::{Plant, Planted};
use crate::record::Record;
use crate::request::ElectionKey;
use crate::time::Instant;

/// The shortest timeout of an attempt: its three requests may be slow, however short the ttl is.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Decides when a node asks the leader of which election to make way.
///
/// It is told what the node is and who leads, and gives out a [`FailbackAttempt`] when one is due. It repeats that
/// every ttl for as long as the node stands behind another: a request may be lost, and priorities change.
#[derive(Debug)]
pub struct Failback {
    node: NodeId,
    priority: i32,
    ttl: Duration,
    elections: BTreeMap<ElectionKey, Election>,
    /// One timer per election that has one.
    timers: BTreeSet<(Instant, ElectionKey)>,
    attempts: VecDeque<FailbackAttempt>,
    planted: Planted,
}

#[derive(Debug, Default)]
struct Election {
    /// Whether the node is a candidate, also while it is unhealthy and has left the queue for that.
    candidate: bool,
    leader: Option<NodeId>,
    timer: Option<Instant>,
}

impl Failback {
    /// Nothing is known of any election yet.
    #[must_use]
    pub fn new(node: NodeId, priority: i32, ttl: Duration) -> Self {
        Self {
            node,
            priority,
            ttl,
            elections: BTreeMap::new(),
            timers: BTreeSet::new(),
            attempts: VecDeque::new(),
            planted: Planted::default(),
        }
    }

    /// The same with a bug planted, for the simulation.
    #[must_use]
    pub fn planted(self, planted: Planted) -> Self {
        Self { planted, ..self }
    }

    // ----- inputs ---------------------------------------------------------------------------

    /// The store has granted a session with this ttl.
    pub fn opened(&mut self, ttl: Duration) {
        self.ttl = ttl;
    }

    /// The node is a candidate from now on.
    pub fn stand(&mut self, key: ElectionKey, now: Instant) {
        self.elections.entry(key).or_default().candidate = true;
        self.restart_timer(key, now);
    }

    /// The node is a candidate no longer: it was elected, it has withdrawn, or the election has ended.
    pub fn leave(&mut self, key: ElectionKey) {
        if let Some(election) = self.elections.get_mut(&key) {
            election.candidate = false;
        }
    }

    /// Another leads, or the same under another term, or nobody.
    pub fn leader_changed(&mut self, key: ElectionKey, leader: Option<NodeId>, now: Instant) {
        self.elections.entry(key).or_default().leader = leader;
        self.restart_timer(key, now);
    }

    /// The election was removed from the machine: its key may be used for another one.
    pub fn remove(&mut self, key: ElectionKey) {
        if let Some(timer) = self.elections.remove(&key).and_then(|election| election.timer) {
            self.timers.remove(&(timer, key));
        }
    }

    /// Makes the attempts that are due, if the application is `healthy`: an unhealthy node could not lead.
    pub fn handle_timeout(&mut self, healthy: bool, now: Instant) {
        while let Some((_, key)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let stands = self.restart_timer(key, now) || self.planted.has(Plant::FailbackWithdrawn);
            if self.planted.has(Plant::FailbackAsksOnce) {
                self.set_timer(key, None);
            }
            let leader = self.elections.get(&key).and_then(|election| election.leader.clone());
            if let Some(leader) = leader.filter(|_| stands && healthy) {
                self.attempts.push_back(FailbackAttempt {
                    election: key,
                    leader,
                    priority: self.priority,
                    give_up: now + self.ttl.max(SHORTEST_TIMEOUT),
                    request: FailbackRequest::Nodes,
                    planted: self.planted,
                });
            }
        }
    }

    // ----- outputs --------------------------------------------------------------------------

    /// When [`Failback::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next attempt for the driver to carry out.
    pub fn poll_attempt(&mut self) -> Option<FailbackAttempt> {
        self.attempts.pop_front()
    }

    /// Starts the timer anew if the node stands behind another, and stops it otherwise. Says which.
    fn restart_timer(&mut self, key: ElectionKey, now: Instant) -> bool {
        let behind = self.elections.get(&key).is_some_and(|election| {
            election.candidate && election.leader.as_ref().is_some_and(|leader| *leader != self.node)
        });
        self.set_timer(key, behind.then_some(now + self.ttl));
        behind
    }

    fn set_timer(&mut self, key: ElectionKey, timer: Option<Instant>) {
        let Some(election) = self.elections.get_mut(&key) else { return };
        if let Some(old) = std::mem::replace(&mut election.timer, timer) {
            self.timers.remove(&(old, key));
        }
        self.timers.extend(timer.map(|at| (at, key)));
    }
}

/// What an attempt asks of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailbackRequest {
    /// The list of nodes: is the leader alive, and what is its priority?
    Nodes,
    /// The record of the election: does that node still lead?
    Read,
    /// A petition that names this node as the successor. It is the last request.
    Petition,
}

/// One attempt to have a leader make way: up to three requests, one after the other.
#[derive(Clone, Debug)]
pub struct FailbackAttempt {
    election: ElectionKey,
    leader: NodeId,
    priority: i32,
    give_up: Instant,
    request: FailbackRequest,
    planted: Planted,
}

impl FailbackAttempt {
    /// For which election.
    #[must_use]
    pub const fn election(&self) -> ElectionKey {
        self.election
    }

    /// The leader that should make way.
    #[must_use]
    pub const fn leader(&self) -> &NodeId {
        &self.leader
    }

    /// When to abandon it: an answer that arrives later is not acted on.
    #[must_use]
    pub const fn give_up(&self) -> Instant {
        self.give_up
    }

    /// What to ask next.
    #[must_use]
    pub const fn request(&self) -> FailbackRequest {
        self.request
    }

    /// The answer to [`FailbackRequest::Nodes`]: every node with its priority. Says whether the attempt goes on.
    #[must_use]
    pub fn nodes<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = (&'a NodeId, NodeState, i32)>,
        now: Instant,
    ) -> bool {
        let mut live = nodes.into_iter().filter(|(_, state, _)| *state == NodeState::Live);
        let leader = live.find(|(node, ..)| **node == self.leader);
        let any = self.planted.has(Plant::FailbackIgnoresPriority);
        let lower = leader.is_some_and(|(.., priority)| priority < self.priority || any);
        self.go_on(FailbackRequest::Read, lower, now)
    }

    /// The answer to [`FailbackRequest::Read`]. Says whether the attempt goes on: of a node that leads by now
    /// instead of that leader, nothing is known here.
    #[must_use]
    pub fn record(&mut self, record: &Record, now: Instant) -> bool {
        let leads = record.holder.as_ref().is_some_and(|holder| holder.node == self.leader);
        self.go_on(FailbackRequest::Petition, leads, now)
    }

    fn go_on(&mut self, next: FailbackRequest, goes_on: bool, now: Instant) -> bool {
        self.request = next;
        goes_on && now <= self.give_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Age, Holder, Pulse, SessionId, Stamp};
    use crate::term::Term;

    const TTL: Duration = Duration::from_secs(10);
    const REPORTS: ElectionKey = ElectionKey(0);
    const BILLS: ElectionKey = ElectionKey(1);

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("the tests use good names")
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A candidate for [`REPORTS`] of priority 5, behind `leader` since second 100.
    fn behind(leader: &str) -> Failback {
        let mut failback = Failback::new(node("me"), 5, TTL);
        failback.stand(REPORTS, at(90));
        failback.leader_changed(REPORTS, Some(node(leader)), at(100));
        failback
    }

    /// Whom it asks to make way at this instant, and in which election.
    fn asked(failback: &mut Failback, healthy: bool, now: Instant) -> Vec<(ElectionKey, String)> {
        failback.handle_timeout(healthy, now);
        std::iter::from_fn(|| failback.poll_attempt())
            .map(|attempt| (attempt.election(), attempt.leader().to_string()))
            .collect()
    }

    fn attempt() -> FailbackAttempt {
        let mut failback = behind("leader");
        failback.handle_timeout(true, at(110));
        failback.poll_attempt().expect("it is due")
    }

    fn led_by(leader: &str) -> Record {
        let stamp = Stamp { session: SessionId::from_u128(1), sequence: 1 };
        let pulse = Pulse { stamp, ttl: TTL, age: Age::Unknown };
        let holder = Holder { node: node(leader), term: Term::new(1), pulse };
        Record { term: Term::new(1), holder: Some(holder), ..Record::default() }
    }

    #[test]
    fn a_candidate_asks_once_it_has_stood_behind_a_leader_for_a_ttl_and_then_every_ttl() {
        let mut failback = behind("leader");
        assert_eq!(failback.poll_timeout(), Some(at(110)));
        assert_eq!(asked(&mut failback, true, at(109)), []);
        assert_eq!(asked(&mut failback, true, at(110)), [(REPORTS, "leader".to_owned())]);
        assert_eq!(failback.poll_timeout(), Some(at(120)));
        assert_eq!(asked(&mut failback, true, at(125)), [(REPORTS, "leader".to_owned())]);
        assert_eq!(failback.poll_timeout(), Some(at(135)));
    }

    #[test]
    fn the_wait_begins_anew_when_the_leader_changes() {
        let mut failback = behind("leader");
        failback.leader_changed(REPORTS, Some(node("other")), at(105));
        assert_eq!(asked(&mut failback, true, at(114)), []);
        assert_eq!(asked(&mut failback, true, at(115)), [(REPORTS, "other".to_owned())]);
    }

    #[test]
    fn the_wait_begins_when_the_node_stands_if_the_leader_was_known_before() {
        let mut failback = Failback::new(node("me"), 5, TTL);
        failback.leader_changed(REPORTS, Some(node("leader")), at(90));
        assert_eq!(failback.poll_timeout(), None, "an observer asks nobody");
        failback.stand(REPORTS, at(100));
        assert_eq!(failback.poll_timeout(), Some(at(110)));
    }

    #[test]
    fn a_node_asks_nobody_once_it_stands_no_longer() {
        let mut failback = behind("leader");
        failback.leave(REPORTS);
        assert_eq!(asked(&mut failback, true, at(110)), []);
        assert_eq!(failback.poll_timeout(), None);
        failback.stand(REPORTS, at(111));
        assert_eq!(asked(&mut failback, true, at(121)), [(REPORTS, "leader".to_owned())]);
    }

    #[test]
    fn a_node_asks_nobody_while_nobody_or_itself_leads() {
        let mut failback = behind("leader");
        failback.leader_changed(REPORTS, None, at(101));
        assert_eq!(failback.poll_timeout(), None);
        failback.leader_changed(REPORTS, Some(node("me")), at(102));
        assert_eq!(failback.poll_timeout(), None);
    }

    #[test]
    fn an_unhealthy_node_asks_nobody_and_looks_again_after_a_ttl() {
        let mut failback = behind("leader");
        assert_eq!(asked(&mut failback, false, at(110)), []);
        assert_eq!(asked(&mut failback, true, at(119)), []);
        assert_eq!(asked(&mut failback, true, at(120)), [(REPORTS, "leader".to_owned())]);
    }

    #[test]
    fn every_election_has_a_timer_of_its_own_until_it_is_removed() {
        let mut failback = behind("leader");
        failback.stand(BILLS, at(100));
        failback.leader_changed(BILLS, Some(node("other")), at(103));
        assert_eq!(asked(&mut failback, true, at(110)), [(REPORTS, "leader".to_owned())]);
        assert_eq!(asked(&mut failback, true, at(113)), [(BILLS, "other".to_owned())]);
        failback.remove(REPORTS);
        assert_eq!(failback.poll_timeout(), Some(at(123)));
        failback.stand(REPORTS, at(114));
        assert_eq!(failback.poll_timeout(), Some(at(123)), "the leader of a removed election is forgotten");
    }

    #[test]
    fn a_session_with_another_ttl_changes_the_wait() {
        let mut failback = Failback::new(node("me"), 5, TTL);
        failback.opened(TTL * 2);
        failback.stand(REPORTS, at(90));
        failback.leader_changed(REPORTS, Some(node("leader")), at(100));
        assert_eq!(failback.poll_timeout(), Some(at(120)));
        failback.handle_timeout(true, at(120));
        assert_eq!(failback.poll_attempt().map(|attempt| attempt.give_up()), Some(at(140)));
    }

    #[test]
    fn an_attempt_looks_at_the_leader_and_the_record_before_it_asks() {
        let mut attempt = attempt();
        assert_eq!(attempt.request(), FailbackRequest::Nodes);
        let (me, leader) = (node("me"), node("leader"));
        let nodes = [(&me, NodeState::Live, 5), (&leader, NodeState::Live, 4)];
        assert!(attempt.nodes(nodes, at(111)));
        assert_eq!(attempt.request(), FailbackRequest::Read);
        assert!(attempt.record(&led_by("leader"), at(112)));
        assert_eq!(attempt.request(), FailbackRequest::Petition);
    }

    #[test]
    fn a_leader_that_is_not_of_lower_priority_or_not_alive_is_left_alone() {
        let leader = node("leader");
        assert!(!attempt().nodes([(&leader, NodeState::Live, 5)], at(111)), "the same priority");
        assert!(!attempt().nodes([(&leader, NodeState::Live, 6)], at(111)), "a higher one");
        assert!(!attempt().nodes([(&leader, NodeState::Expired, 0)], at(111)), "dead");
        assert!(!attempt().nodes([(&leader, NodeState::Left, 0)], at(111)), "gone");
        assert!(!attempt().nodes([(&node("other"), NodeState::Live, 0)], at(111)), "unknown");
    }

    #[test]
    fn whoever_leads_instead_is_left_alone() {
        assert!(!attempt().record(&led_by("other"), at(111)));
        assert!(!attempt().record(&Record::default(), at(111)), "nobody leads");
    }

    #[test]
    fn an_attempt_is_given_up_after_a_ttl_or_a_second() {
        let leader = node("leader");
        assert_eq!(attempt().give_up(), at(120));
        assert!(attempt().nodes([(&leader, NodeState::Live, 0)], at(120)));
        assert!(!attempt().nodes([(&leader, NodeState::Live, 0)], at(121)));
        assert!(!attempt().record(&led_by("leader"), at(121)));
        let mut hasty = Failback::new(node("me"), 5, Duration::from_millis(100));
        hasty.stand(REPORTS, at(99));
        hasty.leader_changed(REPORTS, Some(leader), at(99));
        hasty.handle_timeout(true, at(100));
        assert_eq!(hasty.poll_attempt().map(|attempt| attempt.give_up()), Some(at(101)));
    }
}
