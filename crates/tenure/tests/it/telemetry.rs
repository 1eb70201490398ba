//! What a node tells of itself: subscribers, the log and the history use the same names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::common::{Manner, STEADY, Wrapped, brief, calm, memory, soon, start, steady};
use futures_util::FutureExt;
use tenure::{EventKind, EventQuery, NodeEvent, Reason, Subscription, Term};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// What the nodes of this process have logged: events, and spans that are over.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<Fields>>,
    spans: Mutex<Vec<(&'static str, Fields)>>,
}

/// Drivers log from threads of their own, so the log is the process's. The tests of this file tell their nodes
/// apart by name.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Recorder)).unwrap();
        Log::default()
    })
}

struct Recorder;

/// What an event or a span says, by name.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        log().events.lock().unwrap().push(fields);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        spans.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, spans: Context<'_, S>) {
        let span = spans.span(id).unwrap();
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_close(&self, id: Id, spans: Context<'_, S>) {
        let span = spans.span(&id).unwrap();
        if let Some(fields) = span.extensions_mut().remove::<Fields>() {
            log().spans.lock().unwrap().push((span.name(), fields));
        }
    }
}

/// The spans of this name that a node has ended.
fn spans(name: &str, node: &str) -> Vec<Fields> {
    let spans = log().spans.lock().unwrap();
    let of_node = spans.iter().filter(|(span, fields)| *span == name && fields.get("node") == node);
    of_node.map(|(_, fields)| fields.clone()).collect()
}

/// Reads until one of this name.
async fn next(events: &mut Subscription, name: &str) -> NodeEvent {
    loop {
        let event = soon(events.next()).await.expect("the node is not at its end");
        if event.name() == name {
            return event;
        }
    }
}

fn election() -> tenure::ElectionName {
    "reports".try_into().unwrap()
}

#[tokio::test]
async fn a_follower_is_told_who_leads_that_it_is_down_and_that_it_leads_itself() {
    let store = memory();
    let (first, second) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let leadership = soon(first.election("reports").unwrap().elected()).await.unwrap();
    let mut events = second.subscribe();
    let contest = second.election("reports").unwrap();
    let waits = tokio::spawn(async move { contest.elected().await });

    let a = || Some("a".try_into().unwrap());
    let b = || Some("b".try_into().unwrap());
    let check = next(&mut events, "election_check").await;
    assert_eq!(check, NodeEvent::ElectionCheck { election: election(), leader: a(), term: Term::new(1) });
    let changed = next(&mut events, "leader_changed").await;
    let (previous, new, term) = (None, a(), Term::new(1));
    assert_eq!(changed, NodeEvent::LeaderChanged { election: election(), previous, new, term });
    leadership.resign().await.unwrap();
    let _leads = soon(waits).await.unwrap().unwrap();

    let mut told = Vec::new();
    while !told.iter().any(|event| matches!(event, NodeEvent::LeaderElected { .. })) {
        told.push(soon(events.next()).await.unwrap());
    }
    told.push(next(&mut events, "leader_changed").await);
    let down = NodeEvent::LeaderDown { election: election(), former: a().unwrap(), term: Term::new(1) };
    let position = |wanted: &NodeEvent| told.iter().position(|event| event == wanted);
    assert_eq!(told.iter().filter(|event| event.name() == "leader_down").count(), 1, "{told:?}");
    let elected = NodeEvent::LeaderElected { election: election(), term: Term::new(2) };
    assert!(position(&down).unwrap() < position(&elected).unwrap(), "{told:?}");
    let changed = told.iter().rfind(|event| event.name() == "leader_changed").unwrap();
    let NodeEvent::LeaderChanged { new, term, .. } = changed else { unreachable!() };
    assert_eq!((new.clone(), *term), (b(), Term::new(2)));
}

#[tokio::test]
async fn a_leader_is_told_of_renewals_of_jeopardy_and_why_it_was_lost() {
    let wrapped = Wrapped::new(memory());
    let node = start(steady("c"), &wrapped.store()).await;
    let mut events = node.subscribe();
    let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
    let NodeEvent::LeaseRenewed { until } = next(&mut events, "lease_renewed").await else { unreachable!() };
    let NodeEvent::LeaseRenewed { until: later } = next(&mut events, "lease_renewed").await else {
        unreachable!()
    };
    assert!(later > until);
    wrapped.set_all(&Manner::Refuses);
    let NodeEvent::InJeopardy { left } = next(&mut events, "in_jeopardy").await else { unreachable!() };
    assert!(left < STEADY);
    let lost = next(&mut events, "leader_lost").await;
    let term = Term::new(1);
    assert_eq!(lost, NodeEvent::LeaderLost { election: election(), term, reason: Reason::Lapsed });
    drop(leadership);
}

#[tokio::test]
async fn a_node_is_told_that_its_store_is_away_and_that_it_is_back() {
    let wrapped = Wrapped::new(memory());
    let node = start(brief("e"), &wrapped.store()).await;
    let mut events = node.subscribe();
    wrapped.set_all(&Manner::Refuses);
    let NodeEvent::StoreLost { problem } = next(&mut events, "store_lost").await else { unreachable!() };
    assert!(!problem.is_empty());
    wrapped.set_all(&Manner::Dutiful);
    let NodeEvent::StoreBack { away } = next(&mut events, "store_back").await else { unreachable!() };
    assert!(away > Duration::ZERO);
}

#[tokio::test]
async fn subscriptions_end_with_the_node_and_one_that_lags_counts_what_it_missed() {
    let node = start(calm("d"), &memory()).await;
    let (mut events, mut lazy) = (node.subscribe(), node.subscribe());
    let contest = node.election("reports").unwrap();
    for _ in 0..400 {
        soon(contest.elected()).await.unwrap().resign().await.unwrap();
        while events.next().now_or_never().is_some() {}
    }
    soon(node.close()).await;
    next(&mut events, "node_left").await;
    assert_eq!(soon(events.next()).await, None);
    assert_eq!(events.missed(), 0);
    let mut heard = 0;
    while soon(lazy.next()).await.is_some() {
        heard += 1;
    }
    assert!(heard > 0 && lazy.missed() > 0, "{heard} heard, {} missed", lazy.missed());
    assert_eq!(soon(node.subscribe().next()).await, None, "nothing comes after the end");
}

#[tokio::test]
async fn subscribers_the_log_and_the_history_have_the_same_names() {
    log();
    let store = memory();
    let node = start(calm("named"), &store).await;
    let mut events = node.subscribe();
    let contest = node.election("reports").unwrap();
    soon(contest.elected()).await.unwrap().resign().await.unwrap();
    soon(node.close()).await;
    let mut told = Vec::new();
    while let Some(event) = soon(events.next()).await {
        told.push(event.name());
    }
    let lines = log().events.lock().unwrap().clone();
    let own = lines.iter().filter(|line| line.get("node") == "named");
    let own: Vec<&str> = own.map(|line| line.get("message")).collect();
    let since = own.iter().position(|line| *line == "node_joined").unwrap() + 1;
    assert_eq!(own[since..], told[..], "the same, in the same order");
    let history = store.events(EventQuery::default()).await.unwrap().value;
    for kind in [EventKind::LeaderElected, EventKind::LeaderResigned, EventKind::NodeLeft] {
        assert!(history.iter().any(|event| event.kind == kind), "{kind} is in the history");
        assert!(told.contains(&kind.name()), "{kind} was told");
    }
}

#[tokio::test]
async fn campaigns_terms_and_requests_to_the_store_are_spans_that_say_how_they_ended() {
    log();
    let wrapped = Wrapped::new(memory());
    let node = start(calm("spanned"), &wrapped.store()).await;
    let contest = node.election("reports").unwrap();
    let leadership = soon(contest.elected()).await.unwrap();
    assert_eq!(spans("campaign", "spanned").len(), 1, "it stands no longer");
    assert_eq!(spans("leadership", "spanned").len(), 0, "it still leads");
    leadership.resign().await.unwrap();
    let worked: Result<(), _> = soon(contest.lead(async |_| Err("it broke"))).await;
    assert!(worked.is_err());
    wrapped.set("claim", Manner::Refuses);
    let stands = tokio::spawn({
        let contest = contest.clone();
        async move { contest.elected().await }
    });
    soon(async {
        while !spans("store", "spanned").iter().any(|span| span.get("error").contains("told to refuse")) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    stands.abort();
    soon(node.close()).await;

    let terms = spans("leadership", "spanned");
    let told: Vec<_> =
        terms.iter().map(|span| ["election", "term", "reason"].map(|name| span.get(name))).collect();
    assert_eq!(told, [["reports", "1", "resigned"], ["reports", "2", "resigned"]]);
    let asked = spans("store", "spanned");
    let fine = |verb: &str| asked.iter().any(|span| span.get("verb") == verb && span.get("error").is_empty());
    for verb in ["open", "claim", "resign", "close"] {
        assert!(fine(verb), "{verb}: {asked:?}");
    }
    assert!(asked.iter().any(|span| span.get("verb") == "claim" && span.get("election") == "reports"));
}
