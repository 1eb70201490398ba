//! What is kept, and what is read, does not grow with the years.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{connect, name, open_for, person};
use futures_util::future::join_all;
use tenure_store::{Claim, EventKind, EventQuery, NodeState, Resign, Store, StoreUrl};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::soon;
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::{Acls, Client, CreateMode};

const LONG: Duration = Duration::from_secs(600);

/// Every `tenure run` is a node of its own. As on the other stores, the newest thousand are remembered.
#[tokio::test]
async fn nodes_that_are_no_more_are_forgotten_when_there_are_too_many() {
    const ENDED: usize = 1_200;
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let live = open_for(&store, 1, LONG).await;
    let finding = async || {
        let findings = soon(store.examine()).await.unwrap().value;
        findings.into_iter().find(|finding| finding.name == "ended nodes").unwrap()
    };
    assert!(finding().await.fine);
    let person = person(&server).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let written: Vec<_> = (0..ENDED)
        .map(|number| {
            // Half of them were never said to be over.
            let state = if number % 2 == 0 { "left" } else { "live" };
            let path = format!("/tenure/default/nodes/run-{number:04}");
            let document = format!(
                r#"{{"node":"run-{number:04}","session":"{:032x}","hostname":"h","pid":1,"state":"{state}","opened_us":{number}}}"#,
                10_000 + number
            );
            (path, document)
        })
        .collect();
    let made: Vec<_> =
        written.iter().map(|(path, document)| person.create(path, document.as_bytes(), &options)).collect();
    assert!(soon(join_all(made)).await.iter().all(Result::is_ok));
    let told = finding().await;
    assert!(!told.fine && told.value.contains("1200 remembered, at most 1000; 1 live"), "{told:?}");

    open_for(&store, 2, LONG).await;
    let told = finding().await;
    assert!(told.fine, "{told:?}");
    let nodes = soon(store.nodes()).await.unwrap().value;
    let ended: Vec<_> = nodes.iter().filter(|node| node.state != NodeState::Live).collect();
    assert!((900..=1_000).contains(&ended.len()), "{} are left", ended.len());
    let newest = format!("run-{:04}", ENDED - 1);
    assert!(ended.iter().any(|node| node.info.id.as_str() == newest), "the newest are kept");
    assert!(nodes.iter().any(|node| node.session() == live), "and whatever lives, however old");
}

/// A feed reads whatever is new with every wake-up, however many elections there are.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_elections_only_the_histories_are_read_that_have_something_new() {
    const ELECTIONS: u64 = 60;
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let session = open_for(&store, 1, LONG).await;
    for number in 0..ELECTIONS {
        let claim = Claim::plain(session, name(&format!("e{number}")), 1);
        soon(store.claim(claim)).await.unwrap();
    }
    // A reader with a connection of its own, whose requests the server counts.
    let client = soon(Client::connector().with_session_timeout(LONG).connect(&server.hosts())).await.unwrap();
    let session_id = client.session_id().0;
    let url = StoreUrl::parse("zk:///tenure?tick=200ms").unwrap();
    let reader = Arc::new(soon(ZooKeeperStore::with_client(client, &url)).await.unwrap());
    let all = soon(reader.events(EventQuery::default())).await.unwrap().value;
    assert!(all.len() as u64 >= 2 * ELECTIONS);
    let after = all.last().unwrap().id;

    let resign =
        Resign { session, election: name("e7"), attempt: 2, term: None, to: None, cause: Default::default() };
    soon(store.resign(resign)).await.unwrap();
    let received = || {
        let connections = server.connections(0);
        connections.iter().find(|one| one.session == session_id).expect("it is connected").received
    };
    let before = received();
    let query = EventQuery { after, ..EventQuery::default() };
    let new = soon(reader.events(query)).await.unwrap().value;
    let requests = received() - before;
    assert_eq!(new.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::LeaderResigned]);
    assert!(requests < ELECTIONS, "{requests} requests for one event");
}
