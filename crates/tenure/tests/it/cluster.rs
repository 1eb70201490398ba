//! The cluster as its nodes see it, and what its leader does for it.

use std::time::Duration;

use crate::common::{Manner, Wrapped, diligent, memory, soon, start};
use tenure::{Cluster, ClusterSettings, EventKind, EventQuery, NodeInfo, NodeState, SessionId, Store, View};
use tenure_store::{Open, clock};

/// How long the session of a dead process lives. Those of the living outlast every test.
const TTL: Duration = Duration::from_millis(600);

fn settings(minimum: usize) -> ClusterSettings {
    ClusterSettings { minimum, look_every: TTL / 3, forget_after: Duration::from_secs(3600) }
}

/// Registers a process that never shows another sign of life.
async fn dead(store: &std::sync::Arc<dyn Store>, id: &str, session: u128) -> SessionId {
    let session = SessionId::from_u128(session);
    let node = NodeInfo::new(id.try_into().unwrap(), "gone");
    let open = Open { session, sequence: 1, ttl: TTL, node, supersedes: None, over: None };
    store.open(open).await.unwrap();
    session
}

async fn until_seen(cluster: &mut Cluster, wanted: impl Fn(&View) -> bool) {
    soon(async {
        while !wanted(&cluster.view()) {
            cluster.changed().await.unwrap();
        }
    })
    .await;
}

fn state_of(view: &View, session: SessionId) -> Option<(NodeState, bool)> {
    view.member(session).map(|member| (member.record.state, member.lives))
}

async fn cluster_events(store: &std::sync::Arc<dyn Store>) -> Vec<EventKind> {
    let kinds = [EventKind::NodeExpired, EventKind::ClusterDegraded, EventKind::ClusterRecovered];
    let events = store.events(EventQuery::default()).await.unwrap().value;
    events.into_iter().map(|event| event.kind).filter(|kind| kinds.contains(kind)).collect()
}

#[tokio::test]
async fn the_leader_retires_a_dead_node_that_holds_nothing_and_not_before_its_ttl() {
    let store = memory();
    let before = clock::now();
    let session = dead(&store, "dead", 7).await;
    let node = start(diligent("a"), &store).await;
    let election = node.election("coordinator").unwrap();
    let mut cluster = node.cluster(&election.gate(), settings(1)).unwrap();
    let _leadership = soon(election.elected()).await.unwrap();
    until_seen(&mut cluster, |view| state_of(view, session) == Some((NodeState::Expired, false))).await;
    assert!(clock::now().since(before) >= TTL);
    assert_eq!(cluster_events(&store).await, [EventKind::NodeExpired]);
}

#[tokio::test]
async fn a_retirement_that_gets_no_answer_is_tried_again_and_keeps_nobody_from_looking() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("retire", Manner::Hangs);
    let store = wrapped.store();
    let session = dead(&store, "dead", 7).await;
    let node = start(diligent("a"), &store).await;
    let election = node.election("coordinator").unwrap();
    let mut cluster = node.cluster(&election.gate(), settings(1)).unwrap();
    let _leadership = soon(election.elected()).await.unwrap();
    until_seen(&mut cluster, |_| wrapped.count("retire") >= 2).await;
    assert_eq!(state_of(&cluster.view(), session), Some((NodeState::Live, false)));
    wrapped.set("retire", Manner::Dutiful);
    until_seen(&mut cluster, |view| state_of(view, session) == Some((NodeState::Expired, false))).await;
}

#[tokio::test]
async fn who_does_not_lead_sees_silence_but_retires_nobody() {
    let store = memory();
    let session = dead(&store, "dead", 7).await;
    let node = start(diligent("a"), &store).await;
    let election = node.election("coordinator").unwrap();
    let mut cluster = node.cluster(&election.gate(), settings(1)).unwrap();
    until_seen(&mut cluster, |view| state_of(view, session) == Some((NodeState::Live, false))).await;
    assert_eq!(cluster.view().live(), 1);
    assert_eq!(cluster_events(&store).await, []);
}

#[tokio::test]
async fn too_few_nodes_are_told_once_and_enough_of_them_again_once() {
    let store = memory();
    let node = start(diligent("a"), &store).await;
    let election = node.election("coordinator").unwrap();
    let mut cluster = node.cluster(&election.gate(), settings(2)).unwrap();
    let _leadership = soon(election.elected()).await.unwrap();
    let told = async |wanted: &[EventKind]| {
        soon(async {
            while cluster_events(&store).await != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    use EventKind::{ClusterDegraded, ClusterRecovered};
    told(&[ClusterDegraded]).await;
    let second = start(diligent("b"), &store).await;
    told(&[ClusterDegraded, ClusterRecovered]).await;
    let third = start(diligent("c"), &store).await;
    until_seen(&mut cluster, |view| view.live() == 3).await;
    soon(third.close()).await;
    until_seen(&mut cluster, |view| view.live() == 2).await;
    soon(second.close()).await;
    told(&[ClusterDegraded, ClusterRecovered, ClusterDegraded]).await;
}

#[tokio::test]
async fn a_node_that_was_retired_registers_again_by_itself() {
    let store = memory();
    let node = start(diligent("a"), &store).await;
    let first = node.session().unwrap();
    let seen = store.nodes().await.unwrap().value.remove(0).pulse.stamp;
    // Whoever does this was wrong, or too slow. (It may just have renewed: then again.)
    let mut over = seen;
    while !store.retire(over).await.unwrap().value {
        over = store.nodes().await.unwrap().value.remove(0).pulse.stamp;
    }
    let mut held = node.held();
    soon(async {
        while node.session().is_none_or(|session| session == first) {
            held.changed().await.unwrap();
        }
    })
    .await;
    let nodes = store.nodes().await.unwrap().value;
    assert_eq!((nodes[0].state, Some(nodes[0].session())), (NodeState::Live, node.session()));
}
