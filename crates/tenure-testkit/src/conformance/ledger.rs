//! The ledger: no partition has two owners, and nobody but the leader in force gives one away.
//!
//! Kept by the stores that have one; where there is none, the checks have nothing to ask.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tenure_core::partitions::{BATCH, Change, Entry, Holding, Page, Partition, Revision};
use tenure_core::{Namespace, SessionId, Stamp, TaskListName, Term};
use tenure_store::{
    Arranged, Arrangement, Enlistment, EventKind, LEDGER_PAGE, Leaf, Lease, Ledger, LedgerQuery, Options,
    Publication, Published, Release, Reply, Store, StoreError, Survey,
};

use super::cast::{Node, election, events};
use super::fixture::Fixture;
use super::history::assert_sound;

const ELECTION: &str = "coordinator";

const fn part(number: u32) -> Partition {
    Partition { list: 0, number }
}

const fn assign(number: u32, seen: Revision, to: &Node) -> Change {
    Change::Assign { partition: part(number), seen, to: to.session }
}

const fn revoke(number: u32, seen: Revision) -> Change {
    Change::Revoke { partition: part(number), seen }
}

fn ledger(store: &Arc<dyn Store>) -> &dyn Ledger {
    store.ledger().expect("a store that has a ledger has one over every connection")
}

fn answer<T>(reply: Reply<T>) -> T {
    reply.expect("the store answers").value
}

/// A connection, if the store keeps a ledger.
async fn connect(fixture: &Fixture) -> Option<Arc<dyn Store>> {
    let store = fixture.connect().await;
    store.ledger().is_some().then_some(store)
}

/// A node that has enlisted.
async fn worker(store: &Arc<dyn Store>, id: &str) -> Node {
    let node = Node::open(store, id).await;
    answer(enlist(&node, "{}").await);
    node
}

async fn enlist(node: &Node, document: &str) -> Reply<()> {
    let (election, document) = (election(ELECTION), document.to_owned());
    ledger(&node.store).enlist(Enlistment { election, session: node.session, document }).await
}

/// Writes under a term, after the last publication that there is.
async fn publish(node: &Node, term: Term, changes: &[Change]) -> Published {
    let after = page(&node.store, 0, None).await.published;
    let mut published = answer(ledger(&node.store).publish(publication(node, term, after, changes)).await);
    if let Published::Written { refused, .. } = &mut published {
        refused.sort(); // they come in any order
    }
    published
}

fn publication(node: &Node, term: Term, after: Revision, changes: &[Change]) -> Publication {
    let lease = Lease { session: node.session, election: election(ELECTION), term };
    Publication { lease, after, retire: Vec::new(), changes: changes.to_vec() }
}

/// Writes, and demands that all of it is written; its revision.
async fn write(node: &Node, term: Term, changes: &[Change]) -> Revision {
    match publish(node, term, changes).await {
        Published::Written { revision, refused } if refused.is_empty() => revision,
        other => panic!("what had to be written was not: {other:?}"),
    }
}

/// Writes, and demands that nothing of it is.
async fn expect_refused(node: &Node, term: Term, changes: &[Change]) {
    let before = page(&node.store, 0, None).await;
    let all = changes.iter().map(Change::partition).collect();
    let refused = Published::Written { revision: before.revision, refused: all };
    assert_eq!(publish(node, term, changes).await, refused);
    assert_eq!(page(&node.store, 0, None).await, before);
}

async fn acknowledge(node: &Node, released: &[(u32, Revision)]) -> Reply<u64> {
    let released = released.iter().map(|(number, revision)| (part(*number), *revision)).collect();
    let release = Release { election: election(ELECTION), session: node.session, released };
    ledger(&node.store).acknowledge(release).await
}

async fn leaf(store: &Arc<dyn Store>, since: Revision, of: Option<SessionId>) -> Leaf {
    answer(ledger(store).leaf(LedgerQuery { election: election(ELECTION), since, of }).await)
}

async fn page(store: &Arc<dyn Store>, since: Revision, of: Option<SessionId>) -> Page {
    leaf(store, since, of).await.page
}

async fn entry(store: &Arc<dyn Store>, number: u32) -> Option<(Revision, Holding)> {
    let entries = page(store, 0, None).await.entries;
    let found = entries.iter().find(|entry| entry.partition == part(number));
    found.map(|entry| (entry.revision, entry.holding))
}

async fn survey(store: &Arc<dyn Store>) -> Survey {
    answer(ledger(store).survey(election(ELECTION)).await)
}

/// Who is surveyed, by name, and whether it lives.
async fn seen(store: &Arc<dyn Store>) -> BTreeSet<(String, bool)> {
    let workers = survey(store).await.workers;
    workers.iter().map(|worker| (worker.node.to_string(), worker.pulse.is_some())).collect()
}

fn names(expected: &[(&str, bool)]) -> BTreeSet<(String, bool)> {
    expected.iter().map(|(name, live)| ((*name).to_owned(), *live)).collect()
}

/// An old coordinator changes nothing, however late it wakes up.
pub async fn a_plan_is_written_only_under_the_term_in_force(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let (old, new) = (Node::open(&store, "old").await, Node::open(&store, "new").await);
    let worker = worker(&store, "worker").await;
    let changes = [assign(0, 0, &worker)];
    assert_eq!(publish(&old, Term::new(1), &changes).await, Published::TermOver, "nobody leads");
    let first = old.lead(ELECTION).await;
    assert_eq!(publish(&new, first, &changes).await, Published::TermOver, "another leads");
    let ahead = Term::new(first.number() + 1);
    assert_eq!(publish(&old, ahead, &changes).await, Published::TermOver, "under a term that is not yet");
    old.resign(ELECTION).await;
    let second = new.lead(ELECTION).await;
    assert_eq!(publish(&old, first, &changes).await, Published::TermOver, "its term is over");
    assert_eq!(publish(&new, first, &changes).await, Published::TermOver, "under another's term");
    assert_eq!(page(&store, 0, None).await, Page::default());
    write(&new, second, &changes).await;
    new.close().await;
    let late = ledger(&new.store).publish(publication(&new, second, 1, &[revoke(0, 1)])).await;
    assert!(matches!(late, Err(StoreError::SessionLost)), "a dead session published: {late:?}");
}

/// What was given up and arrives late changes nothing, even under the term in force.
pub async fn a_publication_is_refused_once_another_has_followed(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let worker = worker(&store, "worker").await;
    let late = publication(&leader, term, 0, &[assign(1, 0, &worker)]);
    let revision = write(&leader, term, &[assign(0, 0, &worker)]).await;
    assert_eq!(answer(ledger(&store).publish(late).await), Published::Overtaken);
    assert_eq!(entry(&store, 1).await, None);
    let page = page(&store, 0, None).await;
    assert_eq!((page.revision, page.published), (revision, revision));
}

/// Two connections write at once: one is first, and the other is told.
pub async fn of_publications_at_once_exactly_one_is_written(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let worker = worker(&store, "worker").await;
    let mut rivals = Vec::new();
    for number in 0..8 {
        let (there, rival) =
            (fixture.elsewhere(&store).await, publication(&leader, term, 0, &[assign(number, 0, &worker)]));
        rivals.push(tokio::spawn(async move {
            loop {
                match ledger(&there).publish(rival.clone()).await {
                    // They may be in each other's way.
                    Err(StoreError::Unavailable(_) | StoreError::Indeterminate(_)) => {}
                    other => return answer(other),
                }
            }
        }));
    }
    for rival in rivals {
        rival.await.expect("nobody panics");
    }
    assert_eq!(page(&store, 0, None).await.entries.len(), 1);
}

/// The others are written.
pub async fn a_change_that_is_not_as_it_was_seen_is_refused_alone(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, gone, stranger) =
        (worker(&store, "a").await, worker(&store, "gone").await, Node::open(&store, "stranger").await);
    gone.close().await;
    let changes = [
        assign(0, 0, &a),
        assign(1, 7, &a),
        assign(2, 0, &gone),
        assign(3, 0, &stranger),
        revoke(4, 0),
        assign(5, 0, &a),
    ];
    let expected = Published::Written { revision: 1, refused: vec![part(1), part(2), part(3), part(4)] };
    assert_eq!(publish(&leader, term, &changes).await, expected);
    let written = [part(0), part(5)].map(|partition| Entry {
        partition,
        revision: 1,
        holding: Holding::Owned(a.session),
    });
    assert_eq!(page(&store, 0, None).await.entries, written);
    expect_refused(&leader, term, &[revoke(0, 0), revoke(5, 2)]).await;
}

/// Never two owners.
pub async fn a_partition_changes_hands_only_once_it_was_released(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let given = write(&leader, term, &[assign(0, 0, &a)]).await;
    expect_refused(&leader, term, &[assign(0, given, &b)]).await;
    answer(acknowledge(&a, &[(0, given)]).await);
    assert_eq!(entry(&store, 0).await, Some((given, Holding::Owned(a.session))), "it was not revoked");

    let revoked = write(&leader, term, &[revoke(0, given)]).await;
    expect_refused(&leader, term, &[assign(0, revoked, &b)]).await;
    answer(acknowledge(&b, &[(0, revoked)]).await);
    answer(acknowledge(&a, &[(0, given), (0, revoked + 1)]).await);
    assert_eq!(entry(&store, 0).await, Some((revoked, Holding::Revoking(a.session))), "nobody has stopped");

    answer(acknowledge(&a, &[(0, revoked)]).await);
    let (released, holding) = entry(&store, 0).await.expect("it is in the ledger");
    assert_eq!(holding, Holding::Vacant);
    let again = write(&leader, term, &[assign(0, released, &b)]).await;
    assert!(given < revoked && revoked < released && released < again);
    answer(acknowledge(&a, &[(0, revoked)]).await);
    assert_eq!(entry(&store, 0).await, Some((again, Holding::Owned(b.session))), "that was long ago");
}

/// It needs no acknowledgement, and none is taken from it.
pub async fn what_a_session_owned_is_free_once_it_is_over(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let given = write(&leader, term, &[assign(0, 0, &a), assign(1, 0, &a)]).await;
    let revoked = write(&leader, term, &[revoke(1, given)]).await;
    a.close().await;
    let late = acknowledge(&a, &[(1, revoked)]).await;
    assert!(matches!(late, Err(StoreError::SessionLost)), "a dead session released: {late:?}");
    expect_refused(&leader, term, &[revoke(0, given)]).await;
    assert_eq!(seen(&store).await, names(&[("a", false), ("b", true)]), "it is named as long as it owned");
    write(&leader, term, &[assign(0, given, &b), assign(1, revoked, &b)]).await;
    assert_eq!(seen(&store).await, names(&[("b", true)]));
}

/// Also when its node is back under another one.
pub async fn a_former_session_of_a_node_is_known_by_name(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let before = worker(&store, "a").await;
    write(&leader, term, &[assign(0, 0, &before)]).await;
    before.close().await;
    let after = worker(&store, "a").await;
    let workers = survey(&store).await.workers;
    let lives = |session| {
        let found = workers.iter().find(|worker| worker.session == session);
        found.map(|worker| (worker.node.clone(), worker.pulse.is_some()))
    };
    assert_eq!(lives(before.session), Some((before.id.clone(), false)));
    assert_eq!(lives(after.session), Some((before.id.clone(), true)));
}

/// A sign of life in between saves it, and what it owns.
pub async fn silent_workers_are_retired_by_exactly_their_pulse(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let given = write(&leader, term, &[assign(0, 0, &a)]).await;
    let taken = |stamp: Stamp| Publication {
        retire: vec![stamp],
        ..publication(&leader, term, given, &[assign(0, given, &b)])
    };
    let old = a.stamp();
    a.renew().await;
    let refused = Published::Written { revision: given, refused: vec![part(0)] };
    assert_eq!(answer(ledger(&store).publish(taken(old)).await), refused);
    let written = Published::Written { revision: given + 1, refused: Vec::new() };
    assert_eq!(answer(ledger(&store).publish(taken(a.stamp())).await), written);
    a.expect_lost().await;
    assert_eq!(entry(&store, 0).await, Some((given + 1, Holding::Owned(b.session))));
}

/// With its next renewal a worker learns that there is something to read.
pub async fn word_is_left_for_whoever_is_concerned(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let mut last = a.renew().await.notices;
    let bystander = b.renew().await.notices;
    let mut rises = async |what: &str| {
        let notices = a.renew().await.notices;
        assert!(notices > last, "nobody was told: {what}");
        assert_eq!(page(&store, 0, Some(a.session)).await.notices, notices);
        last = notices;
    };
    let given = write(&leader, term, &[assign(0, 0, &a), assign(1, 0, &a)]).await;
    rises("given").await;
    let revoked = write(&leader, term, &[revoke(0, given)]).await;
    rises("revoked").await;
    let told = answer(acknowledge(&a, &[(0, revoked)]).await);
    rises("released").await;
    assert_eq!(answer(acknowledge(&a, &[(0, revoked)]).await), told, "twice is once");
    assert_eq!(b.renew().await.notices, bystander);
}

/// A ledger is read in pages, and what was changed at once is told at once.
pub async fn a_reader_goes_on_where_it_stopped(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let batch = u32::try_from(BATCH).expect("a small number");
    let pages = 1 + u32::try_from(LEDGER_PAGE).expect("a small number") / batch;
    for first in (0..=pages).map(|count| count * batch) {
        let of = |number: u32| if number.is_multiple_of(2) { &a } else { &b };
        let changes: Vec<_> = (first..first + batch).map(|number| assign(number, 0, of(number))).collect();
        write(&leader, term, &changes).await;
    }
    let all = (pages + 1) * batch;
    assert_eq!(read_on(&store, None).await, all);
    assert_eq!(read_on(&store, Some(a.session)).await, all / 2);
    let last = page(&store, 0, None).await.revision;
    assert!(page(&store, last, None).await.entries.is_empty());
    let revoked = write(&leader, term, &[revoke(4, 1), revoke(5, 1)]).await;
    let news = page(&store, last, Some(b.session)).await.entries;
    let expected = Entry { partition: part(5), revision: revoked, holding: Holding::Revoking(b.session) };
    assert_eq!(news, [expected]);
}

/// Reads all there is, however many pages that takes: how many entries.
async fn read_on(store: &Arc<dyn Store>, of: Option<SessionId>) -> u32 {
    let (mut cursor, mut found) = (0, BTreeSet::new());
    loop {
        let page = page(store, cursor, of).await;
        let revisions: Vec<_> = page.entries.iter().map(|entry| entry.revision).collect();
        assert!(revisions.is_sorted() && revisions.iter().all(|revision| *revision > cursor));
        assert!(of.is_none() || page.entries.iter().all(|entry| entry.holding.owner() == of));
        for entry in &page.entries {
            assert!(found.insert(entry.partition), "told twice: {:?}", entry.partition);
        }
        if !page.more {
            return u32::try_from(found.len()).expect("a small number");
        }
        cursor = *revisions.last().expect("a page that is not the last has entries");
    }
}

/// Entries call a task list by its number, for ever.
pub async fn a_task_list_keeps_its_number(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let arrange = async |name: &str, seen: Revision, document: Option<&str>| {
        let list = TaskListName::new(name).expect("a good name");
        let document = document.map(str::to_owned);
        answer(
            ledger(&store).arrange(Arrangement { election: election(ELECTION), list, seen, document }).await,
        )
    };
    let first = Arranged::Written { number: 0, revision: 1 };
    assert_eq!(arrange("billing/invoices", 0, Some("ten")).await, first);
    assert_eq!(arrange("billing/invoices", 0, Some("ten")).await, first, "it is so already");
    assert_eq!(arrange("billing/invoices", 0, Some("two")).await, Arranged::Overtaken);
    assert_eq!(
        arrange("Größe/7'\"\\", 0, Some("{\"a\": 1}")).await,
        Arranged::Written { number: 1, revision: 2 }
    );
    assert_eq!(arrange("billing/invoices", 1, None).await, Arranged::Written { number: 0, revision: 3 });
    assert_eq!(arrange("later", 0, Some("x")).await, Arranged::Written { number: 2, revision: 4 });
    let again = Arranged::Written { number: 0, revision: 5 };
    assert_eq!(arrange("billing/invoices", 3, Some("two")).await, again);

    let told = |leaf: Leaf| -> Vec<(u32, String, Option<String>)> {
        leaf.lists.into_iter().map(|list| (list.number, list.name.to_string(), list.document)).collect()
    };
    let row = |number, name: &str, document: &str| (number, name.to_owned(), Some(document.to_owned()));
    let (billing, later) = (row(0, "billing/invoices", "two"), row(2, "later", "x"));
    let whole = [billing.clone(), row(1, "Größe/7'\"\\", "{\"a\": 1}"), later.clone()];
    assert_eq!(told(leaf(&store, 0, None).await), whole);
    assert_eq!(told(leaf(&store, 3, None).await), [billing, later]);
    assert_eq!(survey(&store).await.revision, 5);
}

/// A node that works says what it is good for; its last word counts.
pub async fn only_a_live_session_enlists(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let (a, _) = (worker(&store, "a").await, Node::open(&store, "bystander").await);
    answer(enlist(&a, "capacity 2").await);
    let workers = survey(&store).await.workers;
    let told: Vec<_> = workers.iter().map(|one| (one.node.as_str(), one.document.as_str())).collect();
    assert_eq!(told, [("a", "capacity 2")]);
    assert_eq!(workers[0].pulse.as_ref().map(|pulse| pulse.stamp.session), Some(a.session));
    a.close().await;
    assert!(matches!(enlist(&a, "").await, Err(StoreError::SessionLost)));
    assert!(survey(&store).await.workers.is_empty(), "it owned nothing");
}

/// What another election or namespace keeps is none of ours.
pub async fn ledgers_share_nothing(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = worker(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    write(&leader, term, &[assign(0, 0, &leader)]).await;
    let namespace = Namespace::new("other").expect("a good name");
    let elsewhere = fixture.connect_with(Options { namespace, ..Options::default() }).await;
    assert_eq!(leaf(&elsewhere, 0, None).await, Leaf::default());
    assert_eq!(survey(&elsewhere).await, Survey::default());
    let query = LedgerQuery { election: election("reports"), since: 0, of: None };
    assert_eq!(answer(ledger(&store).leaf(query).await), Leaf::default());
    let stranger = worker(&elsewhere, "stranger").await;
    expect_refused(&leader, term, &[assign(1, 0, &stranger)]).await;
}

/// In the transaction of what it tells, without a gap.
pub async fn what_is_written_is_in_the_history(fixture: Arc<Fixture>) {
    let Some(store) = connect(&fixture).await else { return };
    let leader = Node::open(&store, "leader").await;
    let term = leader.lead(ELECTION).await;
    let (a, b) = (worker(&store, "a").await, worker(&store, "b").await);
    let list = TaskListName::new("orders/inbox").expect("a good name");
    let document = Some(String::from("of four"));
    let arrangement = Arrangement { election: election(ELECTION), list, seen: 0, document };
    answer(ledger(&store).arrange(arrangement).await);
    let given = write(&leader, term, &[assign(1, 0, &a), assign(0, 0, &a)]).await;
    let changes = [revoke(0, given), assign(3, 0, &b), assign(2, 0, &a)];
    let revoked = write(&leader, term, &changes).await;
    answer(acknowledge(&a, &[(0, revoked)]).await);
    answer(acknowledge(&a, &[(0, revoked)]).await);
    let history = events(&store, ELECTION).await;
    assert_sound(&history);
    let expected = [
        (EventKind::PlanPublished, &leader, json!({"revision": 2, "assigned": 2, "revoked": 0})),
        (
            EventKind::PartitionAssigned,
            &leader,
            json!({"revision": 2, "to": {"a": {"orders/inbox": [0, 1]}}}),
        ),
        (EventKind::PlanPublished, &leader, json!({"revision": 3, "assigned": 2, "revoked": 1})),
        (EventKind::PartitionRevoked, &leader, json!({"revision": 3, "from": {"a": {"orders/inbox": [0]}}})),
        (
            EventKind::PartitionAssigned,
            &leader,
            json!({"revision": 3, "to": {"a": {"orders/inbox": [2]}, "b": {"orders/inbox": [3]}}}),
        ),
        (EventKind::PartitionReleased, &a, json!({"revision": 4, "released": 1})),
    ];
    let told: Vec<_> = history.iter().skip(history.len() - expected.len()).collect();
    for (event, (kind, node, data)) in told.iter().zip(expected) {
        assert_eq!((event.kind, event.node.as_ref(), event.term), (kind, Some(&node.id), term));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&event.data).expect("a JSON object"), data);
    }
}
