//! Claims and renewals per second, against bare commits per second.

mod common;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::floor::Row;
use common::place::Place;
use common::{Bench, Outcome};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_store::{Claim, NodeInfo, Open, Store, clock};

/// How long one case is measured before it is the next one's turn: short, so that all cases
/// share the machine's good and bad moments.
const SLICE: Duration = Duration::from_millis(250);
const MANY: usize = 64;
const STORES: usize = 8;

fn main() -> ExitCode {
    common::run("throughput", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let slices = if bench.quick { 3 } else { 20 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(memory(bench, slices))?;
    runtime.block_on(sqlite(bench, slices))
}

async fn memory(bench: &Bench, slices: u32) -> Outcome<()> {
    let desk = Desk::open("memory:", 1).await?;
    let (mut claims, mut renewals) = (Rate::default(), Rate::default());
    for _ in 0..slices {
        claims.add(desk.pump(1, Desk::claim).await?);
        renewals.add(desk.pump(1, Desk::renew).await?);
    }
    println!("memory store\n  claims/s {claims}\n  renewals/s {renewals}");
    bench.tell("memory: claims/s, renewals/s", &format!("{claims}, {renewals}"), "–")
}

async fn sqlite(bench: &Bench, slices: u32) -> Outcome<()> {
    let place = Place::on_disk()?;
    let url = format!("sqlite:{}", place.database().display());
    let row = Row::open(&place.floor())?;
    let desk = Desk::open(&url, 1).await?;
    let mut rivals = Vec::new();
    for number in 0..STORES {
        rivals.push(Desk::open(&url, number as u128 + 2).await?);
    }
    let [mut floor, mut rival_floor] = [Rate::default(), Rate::default()];
    let [mut claim, mut claims] = [Rate::default(), Rate::default()];
    let [mut renewal, mut renewals, mut rival_renewals] = [Rate::default(), Rate::default(), Rate::default()];
    for _ in 0..slices {
        floor.add(commits(&row)?);
        claim.add(desk.pump(1, Desk::claim).await?);
        renewal.add(desk.pump(1, Desk::renew).await?);
        claims.add(desk.pump(MANY, Desk::claim).await?);
        renewals.add(desk.pump(MANY, Desk::renew).await?);
        rival_floor.add(rival_commits(&place)?);
        rival_renewals.add(contend(&rivals).await?);
    }
    println!("\nSQLite, synchronous=FULL ({place}), per second");
    println!("  {:<44} {:>9}", "floor: bare commits, one connection", floor.to_string());
    println!("  {:<44} {:>9}", "claims, one at a time", claim.to_string());
    println!("  {:<44} {:>9}", format!("claims, {MANY} at once"), claims.to_string());
    println!("  {:<44} {:>9}", "renewals, one at a time", renewal.to_string());
    println!("  {:<44} {:>9}", format!("renewals, {MANY} at once"), renewals.to_string());
    let rivals = format!("{STORES} connections");
    println!("  {:<44} {:>9}", format!("floor: bare commits, {rivals}"), rival_floor.to_string());
    println!("  {:<44} {:>9}", format!("renewals, {rivals}"), rival_renewals.to_string());

    let floor = format!("floor {floor} commits/s");
    bench.tell("SQLite: claims/s, one at a time", &claim.to_string(), &floor)?;
    bench.tell(&format!("SQLite: claims/s, {MANY} at once"), &claims.to_string(), &floor)?;
    bench.tell("SQLite: renewals/s, one at a time", &renewal.to_string(), &floor)?;
    bench.tell(&format!("SQLite: renewals/s, {MANY} at once"), &renewals.to_string(), &floor)?;
    let rival_floor = format!("floor {rival_floor} commits/s");
    bench.tell(&format!("SQLite: renewals/s, {rivals}"), &rival_renewals.to_string(), &rival_floor)
}

/// So many in so long.
#[derive(Clone, Copy, Default)]
struct Rate {
    count: u64,
    took: Duration,
}

impl Rate {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.took += other.took;
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}", self.count as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE))
    }
}

fn commits(row: &Row) -> Outcome<Rate> {
    let (before, mut count) = (clock::now(), 0);
    while clock::now().since(before) < SLICE {
        row.commit()?;
        count += 1;
    }
    Ok(Rate { count, took: clock::now().since(before) })
}

/// The same by several connections to one file, each on a thread of its own, as the stores' are.
fn rival_commits(place: &Place) -> Outcome<Rate> {
    let path = place.floor();
    let started = clock::now();
    let threads: Vec<_> = (0..STORES)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || {
                let rate = Row::open(&path).and_then(|row| commits(&row));
                rate.map(|rate| rate.count).map_err(|error| error.to_string())
            })
        })
        .collect();
    let mut count = 0;
    for thread in threads {
        count += thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(Rate { count, took: clock::now().since(started) })
}

async fn contend(rivals: &[Desk]) -> Outcome<Rate> {
    let rates = futures_util::future::join_all(rivals.iter().map(|desk| desk.pump(1, Desk::renew))).await;
    let mut sum = Rate::default();
    for rate in rates {
        let rate = rate?;
        sum.count += rate.count;
        sum.took = sum.took.max(rate.took);
    }
    Ok(sum)
}

/// One session on a store of its own, as one node has.
struct Desk {
    store: Arc<dyn Store>,
    session: SessionId,
    serial: AtomicU64,
}

impl Desk {
    async fn open(url: &str, number: u128) -> Outcome<Self> {
        let store = tenure::connect(url).await?;
        let session = SessionId::from_u128(number);
        let node = NodeInfo::new(NodeId::new(format!("node-{number}"))?, "bench");
        let ttl = Duration::from_secs(10);
        store.open(Open { session, sequence: 1, ttl, node, supersedes: None, over: None }).await?;
        Ok(Self { store, session, serial: AtomicU64::new(1) })
    }

    /// Keeps so many requests under way for a slice of time.
    async fn pump<'a, F>(&'a self, in_flight: usize, ask: impl Fn(&'a Self, u64) -> F) -> Outcome<Rate>
    where
        F: Future<Output = Outcome<()>>,
    {
        let started = clock::now();
        let next = || ask(self, self.serial.fetch_add(1, Ordering::Relaxed) + 1);
        let mut under_way: FuturesUnordered<F> = (0..in_flight).map(|_| next()).collect();
        let mut count = 0;
        while let Some(answer) = under_way.next().await {
            answer?;
            count += 1;
            if clock::now().since(started) < SLICE {
                under_way.push(next());
            }
        }
        Ok(Rate { count, took: clock::now().since(started) })
    }

    /// Wins an election that nobody has stood for.
    async fn claim(&self, serial: u64) -> Outcome<()> {
        let request = Claim {
            session: self.session,
            election: ElectionName::new(format!("election-{serial}"))?,
            attempt: serial,
            priority: 0,
            over: None,
            tell_only: false,
            above: Term::NONE,
            since: None,
        };
        match self.store.claim(request).await?.value {
            Standing::Leading { .. } => Ok(()),
            other => Err(format!("not granted: {other:?}").into()),
        }
    }

    async fn renew(&self, serial: u64) -> Outcome<()> {
        self.store.renew(self.session, serial, 1).await?;
        Ok(())
    }
}
