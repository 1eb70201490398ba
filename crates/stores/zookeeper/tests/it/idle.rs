//! What nodes ask of the servers while nothing happens, and of what those who wait are told.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{claiming, connect, name, open_for, ticking, win};
use futures_util::StreamExt;
use tenure::Node;
use tenure_core::Instant;
use tenure_store::{EventQuery, Hint, Petitioned, Resign, Store, clock};
use tenure_testkit::patience::HANG;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, lead, renewals, soon, stand, start, until};

const LONG: Duration = Duration::from_secs(3_600);

/// How many packets came over each connection so far, and when.
fn received(server: &ZooKeeper) -> (Instant, BTreeMap<i64, u64>) {
    let connections = server.connections(0);
    (clock::now(), connections.iter().map(|one| (one.session, one.received)).collect())
}

/// Per ttl, three renewals of one request each, six pings, and one look of two requests. On a busy machine somebody is
/// late at times, and asks again; so they are watched until nobody is.
#[tokio::test(flavor = "multi_thread")]
async fn idle_nodes_renew_and_look_over_one_connection_each() {
    const TTL: Duration = Duration::from_secs(6);
    const PER_TTL: f64 = 3.0 + 6.0 + 2.0;
    let server = ZooKeeper::start();
    let url = ticking(&server.url());
    let node = |id: &str| Node::builder(id).ttl(TTL);
    let a = start(node("a"), &url).await;
    let leadership = lead(&a).await;
    let (b, c) = (start(node("b"), &url).await, start(node("c"), &url).await);
    let _standing = (stand(&b), stand(&c));
    let (end, mut watched) = (clock::now() + HANG, Vec::new());
    loop {
        let (begun, before) = received(&server);
        renewals(&a, 4).await;
        let (ended, after) = received(&server);
        let ttls = ended.since(begun).as_secs_f64() / TTL.as_secs_f64();
        let packets: Vec<u64> = before.values().zip(after.values()).map(|(one, other)| other - one).collect();
        let calm = packets.iter().all(|count| *count as f64 <= ttls * PER_TTL + 2.0);
        if before.len() == 3 && before.keys().eq(after.keys()) && calm {
            break;
        }
        watched.push((before, after, ttls));
        assert!(clock::now() < end, "they ask too much: {watched:?}");
    }
    // Whoever asks for something else has a connection for that, for a while.
    soon(b.store().events(EventQuery::default())).await.unwrap();
    until(async || received(&server).1.len() == 3).await;
    soon(leadership.resign()).await.unwrap();
}

#[tokio::test]
async fn a_renewal_is_one_request_unless_there_is_something_to_tell() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let session = open_for(&store, 1, LONG).await;
    win(&store, session).await;
    let packets = || received(&server).1.into_values().sum::<u64>();
    let renew = async |sequence| soon(store.renew(session, sequence, 1)).await.unwrap().value;
    // The store's own connection pings.
    until(async || received(&server).1.len() == 1).await;

    let told = renew(2).await;
    assert_eq!((told.previous, told.notices, told.grants), (1, 0, 1), "the grant is told");
    let before = packets();
    for sequence in 3..10 {
        assert_eq!(renew(sequence).await.previous, sequence - 1);
    }
    let late = renew(5).await;
    assert_eq!((late.previous, late.notices, late.grants), (9, 0, 1));
    assert_eq!(packets() - before, 8);

    let asked = soon(store.petition(name(ELECTION), None)).await.unwrap().value;
    assert!(matches!(asked, Petitioned::Noted { .. }));
    let told = renew(11).await;
    assert_eq!((told.previous, told.notices, told.grants), (9, 1, 1));
}

/// A hand-over among a hundred would else make a hundred ask at once.
#[tokio::test]
async fn those_far_behind_in_line_are_not_told_of_a_new_leader() {
    let server = ZooKeeper::start();
    let [first, front, far] = [(); 3].map(|()| async { connect(&server.url()).await.unwrap() });
    let (first, front, far) = (first.await, front.await, far.await);
    let leader = open_for(&first, 1, LONG).await;
    win(&first, leader).await;
    for (store, numbers) in [(&front, 2..=5), (&far, 6..=6)] {
        for number in numbers {
            let session = open_for(store, number, LONG).await;
            soon(store.claim(claiming(session))).await.unwrap();
        }
    }
    let (mut near_news, mut far_news) = (front.news(), far.news());
    let resign = Resign {
        session: leader,
        election: name(ELECTION),
        attempt: 2,
        term: None,
        to: None,
        cause: Default::default(),
    };
    soon(first.resign(resign)).await.unwrap();
    let is_told = |hint: &Hint| *hint == Hint::Election(name(ELECTION));
    soon(async { while !is_told(&near_news.next().await.unwrap()) {} }).await;
    // What happens later is told later.
    open_for(&first, 7, LONG).await;
    let heard = soon(async {
        let mut heard = Vec::new();
        while heard.last() != Some(&Hint::Nodes) {
            heard.push(far_news.next().await.unwrap());
        }
        heard
    })
    .await;
    assert!(!heard.iter().any(is_told), "{heard:?}");
}
