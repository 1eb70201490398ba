//! Callbacks: on elected, on deposed, on a change of the cluster.

use crate::common::{calm, memory, soon, start};
use tenure::{ClusterSettings, ElectionError, Leadership, NodeState, Reason};
use tokio::sync::mpsc;

#[derive(Debug, PartialEq)]
enum Told {
    Elected(u64),
    Deposed(u64, Reason),
    Members(Vec<String>),
}

#[tokio::test]
async fn a_win_is_told_once_its_callback_is_wired_and_its_loss_with_the_reason() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let (elected, deposed) = (tell.clone(), tell);
    // A node that nobody competes with wins at once: but not before it stands.
    let callbacks = election
        .callbacks()
        .on_elected(move |leadership: Leadership| {
            let elected = elected.clone();
            async move {
                assert!(leadership.check().is_ok());
                elected.send(Told::Elected(leadership.term().number())).unwrap();
            }
        })
        .on_deposed(move |term, reason| {
            let deposed = deposed.clone();
            async move { deposed.send(Told::Deposed(term.number(), reason)).unwrap() }
        });
    assert!(told.try_recv().is_err());
    let standing = tokio::spawn(callbacks.stand());
    assert_eq!(soon(told.recv()).await, Some(Told::Elected(1)));
    store.petition(election.name().clone(), None).await.unwrap();
    assert_eq!(soon(told.recv()).await, Some(Told::Deposed(1, Reason::Asked)));
    assert_eq!(soon(told.recv()).await, Some(Told::Elected(2)), "it stands again");
    soon(node.close()).await;
    assert_eq!(soon(told.recv()).await, Some(Told::Deposed(2, Reason::Closing)));
    soon(standing).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_lease_is_given_back_only_after_the_work_was_stopped() {
    let store = memory();
    let (node, rival) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let election = node.election("reports").unwrap();
    let (started, mut work) = mpsc::unbounded_channel();
    let (let_go, gone) = tokio::sync::watch::channel(false);
    let callbacks = election.callbacks().on_elected(move |leadership: Leadership| {
        let started = started.clone();
        async move { started.send(leadership).unwrap() }
    });
    let callbacks = callbacks.on_deposed(move |_, _| {
        let mut gone = gone.clone();
        async move { _ = gone.wait_for(|gone| *gone).await }
    });
    let _standing = tokio::spawn(callbacks.stand());
    let leadership = soon(work.recv()).await.unwrap();
    let theirs = rival.election("reports").unwrap();
    let waiting = tokio::spawn(async move { theirs.elected().await });
    while election.candidates().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    store.petition(election.name().clone(), None).await.unwrap();
    soon(leadership.lost()).await;
    assert!(!waiting.is_finished(), "nobody else leads while the work may still run");
    let holder = store.read(election.name().clone()).await.unwrap().value.holder.unwrap();
    assert_eq!(holder.node, *node.id());
    let_go.send_replace(true);
    assert!(soon(waiting).await.unwrap().unwrap().check().is_ok());
}

#[tokio::test]
async fn an_election_that_is_ended_ends_the_callbacks() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let standing = tokio::spawn(election.callbacks().stand());
    while election.delete_even_if_led().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(soon(standing).await.unwrap(), Err(ElectionError::Ended)));
}

#[tokio::test]
async fn who_comes_and_goes_is_told() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let cluster = node.cluster(&election.gate(), ClusterSettings::default()).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let callbacks = election.callbacks().on_membership_change(&cluster, move |view| {
        let tell = tell.clone();
        async move {
            let live = view.members.iter().filter(|member| member.record.state == NodeState::Live);
            tell.send(Told::Members(live.map(|member| member.record.info.id.to_string()).collect())).unwrap();
        }
    });
    let _standing = tokio::spawn(callbacks.stand());
    let members = |names: &[&str]| Some(Told::Members(names.iter().map(|&name| name.to_owned()).collect()));
    assert_eq!(soon(told.recv()).await, members(&["a"]));
    let other = start(calm("b"), &store).await;
    assert_eq!(soon(told.recv()).await, members(&["a", "b"]));
    soon(other.close()).await;
    assert_eq!(soon(told.recv()).await, members(&["a"]));
}
