//! Starting a node, and what stands in the way of it.

use crate::common;
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, memory, soon, start};
use tenure::{Node, NodeInfo, SessionId, StartError};
use tenure_core::Opening;
use tenure_store::{Open, clock};

#[tokio::test]
async fn impossible_settings_are_refused_before_anything_is_touched() {
    let wrapped = Wrapped::new(memory());
    let calm = |id: &str| Node::builder(id).ttl(Duration::from_secs(60));
    let refusal = async |builder: tenure::NodeBuilder| {
        soon(builder.start(wrapped.store())).await.unwrap_err().to_string()
    };
    assert!(
        refusal(calm("a").ttl(Duration::ZERO)).await.starts_with("`ttl` is 0s, but must be at least 50ms")
    );
    assert!(refusal(calm("a").renew_every(Duration::from_secs(70))).await.contains("`renew_every` is 70s"));
    assert!(refusal(calm("a").stop_margin(Duration::from_secs(59))).await.contains("`stop_margin` is 59s"));
    assert!(
        refusal(calm("a").poll_every(Duration::from_secs(61)))
            .await
            .contains("`poll_every` is 61s, but must be at most")
    );
    assert!(refusal(calm("a").drift_thousandths(501)).await.contains("the drift is 501 thousandths"));
    assert!(refusal(calm("")).await.contains("node name is empty"));
    assert!(refusal(calm("a\nb")).await.contains("control character"));
    assert!(refusal(calm(&"x".repeat(200))).await.contains("200 bytes long"));
    assert_eq!(wrapped.count("open"), 0);
}

#[tokio::test]
async fn an_election_needs_a_usable_name() {
    let node = start(calm("a"), &memory()).await;
    assert!(node.election("").unwrap_err().to_string().contains("is empty"));
    assert!(node.election(" reports").unwrap_err().to_string().contains("space"));
    assert!(node.election("x".repeat(129)).is_err());
    assert!(node.election("Größe 7").is_ok());
}

#[tokio::test]
async fn a_second_live_process_with_the_same_id_is_refused() {
    let store = memory();
    let first = start(common::diligent("a"), &store).await;
    let leadership = soon(first.election("reports").unwrap().elected()).await.unwrap();
    let refused = soon(brief("a").start(store)).await.unwrap_err();
    assert!(matches!(refused, StartError::NodeIdTaken { .. }));
    assert!(refused.to_string().contains("another live process uses the node id `a`"));
    assert!(leadership.check().is_ok(), "the first one is not disturbed");
}

#[tokio::test]
async fn a_node_that_crashed_starts_again_once_its_session_has_lapsed() {
    let store = memory();
    let ttl = Duration::from_millis(600);
    let info = NodeInfo::new("a".try_into().unwrap(), "h");
    let session = SessionId::from_u128(7);
    let open = Open { session, sequence: 1, ttl, node: info, supersedes: None, over: None };
    let before = clock::now();
    assert_eq!(store.open(open).await.unwrap().value, Opening::Opened { ttl });
    let node = start(calm("a"), &store).await;
    assert!(clock::now().since(before) >= ttl, "not before it has lapsed");
    assert!(node.session().is_some_and(|open| open != session));
}

#[tokio::test]
async fn a_node_starts_again_at_once_after_it_was_closed() {
    let store = memory();
    let first = start(calm("a"), &store).await;
    soon(first.close()).await;
    start(calm("a"), &store).await;
}

#[tokio::test]
async fn start_waits_for_a_store_that_cannot_be_reached() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("open", Manner::Refuses);
    let starting = tokio::spawn(brief("a").start(wrapped.store()));
    common::until(|| wrapped.count("open") >= 3).await;
    assert!(!starting.is_finished());
    wrapped.set("open", Manner::Dutiful);
    assert!(soon(starting).await.unwrap().is_ok());
}

#[tokio::test]
async fn start_gives_up_after_its_time_limit_and_says_what_stood_in_the_way() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("open", Manner::Refuses);
    let starting = brief("a").start_timeout(Duration::from_secs(3)).start(wrapped.store());
    let error = soon(starting).await.unwrap_err().to_string();
    assert!(error.contains("within 3s") && error.contains("told to refuse"), "{error}");
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_named_with_what_to_do() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("open", Manner::Misconfigured);
    let error = soon(brief("a").start(wrapped.store())).await.unwrap_err();
    assert!(matches!(error, StartError::Misconfigured { .. }));
    assert!(error.to_string().contains("the table is missing; run `make it`"), "{error}");
}

#[tokio::test]
async fn dropping_the_start_leaves_no_session_behind() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("open", Manner::LosesReplies);
    let starting = tokio::spawn(brief("a").start(wrapped.store()));
    common::until(|| wrapped.count("open") >= 1).await;
    starting.abort();
    common::until(|| wrapped.count("close") >= 1).await;
    wrapped.set("open", Manner::Dutiful);
    start(calm("a"), &wrapped.store()).await;
}

#[tokio::test]
async fn an_unknown_scheme_is_refused_with_what_this_build_knows() {
    let message = async |url: &str| match tenure::connect(url).await {
        Ok(_) => panic!("{url} is accepted"),
        Err(error) => error.to_string(),
    };
    let unknown = message("oracle://scott:tiger@x/y").await;
    assert!(unknown.contains("unsupported store scheme `oracle:`"), "{unknown}");
    assert!(unknown.contains("`sqlite:`") && !unknown.contains("tiger"), "{unknown}");
    assert!(message("./tenure.db").await.contains("no scheme"));
    if cfg!(not(feature = "memory")) {
        assert!(message("memory:").await.contains("enable the feature `memory`"));
    }
}

#[tokio::test]
async fn a_url_picks_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = common::sqlite(&directory).await;
    assert!(store.as_any().is::<tenure::sqlite::SqliteStore>());
    let node = soon(Node::builder("a").start(store)).await.unwrap();
    assert_eq!(node.id().as_str(), "a");
    soon(node.close()).await;
}
