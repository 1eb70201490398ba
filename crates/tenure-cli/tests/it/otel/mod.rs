//! `tenure node` with a collector of ours: what it is sent.

#[path = "../node/client.rs"]
mod client;
mod collector;
#[path = "../run/place.rs"]
mod place;
#[path = "../node/stage.rs"]
mod stage;

use rustix::process::Signal;

use collector::Collector;
use stage::{Served, Stage};

/// The store of these tests.
const STORE: place::Kind = place::Kind::Sqlite;

fn node(stage: &Stage, endpoint: &str, more: &[(&str, &str)]) -> Served {
    let mut command = stage.tenure();
    command.args(["node", "--node", "a", "--listen", "127.0.0.1:0", "--ttl", "1h"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_BSP_SCHEDULE_DELAY", "50");
    command.envs(more.iter().copied());
    stage.serve("a", command)
}

#[test]
fn spans_of_election_work_arrive_at_the_collector_while_the_node_runs_and_when_it_ends() {
    let (stage, collector) = (Stage::new(), Collector::start());
    let mut node = node(&stage, &collector.endpoint, &[]);
    node.until_ok("/leader");
    // Requests to the store, and how long it took to be elected.
    collector.until_sent(&["tenure", "service.name", "store", "verb", "claim", "campaign", "coordinator"]);
    assert!(!collector.was_sent("leadership"), "the term is not over yet");
    node.signal(Signal::TERM);
    assert_eq!(node.code(), Some(0));
    collector.until_sent(&["leadership", "term", "reason"]);
    // Its work ends by itself or because the node closes, whichever is first.
    stage::until("why it ended is sent", || {
        ["resigned", "closing"].iter().any(|why| collector.was_sent(why))
    });
}

#[test]
fn a_collector_that_is_not_there_is_nobodys_trouble() {
    let stage = Stage::new();
    // Nobody listens at the discard port.
    for endpoint in ["http://127.0.0.1:9", "nonsense"] {
        let mut node = node(&stage, endpoint, &[]);
        node.until_ok("/leader");
        node.signal(Signal::TERM);
        assert_eq!(node.code(), Some(0), "{}", node.said());
    }
}

#[test]
fn nothing_is_sent_by_who_has_disabled_it() {
    let (stage, collector) = (Stage::new(), Collector::start());
    let mut node = node(&stage, &collector.endpoint, &[("OTEL_SDK_DISABLED", "true")]);
    node.until_ok("/leader");
    node.signal(Signal::TERM);
    assert_eq!(node.code(), Some(0));
    assert!(!collector.was_sent("store"));
}
