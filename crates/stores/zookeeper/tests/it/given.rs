//! A client that the application brings along.

use std::sync::Arc;
use std::time::Duration;

use crate::common::ticking;
use tenure::{ElectionName, Reason, Term};
use tenure_store::{Store, StoreUrl};
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, Witness, brief, calm, lead, soon, stand, start, until};
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::Client;

async fn store(client: &Client) -> Arc<ZooKeeperStore> {
    let url = StoreUrl::parse("zk:///tenure?tick=200ms").unwrap();
    Arc::new(soon(ZooKeeperStore::with_client(client.clone(), &url)).await.unwrap())
}

async fn client(hosts: &str, timeout: Duration) -> Client {
    soon(Client::connector().with_session_timeout(timeout).connect(hosts)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_all_elections_and_stays_the_applications() {
    let server = ZooKeeper::start();
    let client = client(&server.hosts(), Duration::from_secs(30)).await;
    let node = soon(calm("a").start(store(&client).await)).await.unwrap();
    let billing = node.election("billing").unwrap();
    let (reports, billing) = (lead(&node).await, soon(billing.elected()).await.unwrap());
    let connections = server.connections(0);
    assert_eq!(
        connections.iter().map(|one| one.session).collect::<Vec<_>>(),
        [client.session_id().0],
        "there is no other"
    );
    for election in [ELECTION, "billing"] {
        let line = format!("/tenure/default/lines/{election}");
        let place = client.list_children(&line).await.unwrap().remove(0);
        let (_, stat) = client.get_data(&format!("{line}/{place}")).await.unwrap();
        assert_eq!(stat.ephemeral_owner, client.session_id().0);
    }
    soon(reports.resign()).await.unwrap();
    drop((reports, billing));
    soon(node.close()).await;
    assert!(client.list_children("/tenure/default/sessions").await.unwrap().is_empty());

    // Another node may use it after that.
    let node = soon(calm("b").start(store(&client).await)).await.unwrap();
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_is_cut_off_the_leader_stops_in_time_and_when_it_is_over_the_store_says_so() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let hosts = format!("127.0.0.1:{}", proxy.port());
    let client = client(&hosts, Duration::from_secs(5)).await;
    let store = store(&client).await;
    let far = soon(brief("far").start(Arc::clone(&store) as Arc<dyn Store>)).await.unwrap();
    let near = start(calm("near"), &ticking(&server.url())).await;
    let first = lead(&far).await;
    let first_watch = Witness::of(&far, &first);
    let successor = stand(&near);
    proxy.drop_everything();
    assert_eq!(soon(first.lost()).await, Reason::Lapsed);
    let second = soon(successor).await.unwrap();
    let second_watch = Witness::of(&near, &second);
    proxy.pass();
    let election = ElectionName::new(ELECTION).unwrap();
    until(async || {
        let told = store.read(election.clone()).await;
        told.is_err_and(|problem| problem.to_string().contains("start a node with a new one"))
    })
    .await;
    assert_eq!(check_leaderships(&[first_watch.tell(), second_watch.tell()]), []);
}
