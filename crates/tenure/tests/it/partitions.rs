//! Work that is divided among nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, diligent, memory, soon, sqlite, start, until};
use tenure::{
    Node, Partition, PartitionState, PartitionsError, Reason, Store, TaskList, TaskListName, TaskLists, Term,
};

const LIST: &str = "billing/invoices";

/// Who works on which partition right now, and every owner's term; it panics at a second owner.
#[derive(Clone, Default)]
struct Register(Arc<Mutex<Owners>>);

/// Of each partition, who works on it and the highest term that did.
type Owners = BTreeMap<u32, (Option<String>, Term)>;

impl Register {
    fn enter(&self, node: &str, partition: &Partition) -> Entered {
        let mut register = self.0.lock().unwrap();
        let (owner, highest) = register.entry(partition.number()).or_insert((None, Term::NONE));
        assert_eq!(*owner, None, "partition {} has two owners", partition.number());
        assert!(partition.term() > *highest, "the term of partition {} did not rise", partition.number());
        *owner = Some(node.to_owned());
        *highest = partition.term();
        Entered(self.clone(), partition.number())
    }

    /// How many partitions each node works on.
    fn shares(&self) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for (owner, _) in self.0.lock().unwrap().values() {
            if let Some(owner) = owner {
                *shares.entry(owner.clone()).or_default() += 1;
            }
        }
        shares
    }

    async fn settles_as(&self, expected: &[(&str, usize)]) {
        let expected: BTreeMap<String, usize> =
            expected.iter().map(|(node, count)| ((*node).to_owned(), *count)).collect();
        let seen = Mutex::new(BTreeMap::new());
        let settled = until(|| {
            *seen.lock().unwrap() = self.shares();
            *seen.lock().unwrap() == expected
        });
        settled.await;
    }
}

/// Leaves the register when its work is dropped.
struct Entered(Register, u32);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().get_mut(&self.1).unwrap().0 = None;
    }
}

/// Works on every partition that it is given, until it is to be given up.
fn work(node: &Node, register: &Register) -> tokio::task::JoinHandle<()> {
    let (id, register) = (node.id().to_string(), register.clone());
    let partitions = node.partitions(LIST).unwrap();
    tokio::spawn(async move {
        let each = partitions.process_each(move |partition: Partition| {
            let (id, register) = (id.clone(), register.clone());
            async move {
                let _entered = register.enter(&id, &partition);
                partition.revoked().await;
                Ok::<_, String>(())
            }
        });
        each.await;
    })
}

/// A node that divides the work whenever it leads.
async fn coordinator(id: &str, store: &Arc<dyn Store>) -> Node {
    let node = start(brief(id), store).await;
    let election = node.election("coordinator").unwrap();
    tokio::spawn(async move { election.coordinate().await });
    node
}

async fn create(store: &Arc<dyn Store>, partitions: u32) -> TaskLists {
    let lists = TaskLists::new(Arc::clone(store)).unwrap();
    soon(lists.create(LIST, TaskList::new(partitions))).await.unwrap();
    lists
}

async fn divides_evenly(store: Arc<dyn Store>) {
    let register = Register::default();
    let _coordinator = coordinator("c", &store).await;
    let lists = create(&store, 12).await;
    let nodes = [start(calm("a"), &store).await, start(calm("b"), &store).await];
    let _first = nodes.each_ref().map(|node| work(node, &register));
    register.settles_as(&[("a", 6), ("b", 6)]).await;
    let third = start(calm("third"), &store).await;
    let _third = work(&third, &register);
    register.settles_as(&[("a", 4), ("b", 4), ("third", 4)]).await;
    soon(third.close()).await;
    register.settles_as(&[("a", 6), ("b", 6)]).await;
    soon(lists.change(LIST, |list| list.partitions = 4)).await.unwrap();
    register.settles_as(&[("a", 2), ("b", 2)]).await;
    soon(lists.change(LIST, |list| list.paused = true)).await.unwrap();
    register.settles_as(&[]).await;
    soon(lists.remove(LIST)).await.unwrap();
    assert!(soon(lists.all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn partitions_are_divided_evenly_as_nodes_and_counts_come_and_go() {
    divides_evenly(memory()).await;
}

#[tokio::test]
async fn partitions_are_divided_evenly_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    divides_evenly(sqlite(&directory).await).await;
}

#[tokio::test]
async fn another_coordinator_takes_over_and_nothing_moves() {
    let (store, register) = (memory(), Register::default());
    let first = coordinator("c1", &store).await;
    create(&store, 6).await;
    let nodes = [start(calm("a"), &store).await, start(calm("b"), &store).await];
    let _works = nodes.each_ref().map(|node| work(node, &register));
    register.settles_as(&[("a", 3), ("b", 3)]).await;
    let terms = register.0.lock().unwrap().clone();
    let second = coordinator("c2", &store).await;
    soon(first.close()).await;
    let election = second.election("coordinator").unwrap();
    soon(async {
        while election.leader().await.unwrap().is_none_or(|leader| leader.node != *second.id()) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    // What it plans is seen by a task list that was not there before.
    let lists = TaskLists::new(Arc::clone(&store)).unwrap();
    soon(lists.change(LIST, |list| list.partitions = 8)).await.unwrap();
    register.settles_as(&[("a", 4), ("b", 4)]).await;
    let now = register.0.lock().unwrap().clone();
    assert!(terms.iter().all(|(number, owned)| now[number] == *owned), "{terms:?} became {now:?}");
}

#[tokio::test]
async fn a_revoked_partition_is_given_away_only_once_its_guard_is_dropped() {
    let store = memory();
    let _coordinator = coordinator("c", &store).await;
    create(&store, 1).await;
    let slow = start(calm("slow"), &store).await;
    let mut partitions = slow.partitions(LIST).unwrap();
    let owned = soon(partitions.next()).await.unwrap();
    assert_eq!((owned.number(), owned.task_list().as_str()), (0, LIST));
    assert_eq!(owned.check(), Ok(owned.term()));
    let other = start(calm("other"), &store).await;
    let mut others = other.partitions(LIST).unwrap();
    let lists = TaskLists::new(Arc::clone(&store)).unwrap();
    let exclude = |list: &mut TaskList| _ = list.excluded.insert(slow.id().clone());
    soon(lists.change(LIST, exclude)).await.unwrap();
    assert_eq!(soon(owned.revoked()).await, Reason::Asked);
    assert_eq!(owned.check().unwrap_err().reason, Reason::Asked);
    let early = tokio::time::timeout(Duration::from_millis(300), others.next()).await;
    assert!(early.is_err(), "its work has not stopped");
    let term = owned.term();
    drop(owned);
    assert!(soon(others.next()).await.unwrap().term() > term);
}

#[tokio::test]
async fn a_worker_that_loses_the_store_stops_by_its_own_deadline() {
    let (store, register) = (memory(), Register::default());
    let _coordinator = coordinator("c", &store).await;
    create(&store, 4).await;
    let wrapped = Wrapped::new(Arc::clone(&store));
    let lonely = start(brief("lonely"), &wrapped.store()).await;
    let _lonely = work(&lonely, &register);
    register.settles_as(&[("lonely", 4)]).await;
    let rescue = start(diligent("rescue"), &store).await;
    wrapped.set_all(&Manner::Hangs);
    register.settles_as(&[]).await;
    // The register panics if it is early.
    let _rescue = work(&rescue, &register);
    register.settles_as(&[("rescue", 4)]).await;
    wrapped.set_all(&Manner::Dutiful);
    register.settles_as(&[("lonely", 2), ("rescue", 2)]).await;
}

#[tokio::test]
async fn work_that_fails_or_panics_is_run_again() {
    let store = memory();
    let _coordinator = coordinator("c", &store).await;
    create(&store, 1).await;
    let node = start(calm("a"), &store).await;
    let runs = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&runs);
    let partitions = node.partitions(LIST).unwrap();
    let each = partitions.process_each(move |partition: Partition| {
        let run = {
            let mut runs = counted.lock().unwrap();
            *runs += 1;
            *runs
        };
        async move {
            match run {
                1 => Err("no paper"),
                2 => panic!("out of ink"),
                _ => {
                    partition.revoked().await;
                    Ok(())
                }
            }
        }
    });
    let each = tokio::spawn(each);
    until(|| *runs.lock().unwrap() == 3).await;
    soon(node.close()).await;
    assert_eq!(soon(each).await.unwrap(), tenure::Ending::Closed);
}

#[tokio::test]
async fn a_task_list_is_worked_on_by_one_stream_of_a_node() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let first = node.partitions(LIST).unwrap();
    assert!(matches!(node.partitions(LIST), Err(PartitionsError::AlreadyWorking { .. })));
    drop(first);
    node.partitions(LIST).unwrap();
    assert!(matches!(node.partitions(""), Err(PartitionsError::Name(_))));
}

#[tokio::test]
async fn a_task_list_is_made_once_and_changed_by_whoever_sees_it() {
    let store = memory();
    let lists = create(&store, 3).await;
    soon(lists.create(LIST, TaskList::new(3))).await.unwrap();
    let other = soon(lists.create(LIST, TaskList::new(4))).await;
    assert!(matches!(other, Err(PartitionsError::Exists { .. })));
    let absent = soon(lists.change("nothing/here", |list| list.paused = true)).await;
    assert!(matches!(absent, Err(PartitionsError::Absent { .. })));
    let most = TaskList::MOST_PARTITIONS;
    assert!(matches!(
        lists.create("too/many", TaskList::new(most + 1)).await,
        Err(PartitionsError::TooMany { .. })
    ));
    let grown = lists.change(LIST, |list| list.partitions = u32::MAX).await;
    assert!(matches!(grown, Err(PartitionsError::TooMany { .. })));
    soon(lists.remove(LIST)).await.unwrap();
    assert!(matches!(soon(lists.remove(LIST)).await, Err(PartitionsError::Absent { .. })));
    soon(lists.create(LIST, TaskList::new(4))).await.unwrap();
    let name = TaskListName::new(LIST).unwrap();
    assert_eq!(soon(lists.all()).await.unwrap(), [(name, TaskList::new(4))]);
}

#[tokio::test]
async fn work_that_does_not_stop_is_aborted_when_its_node_closes() {
    let (store, register) = (memory(), Register::default());
    let _coordinator = coordinator("c", &store).await;
    create(&store, 2).await;
    let node = start(calm("deaf").grace(Duration::from_millis(50)), &store).await;
    let shared = register.clone();
    let each = node.partitions(LIST).unwrap().process_each(move |partition: Partition| {
        let register = shared.clone();
        async move {
            let _entered = register.enter("deaf", &partition);
            std::future::pending::<Result<(), String>>().await
        }
    });
    let each = tokio::spawn(each);
    register.settles_as(&[("deaf", 2)]).await;
    soon(node.close()).await;
    assert_eq!(soon(each).await.unwrap(), tenure::Ending::Closed);
    register.settles_as(&[]).await;
}

#[tokio::test]
async fn the_picture_of_who_owns_what_is_the_one_that_nodes_have() {
    let (store, register) = (memory(), Register::default());
    let lists = create(&store, 3).await;
    let vacant = soon(lists.owners()).await.unwrap();
    assert!(vacant.len() == 3 && vacant.iter().all(|owner| owner.state == PartitionState::Vacant));
    let _coordinator = coordinator("c", &store).await;
    let node = start(calm("a"), &store).await;
    let _work = work(&node, &register);
    register.settles_as(&[("a", 3)]).await;
    let owners = soon(lists.owners()).await.unwrap();
    for owner in &owners {
        assert_eq!((owner.state, owner.node.as_ref()), (PartitionState::Owned, Some(node.id())));
        assert_eq!(register.0.lock().unwrap()[&owner.partition].1, owner.term);
    }
    soon(node.close()).await;
    let left = soon(lists.owners()).await.unwrap();
    assert!(left.iter().all(|owner| owner.node.is_none()), "{left:?}");
}
