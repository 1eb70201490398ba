//! `tenure status`: who leads, who comes next, and how soon.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tenure::{Candidate, Drift, ElectionName, NodeId, NodeRecord, NodeState, Store};
use tenure_core::Record;
use tenure_http::Lease;
use tenure_store::{EventKind, EventQuery, EventRecord, Limit, clock, newest};

use super::ending;
use super::nodes::problems;
use super::sight::{Sight, State, age};
use super::unknown::unknown;
use crate::cli::{Global, Status};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, FAINT, GOOD, HEAD, harmless, length, millis, styled, timestamp};
use crate::store::{self, ask};

/// How far the beginning of a term is looked for in the history.
const HISTORY: u32 = 1_000;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    sight: Sight,
    state: State,
    lease: Option<Lease>,
    candidates: Vec<Standing>,
    forecast: Option<Forecast>,
    /// The live nodes of the namespace that are no candidates because their health probes fail.
    unhealthy: Vec<UnhealthyNode>,
    /// The node whose program's success has closed the election.
    #[serde(skip)]
    closed_by: Option<String>,
    /// Whether nodes other than the leader are live.
    #[serde(skip)]
    has_other_nodes: bool,
}

#[derive(Serialize)]
struct Standing {
    node_id: String,
    priority: i32,
}

#[derive(Serialize)]
struct UnhealthyNode {
    node_id: String,
    problem: String,
    unhealthy_since: String,
}

impl UnhealthyNode {
    fn of(node: &NodeRecord) -> Option<Self> {
        let unhealthy = node.unhealthy.as_ref().filter(|_| node.state == NodeState::Live)?;
        Some(Self {
            node_id: node.info.id.to_string(),
            problem: unhealthy.problem.to_string(),
            unhealthy_since: timestamp(unhealthy.since),
        })
    }
}

/// What follows if the leader dies now.
#[derive(Serialize)]
struct Forecast {
    /// The first candidate; `None` if no candidate is registered.
    successor: Option<String>,
    /// The longest time until it leads if only the leader's process dies. The store does not know whether that process
    /// has a guardian, which would resign for it at once, so this is the time without one.
    process_ms: Option<u64>,
    /// The longest time until another node leads if the leader's whole machine dies; `None` if every candidate is on it.
    machine_ms: Option<u64>,
    /// The first candidate on another machine.
    #[serde(skip)]
    elsewhere: Option<String>,
}

pub async fn status(store: Arc<dyn Store>, global: &Global, asked: &Status) -> Result<Exit, Failure> {
    let elections = ask(store.elections()).await?;
    let chosen: Vec<_> = match &asked.election {
        Some(name) => elections.into_iter().filter(|(known, _)| known == name).collect(),
        None => elections,
    };
    if let (Some(name), []) = (&asked.election, chosen.as_slice()) {
        return Err(unknown(&store, name).await?);
    }
    if chosen.is_empty() && !global.json {
        let (store, namespace) = (store::shown(global), &global.namespace);
        output::say(format!("there is no election in namespace `{namespace}` of {store}"))?;
    }
    let nodes = newest(ask(store.nodes()).await?);
    let problems = problems(&nodes);
    for (number, (election, _)) in chosen.iter().enumerate() {
        let report = Report::read(&store, election, &nodes).await?;
        match global.json {
            true => output::json(&report)?,
            false if number > 0 => output::say(format!("\n{report}"))?,
            false => output::say(report)?,
        }
    }
    if !global.json && !problems.is_empty() {
        output::say(format!("\n{}", problems.join("\n")))?;
    }
    Ok(Exit::DONE)
}

impl Report {
    async fn read(
        store: &Arc<dyn Store>,
        election: &ElectionName,
        nodes: &[NodeRecord],
    ) -> Result<Self, Failure> {
        let candidates = ask(store.candidates(election.clone())).await?;
        let asked = clock::now();
        let record = ask(store.read(election.clone())).await?;
        let round_trip = clock::now().since(asked);
        let now = SystemTime::now();
        let sight = Sight::of(election, &record, nodes);
        let acquired_at = match sight.leader_id {
            Some(_) => elected_at(store, election, sight.term).await?,
            None => None,
        };
        let state = State::of(&sight, &record);
        let closed_by = match state {
            State::Deleted => ending::closed_by(&newest_events(store, election).await?),
            _ => None,
        };
        Ok(Self {
            lease: lease(&sight, &record, nodes, now, acquired_at),
            state,
            forecast: forecast(&sight, &record, &candidates, nodes, round_trip),
            candidates: candidates.iter().map(Standing::of).collect(),
            unhealthy: nodes.iter().filter_map(UnhealthyNode::of).collect(),
            closed_by,
            has_other_nodes: has_other_nodes(&sight, nodes),
            sight,
        })
    }
}

/// When a term began, if the history reaches back so far.
async fn elected_at(
    store: &Arc<dyn Store>,
    election: &ElectionName,
    term: u64,
) -> Result<Option<SystemTime>, Failure> {
    let events = newest_events(store, election).await?;
    let elected =
        |event: &&EventRecord| event.kind == EventKind::LeaderElected && event.term.number() == term;
    Ok(events.iter().rfind(elected).map(|event| event.time))
}

async fn newest_events(store: &Arc<dyn Store>, election: &ElectionName) -> Result<Vec<EventRecord>, Failure> {
    let limit = Some(Limit::Newest(HISTORY));
    ask(store.events(EventQuery { election: Some(election.clone()), after: 0, limit })).await
}

/// The leader's lease, as over HTTP. Where the store cannot tell ages, the moments are those that it has written down.
fn lease(
    sight: &Sight,
    record: &Record,
    nodes: &[NodeRecord],
    now: SystemTime,
    acquired_at: Option<SystemTime>,
) -> Option<Lease> {
    let leader_id = sight.leader_id.clone()?;
    let pulse = record.holder.as_ref()?.pulse;
    let renewed_at = match age(pulse.age) {
        Some(age) => now - age,
        None => nodes.iter().find(|node| node.session() == pulse.stamp.session)?.renewed_at,
    };
    Some(Lease {
        leader_id,
        term: sight.term,
        acquired_at: acquired_at.map(timestamp),
        renewed_at: timestamp(renewed_at),
        expires_at: timestamp(renewed_at + pulse.ttl),
        hostname: sight.hostname.clone(),
        api_url: sight.api_url.clone(),
    })
}

impl Standing {
    fn of(candidate: &Candidate) -> Self {
        Self { node_id: candidate.node.to_string(), priority: candidate.priority }
    }
}

/// A candidate takes over when it has seen the leader silent for its whole ttl: where ages are known,
/// at the instant that it is over; where they are not, counted from now on, on a clock that may be
/// slow. One that registered after the leader's last renewal counts from when it registered. Then it reads, and
/// claims: two round trips.
fn forecast(
    sight: &Sight,
    record: &Record,
    candidates: &[Candidate],
    nodes: &[NodeRecord],
    round_trip: Duration,
) -> Option<Forecast> {
    let leader = sight.leader_id.as_deref()?;
    let pulse = record.holder.as_ref()?.pulse;
    let within = |candidate: &Candidate| {
        let silence = match age(pulse.age) {
            Some(age) => pulse.ttl.saturating_sub(age.min(registered_for(&candidate.node, nodes))),
            None => pulse.ttl * 1000 / u32::from(1000 - Drift::DEFAULT.thousandths()),
        };
        millis(silence + round_trip * 2)
    };
    let host =
        |id: &str| nodes.iter().find(|node| node.info.id.as_str() == id).map(|node| &node.info.hostname);
    // One whose machine is not known counts as elsewhere.
    let elsewhere = |candidate: &&Candidate| {
        let hosts = host(leader).zip(host(candidate.node.as_str()));
        hosts.is_none_or(|(leader, candidate)| leader != candidate)
    };
    let (first, other) = (candidates.first(), candidates.iter().find(elsewhere));
    let name = |candidate: &Candidate| candidate.node.to_string();
    Some(Forecast {
        successor: first.map(name),
        process_ms: first.map(within),
        machine_ms: other.map(within),
        elsewhere: other.map(name),
    })
}

fn has_other_nodes(sight: &Sight, nodes: &[NodeRecord]) -> bool {
    let other = |node: &NodeRecord| Some(node.info.id.as_str()) != sight.leader_id.as_deref();
    nodes.iter().any(|node| node.state == NodeState::Live && other(node))
}

/// How long ago a node registered, by the store's clock; zero if that cannot be told.
fn registered_for(id: &NodeId, nodes: &[NodeRecord]) -> Duration {
    let registered =
        |node: &NodeRecord| Some(node.renewed_at.duration_since(node.opened_at).ok()? + age(node.pulse.age)?);
    nodes.iter().find(|node| node.info.id == *id).and_then(registered).unwrap_or_default()
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", styled(HEAD, &self.sight.election), self.headline())?;
        for (number, candidate) in (1..).zip(&self.candidates) {
            let priority = styled(FAINT, format!("priority {}", candidate.priority));
            write!(f, "\n  {number}. {}  {priority}", candidate.node_id)?;
        }
        let (Some(leader), Some(forecast)) = (&self.sight.leader_id, &self.forecast) else { return Ok(()) };
        let within = |millis| length(Duration::from_millis(millis));
        let Some((successor, millis)) = forecast.successor.as_ref().zip(forecast.process_ms) else {
            write!(f, "\n  if {leader} dies now, nobody takes over: no candidate stands")?;
            // Such a candidate only reads while somebody leads, so the store does not know of it.
            let hint = " (a candidate with --takeover-delay is listed once its delay is over)";
            return write!(f, "{}", if self.has_other_nodes { hint } else { "" });
        };
        write!(f, "\n  if {leader} dies now, {successor} leads within {}", within(millis))?;
        match forecast.elsewhere.as_ref().zip(forecast.machine_ms) {
            Some((other, _)) if other == successor => Ok(()),
            Some((other, millis)) => {
                write!(f, "; if its machine dies, {other} leads within {}", within(millis))
            }
            None => write!(f, "; if its machine dies, nobody takes over: every candidate is on it"),
        }
    }
}

impl Report {
    fn headline(&self) -> String {
        let term = self.sight.term;
        let nobody = styled(BAD, "nobody leads");
        match (&self.sight.leader_id, self.state) {
            (Some(leader), _) => {
                let details = self.details();
                format!("{} leads under term {term}{details}", styled(GOOD, leader))
            }
            (None, State::Deleted) => match &self.closed_by {
                Some(node) => format!("closed: its program ended with code 0 on {node}"),
                None => format!(
                    "{nobody}; it was ended under term {term}, by `tenure delete` or a success under `run --once`"
                ),
            },
            (None, _) => format!("{nobody}; the last term was {term}"),
        }
    }

    /// Where the leader is, and for how long it leads without another sign of life.
    fn details(&self) -> String {
        let time = |millis| length(Duration::from_millis(millis));
        let parts: Vec<String> = [
            self.sight.hostname.as_ref().map(|host| format!("host {}", harmless(host))),
            self.sight.age_ms.map(|age| format!("renewed {} ago", time(age))),
            self.sight.expires_in_ms.map(|left| format!("{} left", time(left))),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use tenure::{NodeInfo, SessionId, Term};
    use tenure_core::{Age, Holder, Pulse, Stamp};

    use super::*;

    fn of(age: Age, candidates: &[&str]) -> (Sight, Record, Vec<Candidate>) {
        let stamp = Stamp { session: SessionId::from_u128(1), sequence: 1 };
        let pulse = Pulse { stamp, ttl: Duration::from_secs(9), age };
        let holder = Holder { node: NodeId::new("alpha").unwrap(), term: Term::new(7), pulse };
        let record = Record { term: Term::new(7), holder: Some(holder), ..Record::default() };
        let sight = Sight::of(&ElectionName::new("nightly").unwrap(), &record, &[]);
        let candidates =
            candidates.iter().map(|id| Candidate { node: NodeId::new(id).unwrap(), priority: 0 }).collect();
        (sight, record, candidates)
    }

    /// A node of this machine that registered so long ago, and has just renewed.
    fn node(id: &str, host: &str, registered: Duration) -> NodeRecord {
        let renewed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let stamp = Stamp { session: SessionId::from_u128(2), sequence: 1 };
        NodeRecord {
            info: NodeInfo::new(NodeId::new(id).unwrap(), host),
            state: NodeState::Live,
            pulse: Pulse { stamp, ttl: Duration::from_secs(9), age: Age::Exact(Duration::ZERO) },
            opened_at: renewed_at - registered,
            renewed_at,
            unhealthy: None,
        }
    }

    fn within_if_registered(age: Age, registered: Duration) -> Option<u64> {
        let (sight, record, candidates) = of(age, &["beta", "gamma"]);
        let nodes = [node("beta", "other", registered)];
        let forecast = forecast(&sight, &record, &candidates, &nodes, Duration::from_millis(3)).unwrap();
        assert_eq!(forecast.successor.as_deref(), Some("beta"));
        assert_eq!(forecast.process_ms, forecast.machine_ms);
        forecast.machine_ms
    }

    fn within(age: Age) -> Option<u64> {
        within_if_registered(age, Duration::from_secs(60))
    }

    #[test]
    fn a_take_over_is_expected_when_what_is_left_of_the_ttl_has_passed() {
        assert_eq!(within(Age::Exact(Duration::from_secs(2))), Some(7_006));
    }

    #[test]
    fn a_candidate_that_registered_after_the_last_renewal_waits_a_whole_ttl() {
        let renewed = Age::Exact(Duration::from_secs(3));
        assert_eq!(within_if_registered(renewed, Duration::from_secs(1)), Some(8_006));
        assert_eq!(within_if_registered(renewed, Duration::ZERO), Some(9_006));
    }

    #[test]
    fn where_ages_are_unknown_the_whole_ttl_is_counted_on_a_slow_clock() {
        assert_eq!(within(Age::Unknown), Some(10_006));
    }

    #[test]
    fn a_candidate_on_the_leaders_machine_does_not_survive_it() {
        let forecast = |hosts: &[(&str, &str)]| {
            let nodes: Vec<_> =
                hosts.iter().map(|(id, host)| node(id, host, Duration::from_secs(60))).collect();
            let (sight, record, candidates) = of(Age::Exact(Duration::from_secs(2)), &["beta", "gamma"]);
            let forecast = forecast(&sight, &record, &candidates, &nodes, Duration::from_millis(3)).unwrap();
            (forecast.successor.unwrap(), forecast.process_ms, forecast.machine_ms, forecast.elsewhere)
        };
        let (soon, beta) = (Some(7_006), String::from("beta"));
        let apart = [("alpha", "one"), ("beta", "one"), ("gamma", "two")];
        assert_eq!(forecast(&apart), (beta.clone(), soon, soon, Some(String::from("gamma"))));
        let together = apart.map(|(id, _)| (id, "one"));
        assert_eq!(forecast(&together), (beta, soon, None, None));
    }

    #[test]
    fn without_candidates_nobody_is_expected() {
        let (sight, record, candidates) = of(Age::Exact(Duration::ZERO), &[]);
        let forecast = forecast(&sight, &record, &candidates, &[], Duration::ZERO).unwrap();
        assert_eq!((forecast.successor, forecast.machine_ms), (None, None));
    }
}
