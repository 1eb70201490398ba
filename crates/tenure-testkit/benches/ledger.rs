//! The ledger on PostgreSQL: how long it takes to move 10,000 partitions, and what it costs to own them.

mod common;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::samples::human;
use common::{Bench, Outcome};
use tenure::{Node, Partition as Owned, TaskList, TaskLists};
use tenure_core::partitions::{BATCH, Change, Partition, Revision};
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_store::{
    Claim, Enlistment, Lease, Ledger, NodeInfo, Open, Publication, Published, Release, Store, clock,
};
use tenure_testkit::server::Postgres;
use tokio_postgres::{Client, NoTls};

const ELECTION: &str = "coordinator";
const LIST: &str = "bench/work";
const TTL: Duration = Duration::from_secs(10);
const NODES: u32 = 3;
const TARGET: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    common::run("ledger", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let partitions = if bench.quick { 1_000 } else { 10_000 };
    runtime.block_on(moves(bench, partitions))?;
    runtime.block_on(steady(bench, partitions))
}

/// A server of our own with everything on disk, and somebody who looks at it.
async fn served() -> Outcome<(Postgres, Client)> {
    let server = Postgres::start_with(&[]);
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
    tokio::spawn(connection);
    Ok((server, client))
}

/// From one worker to another: each partition is revoked, acknowledged and assigned.
async fn moves(bench: &Bench, partitions: u32) -> Outcome<()> {
    let (server, client) = served().await?;
    client.batch_execute("CREATE TABLE floor (n bigint); INSERT INTO floor VALUES (0)").await?;
    let coordinator = Desk::open(&server, 1).await?;
    let (from, to) = (Desk::open(&server, 2).await?, Desk::open(&server, 3).await?);
    for worker in [&from, &to] {
        let enlistment = Enlistment {
            election: worker.election.clone(),
            session: worker.session,
            document: String::new(),
        };
        worker.ledger()?.enlist(enlistment).await?;
    }
    let term = coordinator.lead().await?;
    let all: Vec<u32> = (0..partitions).collect();
    let (mut published, mut seen) = (0, vec![0; all.len()]);
    let assign = |to: SessionId| move |number, seen| Change::Assign { partition: part(number), seen, to };

    let first = clock::now();
    coordinator.publish_all(term, &all, &mut seen, &mut published, assign(from.session)).await?;
    let assigned = clock::now();
    let revoke = |number, seen| Change::Revoke { partition: part(number), seen };
    coordinator.publish_all(term, &all, &mut seen, &mut published, revoke).await?;
    let revoked = clock::now();
    // An acknowledgement has the ledger's next revision, which its coordinator reads there.
    for (batch, revision) in all.chunks(BATCH).zip(published + 1..) {
        let released = batch.iter().map(|&number| (part(number), seen[number as usize])).collect();
        let release = Release { election: from.election.clone(), session: from.session, released };
        from.ledger()?.acknowledge(release).await?;
        batch.iter().for_each(|&number| seen[number as usize] = revision);
    }
    let released = clock::now();
    coordinator.publish_all(term, &all, &mut seen, &mut published, assign(to.session)).await?;
    let given = clock::now();
    for _ in 0..3 * all.len().div_ceil(BATCH) {
        client.batch_execute("UPDATE floor SET n = n + 1").await?;
    }
    let floor = clock::now().since(given);

    println!("\n{partitions} partitions, {BATCH} per transaction");
    for (what, from, until) in [
        ("assigned for the first time", first, assigned),
        ("revoked", assigned, revoked),
        ("acknowledged", revoked, released),
        ("assigned to another", released, given),
    ] {
        println!("  {what:<44} {}", human(until.since(from)));
    }
    println!("  {:<44} {}", "floor: as many durable UPDATEs of one row", human(floor));
    let what = format!("PostgreSQL: {partitions} moves, published and acknowledged");
    bench.judge(&what, given.since(assigned), TARGET)
}

const fn part(number: u32) -> Partition {
    Partition { list: 0, number }
}

/// One session on a connection of its own, as one node has.
struct Desk {
    store: Arc<dyn Store>,
    session: SessionId,
    election: ElectionName,
}

impl Desk {
    async fn open(server: &Postgres, number: u128) -> Outcome<Self> {
        let store = tenure::connect(server.url()).await?;
        let session = SessionId::from_u128(number);
        let node = NodeInfo::new(NodeId::new(format!("node-{number}"))?, "bench");
        store.open(Open { session, sequence: 1, ttl: TTL, node, supersedes: None, over: None }).await?;
        Ok(Self { store, session, election: ElectionName::new(ELECTION)? })
    }

    fn ledger(&self) -> Outcome<&dyn Ledger> {
        Ok(self.store.ledger().ok_or("PostgreSQL keeps ledgers")?)
    }

    async fn lead(&self) -> Outcome<Term> {
        let claim = Claim {
            session: self.session,
            election: self.election.clone(),
            attempt: 1,
            priority: 0,
            over: None,
            tell_only: false,
            above: Term::NONE,
            since: None,
        };
        match self.store.claim(claim).await?.value {
            Standing::Leading { term, .. } => Ok(term),
            other => Err(format!("not granted: {other:?}").into()),
        }
    }

    /// Writes a change of every partition, in batches, and remembers at which revision.
    async fn publish_all(
        &self,
        term: Term,
        all: &[u32],
        seen: &mut [Revision],
        published: &mut Revision,
        change: impl Fn(u32, Revision) -> Change,
    ) -> Outcome<()> {
        for batch in all.chunks(BATCH) {
            let lease = Lease { session: self.session, election: self.election.clone(), term };
            let changes = batch.iter().map(|&number| change(number, seen[number as usize])).collect();
            let publication = Publication { lease, after: *published, retire: Vec::new(), changes };
            match self.ledger()?.publish(publication).await?.value {
                Published::Written { revision, refused } if refused.is_empty() => {
                    *published = revision;
                    batch.iter().for_each(|&number| seen[number as usize] = revision);
                }
                other => return Err(format!("not written: {other:?}").into()),
            }
        }
        Ok(())
    }
}

/// What nodes write that own so many partitions and have nothing to move.
async fn steady(bench: &Bench, partitions: u32) -> Outcome<()> {
    const INTERVALS: u32 = 6;
    let (server, client) = served().await?;
    let (lists, at_work) =
        (TaskLists::new(tenure::connect(server.url()).await?)?, Arc::new(AtomicU32::new(0)));
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let node = Node::builder(format!("node-{number}")).ttl(TTL);
        let node = node.start(tenure::connect(server.url()).await?).await?;
        let at_work = Arc::clone(&at_work);
        tokio::spawn(node.partitions(LIST)?.process_each(move |partition: Owned| {
            at_work.fetch_add(1, Ordering::Relaxed);
            async move {
                partition.revoked().await;
                Ok::<_, String>(())
            }
        }));
        let election = node.election(ELECTION)?;
        tokio::spawn(async move { election.coordinate().await });
        nodes.push(node);
    }
    tokio::time::sleep(TTL / 3).await;
    let created = clock::now();
    lists.create(LIST, TaskList::new(partitions)).await?;
    while at_work.load(Ordering::Relaxed) < partitions {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let worked = clock::now().since(created);
    tokio::time::sleep(TTL).await;
    let before = written(&client).await?;
    tokio::time::sleep(TTL / 3 * INTERVALS).await;
    let written = written(&client).await? - before;
    let per_node = written as f64 / f64::from(INTERVALS) / f64::from(NODES);
    println!("\n{NODES} nodes that own {partitions} partitions");
    bench.tell(
        &format!("PostgreSQL: {partitions} partitions created → all worked on, {NODES} nodes"),
        &human(worked),
        "up to a sixth of the ttl until they are seen",
    )?;
    bench.conclude(
        &format!("PostgreSQL: {partitions} partitions owned, rows written per node and ttl/3"),
        &format!("{per_node:.2}"),
        "as for none: 1",
        if per_node <= 1.05 { "met" } else { "MISSED" },
    )?;
    for node in nodes {
        node.close().await;
    }
    Ok(())
}

async fn written(client: &Client) -> Outcome<i64> {
    let sql = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables";
    Ok(client.query_one(sql, &[]).await?.get(0))
}
