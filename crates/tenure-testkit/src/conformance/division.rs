//! Nodes divide work on any store that keeps a ledger: every partition has an owner, and never two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Node, Partition, TaskList, TaskLists};
use tokio::sync::watch;

use super::fixture::Fixture;

/// What every store grants. Nothing here waits for it.
const TTL: Duration = Duration::from_secs(6);
const LIST: &str = "billing/invoices";

/// Who works on which partition.
#[derive(Clone)]
struct Register(Arc<watch::Sender<BTreeMap<u32, String>>>);

impl Register {
    fn enter(&self, node: &str, partition: u32) -> Entered {
        self.0.send_modify(|owners| {
            let other = owners.insert(partition, node.to_owned());
            assert_eq!(other, None, "partition {partition} has two owners");
        });
        Entered(self.clone(), partition)
    }

    /// Waits until nodes work on so many partitions, from the one with the fewest to the one with the most.
    async fn until_shared(&self, expected: &[usize]) {
        let shared = |owners: &BTreeMap<u32, String>| {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            owners.values().for_each(|owner| *counts.entry(owner).or_default() += 1);
            let mut counts: Vec<usize> = counts.into_values().collect();
            counts.sort_unstable();
            counts == expected
        };
        self.0.subscribe().wait_for(shared).await.expect("the register is there");
    }
}

/// Leaves the register when the work is dropped.
struct Entered(Register, u32);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.send_modify(|owners| _ = owners.remove(&self.1));
    }
}

/// A node of its own connection. It renews often: a machine that is busy with other things may let it stand still for
/// seconds.
async fn start(fixture: &Fixture, id: &str) -> Node {
    let store = fixture.connect().await;
    Node::builder(id).ttl(TTL).renew_every(TTL / 10).start(store).await.expect("the node starts")
}

async fn worker(fixture: &Fixture, id: &'static str, register: &Register) -> Node {
    let (node, register) = (start(fixture, id).await, register.clone());
    let partitions = node.partitions(LIST).expect("the store keeps a ledger");
    tokio::spawn(partitions.process_each(move |partition: Partition| {
        let register = register.clone();
        async move {
            let _entered = register.enter(id, partition.number());
            partition.revoked().await;
            Ok::<_, String>(())
        }
    }));
    node
}

/// Also while somebody comes, and the work grows and is paused.
pub async fn every_partition_has_an_owner_and_never_two(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    if store.ledger().is_none() {
        return;
    }
    let lists = TaskLists::new(store).expect("the store keeps a ledger");
    lists.create(LIST, TaskList::new(8)).await.expect("the store answers");
    let coordinator = start(&fixture, "coordinator").await;
    let election = coordinator.election("coordinator").expect("a good name");
    tokio::spawn(async move { election.coordinate().await });
    let register = Register(Arc::new(watch::Sender::default()));
    let (a, b) = (worker(&fixture, "a", &register).await, worker(&fixture, "b", &register).await);
    register.until_shared(&[4, 4]).await;
    let c = worker(&fixture, "c", &register).await;
    register.until_shared(&[2, 3, 3]).await;
    lists.change(LIST, |list| list.partitions = 12).await.expect("the store answers");
    register.until_shared(&[4, 4, 4]).await;
    lists.change(LIST, |list| list.paused = true).await.expect("the store answers");
    register.until_shared(&[]).await;
    for node in [a, b, c, coordinator] {
        node.close().await;
    }
}
