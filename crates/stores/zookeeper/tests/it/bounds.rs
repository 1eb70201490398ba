//! What is kept, and what is read, does not grow with the years.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{connect, name, open_for};
use tenure_store::{Claim, EventKind, EventQuery, Resign, Store, StoreUrl};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::soon;
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::Client;

const LONG: Duration = Duration::from_secs(600);

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

    let resign = Resign { session, election: name("e7"), attempt: 2, term: None, to: None };
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
