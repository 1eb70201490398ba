//! The line: whoever waits watches one place, and a departure wakes one candidate.

use crate::common;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{LINE, claiming, connect, line, name, person, ticking};
use futures_util::future::join_all;
use tenure::{Leadership, Node};
use tenure_core::{SessionId, Standing, Term};
use tenure_store::{Claim, EventKind, EventQuery, Resign, Store};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, brief, calm, lead, soon, stand, start, until};
use tenure_zookeeper::ZooKeeperStore;

const CANDIDATES: u128 = 500;
/// Nobody renews, and five hundred sessions are opened one after the other.
const LONG: Duration = Duration::from_secs(3_600);

/// Who watches which place: connections of candidates, by the path that they watch.
fn watches(server: &ZooKeeper) -> BTreeMap<String, Vec<String>> {
    let mut watches: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let said = server.ask(0, "wchp");
    let mut path = String::new();
    for text in said.lines() {
        match text.strip_prefix('\t') {
            Some(session) => watches.entry(path.clone()).or_default().push(session.to_owned()),
            None => path = text.to_owned(),
        }
    }
    watches.retain(|path, _| path.starts_with(LINE));
    watches
}

async fn claim(store: &ZooKeeperStore, session: SessionId, attempt: u64) -> Standing {
    store.claim(Claim { attempt, ..claiming(session) }).await.unwrap().value
}

#[tokio::test(flavor = "multi_thread")]
async fn of_five_hundred_candidates_a_departure_wakes_one() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 1..=CANDIDATES {
        sessions.push(common::open_for(&store, number, LONG).await);
    }
    assert!(matches!(claim(&store, sessions[0], 1).await, Standing::Leading { .. }));
    let rest = join_all(sessions[1..].iter().map(|session| claim(&store, *session, 1))).await;
    assert!(rest.iter().all(|standing| matches!(standing, Standing::Waiting { .. })));

    // Its own place, so that it hears of an end; and the one before. Nobody else watches.
    let person = person(&server).await;
    let mut places = line(&person).await;
    places.sort_by_key(|place| place.rsplit('-').next().unwrap().to_owned());
    assert_eq!(places.len(), sessions.len());
    let watched = watches(&server);
    let mut owners = HashMap::new();
    for place in &places {
        let (_, stat) = person.get_data(&format!("{LINE}/{place}")).await.unwrap();
        owners.insert(place.clone(), format!("0x{:x}", stat.ephemeral_owner));
    }
    for (index, place) in places.iter().enumerate() {
        let mut expected = Vec::new();
        if index > 0 {
            expected.push(owners[place].clone());
        }
        if let Some(next) = places.get(index + 1) {
            expected.push(owners[next].clone());
        }
        let mut found = watched.get(&format!("{LINE}/{place}")).cloned().unwrap_or_default();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "place {index} of {}", places.len());
    }

    // One in the middle goes: the one behind it closes up, and nobody else watches anything new.
    let middle = places.len() / 2;
    let number = |place: &str| u128::from_str_radix(place.split('-').nth(2).unwrap(), 16).unwrap();
    let leaves = SessionId::from_u128(number(&places[middle]));
    let election = name(ELECTION);
    store
        .resign(Resign {
            session: leaves,
            election,
            attempt: 2,
            term: None,
            to: None,
            cause: Default::default(),
        })
        .await
        .unwrap();
    let behind = SessionId::from_u128(number(&places[middle + 1]));
    assert!(matches!(claim(&store, behind, 3).await, Standing::Waiting { .. }), "it does not lead");
    let after = watches(&server);
    let changed: Vec<_> = places
        .iter()
        .filter(|place| {
            let path = format!("{LINE}/{place}");
            let sorted = |all: &BTreeMap<String, Vec<String>>| {
                let mut one = all.get(&path).cloned().unwrap_or_default();
                one.sort();
                one
            };
            sorted(&watched) != sorted(&after)
        })
        .collect();
    assert_eq!(changed, [&places[middle - 1], &places[middle]]);
}

/// So many who stand, the first of whom leads.
async fn standing(store: &ZooKeeperStore, count: u128) -> Vec<SessionId> {
    let mut sessions = Vec::new();
    for number in 1..=count {
        let session = common::open_for(store, number, LONG).await;
        claim(store, session, 1).await;
        sessions.push(session);
    }
    sessions
}

/// Its neighbours may have gone too: whoever is woken reads the whole line again.
#[tokio::test]
async fn whoever_is_woken_finds_that_several_have_gone_at_once() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let sessions = standing(&store, 4).await;
    let person = person(&server).await;
    // Those in between first: whoever leads passes the lease on to the next who is there.
    for session in sessions[..3].iter().rev() {
        store.close(*session, Default::default()).await.unwrap();
    }
    until(async || line(&person).await.len() == 1).await;
    assert_eq!(claim(&store, sessions[3], 2).await, Standing::Leading { term: Term::new(2) });
}

/// One write frees the lease and grants it: whoever is next learns its term by asking, and others see it lead.
#[tokio::test]
async fn a_resignation_grants_the_lease_to_the_next_in_line_by_the_same_write() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let sessions = standing(&store, 3).await;
    let resign = async |session, attempt| resign(&store, session, attempt).await;
    let holder =
        async || store.read(name(ELECTION)).await.unwrap().value.holder.map(|one| one.pulse.stamp.session);
    resign(sessions[0], 2).await;
    assert_eq!(holder().await, Some(sessions[1]));
    assert_eq!(claim(&store, sessions[1], 3).await, Standing::Leading { term: Term::new(2) });
    resign(sessions[1], 2).await; // sent before that claim: it is void
    assert_eq!(holder().await, Some(sessions[1]));

    // Whoever withdraws gives a lease up with it that it has not heard of yet.
    resign(sessions[1], 4).await;
    assert_eq!(holder().await, Some(sessions[2]));
    resign(sessions[2], 2).await;
    assert_eq!(holder().await, None);
    let terms = store.read(name(ELECTION)).await.unwrap().value.term;
    assert_eq!(terms, Term::new(3), "granted once each");

    // Nobody was without a leader in between, and the history says so.
    let history = store.events(EventQuery::default()).await.unwrap().value;
    let when = |kind, term| {
        let found = history.iter().find(|event| event.kind == kind && event.term == Term::new(term));
        found.unwrap_or_else(|| panic!("no {kind:?} of term {term} in {history:?}")).time
    };
    assert_eq!(when(EventKind::LeaderResigned, 1), when(EventKind::LeaderElected, 2));
}

async fn resign(store: &ZooKeeperStore, session: SessionId, attempt: u64) {
    let resign = Resign {
        session,
        election: name(ELECTION),
        attempt,
        term: None,
        to: None,
        cause: Default::default(),
    };
    store.resign(resign).await.unwrap();
}

/// Who waits, in order of succession.
async fn candidates(store: &ZooKeeperStore) -> Vec<String> {
    let waiting = soon(store.candidates(name(ELECTION))).await.unwrap().value;
    waiting.into_iter().map(|candidate| candidate.node.to_string()).collect()
}

/// A candidate that is unhealthy withdraws, say.
#[tokio::test]
async fn a_candidate_that_withdraws_is_out_of_line_at_once_and_the_lease_passes_it_over() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let sessions = standing(&store, 3).await;
    assert_eq!(candidates(&store).await, ["n2", "n3"]);
    resign(&store, sessions[1], 2).await;
    assert_eq!(candidates(&store).await, ["n3"]);
    resign(&store, sessions[0], 2).await;
    assert_eq!(claim(&store, sessions[2], 2).await, Standing::Leading { term: Term::new(2) });

    // When it is well again it is the last in line.
    claim(&store, sessions[0], 3).await;
    claim(&store, sessions[1], 3).await;
    assert_eq!(candidates(&store).await, ["n1", "n2"]);
}

/// Its place goes while the leader picks it as its successor, or right after it was passed the lease.
#[tokio::test]
async fn of_a_leader_and_the_next_in_line_who_resign_at_once_the_lease_goes_to_the_third() {
    const ROUNDS: u64 = 50;
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 1..=3 {
        sessions.push(common::open_for(&store, number, LONG).await);
    }
    for round in 0..ROUNDS {
        for session in &sessions {
            claim(&store, *session, 3 * round + 1).await;
        }
        let (leads, next) = (sessions[0], sessions[1]);
        let attempt = 3 * round + 2;
        join_all([leads, next].map(|session| resign(&store, session, attempt))).await;
        let record = store.read(name(ELECTION)).await.unwrap().value;
        let holder = record.holder.map(|holder| holder.pulse.stamp.session);
        assert_eq!(holder, Some(sessions[2]), "round {round}");
        resign(&store, sessions[2], attempt).await;
    }
}

/// A place is found again by the session in its name, but only one that the session owns is led from.
#[tokio::test]
async fn a_place_that_bears_our_name_and_is_not_ours_is_refused() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let session = common::open_for(&store, 1, LONG).await;
    claim(&store, session, 1).await;
    let election = name(ELECTION);
    store
        .resign(Resign { session, election, attempt: 2, term: None, to: None, cause: Default::default() })
        .await
        .unwrap();
    let person = person(&server).await;
    let forged = format!("{LINE}/c-7fffffff-{session}-");
    let anybody = zookeeper_client::Acls::anyone_all();
    let options = zookeeper_client::CreateMode::EphemeralSequential.with_acls(anybody);
    person.create(&forged, br#"{"node":"n1"}"#, &options).await.unwrap();
    let refused = store.claim(Claim { attempt: 3, ..claiming(session) }).await.unwrap_err();
    assert!(refused.to_string().contains("does not own"), "{refused}");
}

/// A leads, and B and C wait in this order when B's health probe begins to fail. B's session outlives the test, so
/// nothing but B itself takes it out of the line.
async fn an_unhealthy_candidate_is_passed_over(leave: impl AsyncFnOnce(Node, Leadership, &Proxy)) {
    let server = ZooKeeper::start();
    let (url, proxy) = (ticking(&server.url()), Proxy::before(server.port(0)));
    let store = connect(&url).await.unwrap();
    let a = start(brief("a"), &ticking(&server.url_by(proxy.port()))).await;
    let first = lead(&a).await;
    let is_well = Arc::new(AtomicBool::new(true));
    let probed = Arc::clone(&is_well);
    let probe = move || {
        let healthy = probed.load(Ordering::Acquire);
        async move { healthy }
    };
    let b = start(calm("b").health(probe), &url).await;
    let unwell = stand(&b);
    until(async || candidates(&store).await == ["b"]).await;
    let c = start(calm("c"), &url).await;
    let successor = stand(&c);
    until(async || candidates(&store).await == ["b", "c"]).await;

    is_well.store(false, Ordering::Release);
    until(async || candidates(&store).await == ["c"]).await;
    leave(a, first, &proxy).await;
    let second = soon(successor).await.unwrap();
    assert_eq!((second.check(), second.term()), (Ok(Term::new(2)), Term::new(2)));
    assert!(!unwell.is_finished() && candidates(&store).await.is_empty(), "b is still unwell");
}

#[tokio::test]
async fn when_the_leader_is_closed_an_unhealthy_candidate_is_passed_over() {
    an_unhealthy_candidate_is_passed_over(async |a, first, _| {
        drop(first);
        soon(a.close()).await;
    })
    .await;
}

/// As if the machine of the leader were gone: its session lapses.
#[tokio::test]
async fn when_the_leader_is_gone_an_unhealthy_candidate_is_passed_over() {
    an_unhealthy_candidate_is_passed_over(async |_a, _first, proxy| proxy.drop_everything()).await;
}
