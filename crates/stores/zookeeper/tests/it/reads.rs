//! Reads on three servers: an answered write is seen through every one of them, whichever served the writer.
//!
//! `sync` is not enough for that. It makes a follower catch up with its leader, but on the leader itself it waits for
//! nothing, and a follower may answer its client before the leader has applied the same commit.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{connect, name, open_for, win};
use futures_util::future::join_all;
use rustix::process::Signal;
use tenure_core::partitions::{Change, Holding, Partition};
use tenure_core::{ElectionName, NodeId, Opening, Record, SessionId, Standing, TaskListName, Term};
use tenure_store::{
    Arranged, Arrangement, Claim, Declaration, Deletion, Enlistment, EventKind, EventQuery, Lease,
    LedgerQuery, NodeInfo, NodeState, Open, Petitioned, Publication, Published, Release, Resign, Store,
    StoreError, StoreUrl,
};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{soon, until};
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::Client;

const LONG: Duration = Duration::from_secs(300);
/// Each makes about 70 reads.
const ROUNDS: usize = 40;

/// One store per server.
struct Ensemble {
    servers: ZooKeeper,
    stores: Vec<Arc<ZooKeeperStore>>,
}

impl Ensemble {
    async fn start() -> Self {
        let servers = ZooKeeper::start_with(3, &["forceSync=no", "syncLimit=100"]);
        let mut stores = Vec::new();
        for number in 0..3 {
            let url = servers.url_by(servers.port(number));
            stores.push(Arc::new(connect(&url).await.unwrap()));
        }
        Self { servers, stores }
    }

    /// Asks through every server at once; all answers.
    async fn ask<T>(&self, ask: impl AsyncFn(&ZooKeeperStore) -> T) -> Vec<T> {
        soon(join_all(self.stores.iter().map(|store| ask(store)))).await
    }

    /// Asks through every server for something that all of them must show.
    async fn all_show<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        expected: T,
        ask: impl AsyncFn(&ZooKeeperStore) -> T,
    ) {
        for (number, shown) in self.ask(ask).await.into_iter().enumerate() {
            let leader = || self.servers.leader();
            assert_eq!(shown, expected, "{what}, through server {number} (the leader: {:?})", leader());
        }
    }

    async fn all_show_holder(&self, what: &str, election: &ElectionName, expected: Option<(&Member, Term)>) {
        let expected = expected.map(|(member, term)| (member.session, member.sequence, term));
        self.all_show(what, expected, async |store| {
            let holder = record(store, election).await.holder?;
            Some((holder.pulse.stamp.session, holder.pulse.stamp.sequence, holder.term))
        })
        .await;
    }

    async fn all_show_waiting(&self, what: &str, election: &ElectionName, expected: &[&str]) {
        self.all_show(what, expected.iter().map(ToString::to_string).collect(), async |store| {
            let waiting = store.candidates(election.clone()).await.unwrap().value;
            waiting.into_iter().map(|candidate| candidate.node.to_string()).collect::<Vec<_>>()
        })
        .await;
    }

    async fn all_show_states(&self, what: &str, expected: &[(&str, NodeState)]) {
        let expected: Vec<_> = expected.iter().map(|(id, state)| (id.to_string(), *state)).collect();
        self.all_show(what, expected, async |store| {
            let nodes = store.nodes().await.unwrap().value;
            nodes.into_iter().map(|node| (node.info.id.to_string(), node.state)).collect::<Vec<_>>()
        })
        .await;
    }

    async fn all_show_last_event(&self, election: &ElectionName, expected: EventKind) {
        self.all_show("the newest event", Some(expected), async |store| {
            let query = EventQuery { election: Some(election.clone()), ..EventQuery::default() };
            store.events(query).await.unwrap().value.last().map(|event| event.kind)
        })
        .await;
    }
}

async fn record(store: &ZooKeeperStore, election: &ElectionName) -> Record {
    store.read(election.clone()).await.unwrap().value
}

/// A node that sends one request at a time.
struct Member {
    store: Arc<ZooKeeperStore>,
    session: SessionId,
    sequence: u64,
    attempt: u64,
}

impl Member {
    async fn open(store: &Arc<ZooKeeperStore>, id: &str, session: u128) -> Self {
        let session = SessionId::from_u128(session);
        let node = NodeInfo::new(NodeId::new(id).unwrap(), "host");
        let open = Open { session, sequence: 1, ttl: LONG, node, supersedes: None, over: None };
        let opening = soon(store.open(open)).await.unwrap().value;
        assert!(matches!(opening, Opening::Opened { .. }), "the last session of {id} is closed: {opening:?}");
        Self { store: Arc::clone(store), session, sequence: 1, attempt: 0 }
    }

    async fn claim(&mut self, election: &ElectionName) -> Standing {
        self.attempt += 1;
        let claim = Claim::plain(self.session, election.clone(), self.attempt);
        soon(self.store.claim(claim)).await.unwrap().value
    }

    async fn lead(&mut self, what: &str, election: &ElectionName) -> Term {
        match self.claim(election).await {
            Standing::Leading { term } => term,
            other => panic!("{what}: {other:?}"),
        }
    }

    /// Claims what another one holds; who that is.
    async fn wait(&mut self, election: &ElectionName) -> Option<SessionId> {
        match self.claim(election).await {
            Standing::Waiting { seen } => seen.holder.map(|holder| holder.pulse.stamp.session),
            other => panic!("somebody else leads: {other:?}"),
        }
    }

    async fn resign(&mut self, election: &ElectionName, term: Option<Term>, to: Option<&str>) {
        self.attempt += 1;
        let to = to.map(|to| NodeId::new(to).unwrap());
        let (election, attempt) = (election.clone(), self.attempt);
        soon(self.store.resign(Resign {
            session: self.session,
            election,
            attempt,
            term,
            to,
            cause: Default::default(),
        }))
        .await
        .unwrap();
    }

    async fn renew(&mut self) {
        self.sequence += 1;
        soon(self.store.renew(self.session, self.sequence, 1)).await.unwrap();
    }
}

/// Every kind of write about an election, each followed by a read through every server. The writers move on from
/// server to server with the round.
async fn elect(ensemble: &Ensemble, round: usize) {
    let store = |offset: usize| &ensemble.stores[(round + offset) % 3];
    let election = name(&format!("e{round}"));
    let session = 2 * round as u128 + 1;
    let mut a = Member::open(store(0), "a", session).await;
    let mut b = Member::open(store(1), "b", session + 1).await;
    let live = [("a", NodeState::Live), ("b", NodeState::Live)];
    ensemble.all_show_states("two sessions were opened", &live).await;

    let first = a.lead("nobody stands", &election).await;
    ensemble.all_show_holder("a lease was granted", &election, Some((&a, first))).await;
    a.renew().await;
    ensemble.all_show_holder("a session was renewed", &election, Some((&a, first))).await;
    assert_eq!(b.wait(&election).await, Some(a.session));
    ensemble.all_show_waiting("a candidate stands", &election, &["b"]).await;

    let to = Some(NodeId::new("b").unwrap());
    let asked = soon(store(2).petition(election.clone(), to)).await.unwrap().value;
    assert!(matches!(asked, Petitioned::Noted { term, .. } if term == first), "{asked:?}");
    ensemble
        .all_show("a petition was noted", Some(first), async |store| {
            record(store, &election).await.petition.map(|petition| petition.term)
        })
        .await;
    a.resign(&election, Some(first), Some("b")).await;
    let second = first.next();
    ensemble.all_show_holder("a lease was passed on", &election, Some((&b, second))).await;
    assert_eq!(b.lead("it was passed the lease", &election).await, second);

    // One that waits withdraws, and the lease finds nobody.
    assert_eq!(a.wait(&election).await, Some(b.session));
    a.resign(&election, None, None).await;
    ensemble.all_show_waiting("a candidate has withdrawn", &election, &[]).await;
    b.resign(&election, None, None).await;
    ensemble.all_show_holder("a lease was freed", &election, None).await;
    let third = a.lead("the lease was freed", &election).await;
    ensemble.all_show_last_event(&election, EventKind::LeaderChanged).await;

    let lease = Lease { session: a.session, election: election.clone(), term: third };
    let declaration = Declaration { lease, degraded: true, live: 1, minimum: 2 };
    assert!(soon(store(2).declare(declaration.clone())).await.unwrap().value, "it is news");
    let news = ensemble.ask(async |store| store.declare(declaration.clone()).await.unwrap().value).await;
    assert_eq!(news, [false; 3], "it is news once");
    assert_eq!(b.wait(&election).await, Some(a.session));

    // Another process closes the session of the leader: what it held goes to the next in line.
    soon(store(2).close(a.session, Default::default())).await.unwrap();
    ensemble.all_show_holder("a session was closed", &election, Some((&b, third.next()))).await;
    ensemble.all_show_states("a session was closed", &[("a", NodeState::Left), live[1]]).await;
    b.lead("the leader's session was closed", &election).await;
    assert_eq!(soon(store(0).delete(election.clone(), true)).await.unwrap().value, Deletion::Ended);
    let again = ensemble.ask(async |store| store.delete(election.clone(), true).await.unwrap().value).await;
    assert_eq!(again, [Deletion::Absent; 3], "an election is ended once");
    ensemble.all_show_last_event(&election, EventKind::ElectionDeleted).await;
    soon(store(2).close(b.session, Default::default())).await.unwrap();
    ensemble.all_show_holder("a session was closed", &election, None).await;
}

/// The same for the ledger of partitions.
async fn divide(ensemble: &Ensemble, round: usize) {
    let store = |offset: usize| &ensemble.stores[(round + offset) % 3];
    let election = name(&format!("e{round}"));
    let session = 1_000_000 + 2 * round as u128;
    let mut coordinator = Member::open(store(0), "a", session).await;
    let worker = Member::open(store(1), "b", session + 1).await;
    let term = coordinator.lead("nobody stands", &election).await;
    let enlistment =
        Enlistment { election: election.clone(), session: worker.session, document: String::from("w") };
    soon(worker.store.ledger().unwrap().enlist(enlistment)).await.unwrap();
    ensemble
        .all_show("a worker has enlisted", vec![worker.session], async |store| {
            let survey = store.ledger().unwrap().survey(election.clone()).await.unwrap().value;
            survey.workers.iter().map(|worker| worker.session).collect::<Vec<_>>()
        })
        .await;
    let list = TaskListName::new("invoices").unwrap();
    let document = Some(String::from("4"));
    let arrangement = Arrangement { election: election.clone(), list, seen: 0, document };
    let arranged = soon(store(2).ledger().unwrap().arrange(arrangement)).await.unwrap().value;
    let Arranged::Written { number, .. } = arranged else { panic!("nobody else arranges: {arranged:?}") };
    ensemble
        .all_show("a task list was arranged", vec![number], async |store| {
            let query = LedgerQuery { election: election.clone(), since: 0, of: None };
            let leaf = store.ledger().unwrap().leaf(query).await.unwrap().value;
            leaf.lists.iter().map(|list| list.number).collect::<Vec<_>>()
        })
        .await;

    let partition = Partition { list: number, number: 0 };
    let holdings = async |expected: Holding| {
        ensemble
            .all_show("a partition was moved", Some(expected), async |store| {
                let query = LedgerQuery { election: election.clone(), since: 0, of: None };
                let leaf = store.ledger().unwrap().leaf(query).await.unwrap().value;
                leaf.page.entries.iter().find(|entry| entry.partition == partition).map(|entry| entry.holding)
            })
            .await;
    };
    let publish = async |after, change| {
        let lease = Lease { session: coordinator.session, election: election.clone(), term };
        let publication = Publication { lease, after, retire: Vec::new(), changes: vec![change] };
        let ledger = coordinator.store.ledger().unwrap();
        match soon(ledger.publish(publication)).await.unwrap().value {
            Published::Written { revision, refused } if refused.is_empty() => revision,
            other => panic!("it leads, and has seen everything: {other:?}"),
        }
    };
    let assigned = publish(0, Change::Assign { partition, seen: 0, to: worker.session }).await;
    holdings(Holding::Owned(worker.session)).await;
    let revoked = publish(assigned, Change::Revoke { partition, seen: assigned }).await;
    let release =
        Release { election: election.clone(), session: worker.session, released: vec![(partition, revoked)] };
    soon(worker.store.ledger().unwrap().acknowledge(release)).await.unwrap();
    holdings(Holding::Vacant).await;
    for member in [&coordinator, &worker] {
        soon(store(2).close(member.session, Default::default())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_answered_is_seen_through_every_server() {
    let ensemble = Ensemble::start().await;
    for round in 0..ROUNDS {
        elect(&ensemble, round).await;
        divide(&ensemble, ROUNDS + round).await;
    }
}

/// How much the clients of a server have sent to its port, and it has not read.
fn unread_bytes(port: u16) -> u64 {
    // Java's sockets are of IPv6, also for IPv4.
    let connections =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap());
    // A number, the local address, the other one, the state, and what is in the queues for sending and for reading.
    let unread = connections.iter().flat_map(|table| table.lines()).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let local = fields.get(1)?.split_once(':')?.1;
        let (_, queue) = fields.get(4)?.split_once(':')?;
        let established = fields[3] == "01" && u16::from_str_radix(local, 16) == Ok(port);
        established.then(|| u64::from_str_radix(queue, 16).unwrap())
    });
    unread.sum()
}

/// It leads the ensemble no more, and does not know it yet: it answers what it finds in its sockets before it notices
/// that its followers are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_deposed_while_it_was_stopped_shows_nothing_old() {
    let servers = ZooKeeper::ensemble(3);
    let deposed = servers.leader().expect("one leads: all serve");
    let hosts = |wanted: fn(usize, usize) -> bool| {
        let hosts = (0..3).filter(|number| wanted(*number, deposed));
        hosts.map(|number| format!("127.0.0.1:{}", servers.port(number))).collect::<Vec<_>>().join(",")
    };
    // A client that does not give its connection up while the server is stopped.
    let connector = Client::connector().with_session_timeout(LONG);
    let client = soon(connector.connect(&hosts(|number, deposed| number == deposed))).await.unwrap();
    let url = StoreUrl::parse("zk:///tenure?tick=200ms").unwrap();
    let there = Arc::new(soon(ZooKeeperStore::with_client(client, &url)).await.unwrap());
    let election = name("reports");
    let others = format!("zk://{}", hosts(|number, deposed| number != deposed));
    let here = connect(&others).await.unwrap();
    let leader = open_for(&here, 1, LONG).await;
    win(&here, leader).await;
    assert!(record(&there, &election).await.holder.is_some());

    servers.signal(deposed, Signal::STOP);
    until(async || servers.leader().is_some_and(|leader| leader != deposed)).await;
    let ended = async || {
        let here = connect(&others).await?;
        here.delete(election.clone(), true).await
    };
    until(async || match ended().await {
        Ok(answer) => answer.value != Deletion::Led,
        Err(StoreError::Unavailable(_) | StoreError::Indeterminate(_)) => false,
        Err(error) => panic!("{error}"),
    })
    .await;
    let unread = unread_bytes(servers.port(deposed));
    let asked = tokio::spawn({
        let (there, election) = (Arc::clone(&there), election.clone());
        async move { there.read(election).await }
    });
    until(async || unread_bytes(servers.port(deposed)) > unread || asked.is_finished()).await;
    servers.signal(deposed, Signal::CONT);
    match soon(asked).await.unwrap() {
        Ok(shown) => assert!(shown.value.ended > Term::NONE, "it was ended before this was asked: {shown:?}"),
        Err(StoreError::Unavailable(_) | StoreError::Indeterminate(_)) => {}
        Err(error) => panic!("{error}"),
    }
}
