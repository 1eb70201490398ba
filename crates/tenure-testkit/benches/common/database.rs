//! What is measured on a database server: planned hand-over, crash fail-over, what idle nodes cost, and many
//! elections on one session.

use std::time::Duration;

use futures_util::future::join_all;
use tenure::Node;
use tenure_core::Instant;
use tenure_store::clock;

use super::process::{Troupe, say};
use super::samples::{Samples, human, show};
use super::usage::{cpu, proportional, resident};
use super::{Bench, Outcome};

const TTL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// All that is measured on a database.
pub fn measure<S: Served>(bench: &Bench) -> Outcome<()> {
    handover::<S>(bench, if bench.quick { 40 } else { 400 })?;
    S::rivals(bench)?;
    failover::<S>(bench, if bench.quick { 10 } else { 120 })?;
    idle::<S>(bench)?;
    holding::<S>(bench, if bench.quick { 5_000 } else { 100_000 })
}

/// A database server of our own with everything on disk, and somebody who looks at it.
pub trait Served: Sized {
    /// What it is called in what is told.
    const NAME: &'static str;
    /// What Tenure's tables begin with; in what is asked, `{t}` stands for it.
    const TABLES: &'static str;
    /// What a hand-over cannot do without, in words.
    const FLOOR: &'static str;

    /// How many times the floor a hand-over may take, in the median.
    const HANDOVER: f64;

    /// With Tenure's tables made.
    fn start() -> Outcome<Self>;
    /// The store URL.
    fn url(&self) -> String;
    /// The first column of the first line.
    fn ask(&self, sql: &str) -> Outcome<String>;
    /// Two durable changes of one row, and one word to another connection.
    fn floor(&self) -> Outcome<Duration>;
    /// How long ago the leader was renewed, in microseconds.
    const AGE: &'static str;
    /// How many transactions, or calls, there were.
    const STATEMENTS: &'static str;
    /// How many rows were written.
    const WRITTEN: &'static str;

    /// Measures what people use today on such a server, beside it.
    fn rivals(_bench: &Bench) -> Outcome<()> {
        Ok(())
    }
}

/// Candidates in processes of their own, on such a server. The processes end before their server.
struct Stage<S> {
    troupe: Troupe,
    server: S,
    launched: usize,
}

impl<S: Served> Stage<S> {
    fn open() -> Outcome<Self> {
        Ok(Self { troupe: Troupe::new(), server: S::start()?, launched: 0 })
    }

    fn launch(&mut self, ttl: Duration) -> Outcome<()> {
        self.launched += 1;
        let name = format!("node-{}", self.launched);
        self.troupe.launch(&name, &[&self.server.url(), &ttl.as_millis().to_string()])
    }

    fn text(&self, sql: &str) -> Outcome<String> {
        self.server.ask(&sql.replace("{t}", S::TABLES))
    }

    fn number(&self, sql: &str) -> Outcome<i64> {
        Ok(self.text(sql)?.parse()?)
    }

    fn wait_for(&self, candidates: i64) -> Outcome<()> {
        let end = clock::now() + PATIENCE;
        let standing = "SELECT COUNT(*) FROM {t}candidates c JOIN {t}sessions s ON s.id = c.session
                        WHERE c.election = 'bench' AND s.state = 'live'";
        while self.number(standing)? != candidates {
            if clock::now() > end {
                return Err("the candidates do not stand".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn leader(&self) -> Outcome<String> {
        self.text("SELECT leader FROM {t}leases WHERE election = 'bench' AND state = 'held'")
    }
}

fn name<S: Served>(figure: &str) -> String {
    format!("{}: {figure}", S::NAME)
}

fn handover<S: Served>(bench: &Bench, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::<S>::open()?;
    for _ in 0..2 {
        stage.launch(TTL)?;
    }
    let mut leader = stage.troupe.hear_word("leads")?.by;
    let (mut whole, mut floor) = (Samples::default(), Samples::default());
    while whole.len() < rounds {
        stage.wait_for(1)?;
        std::thread::sleep(Duration::from_millis(15));
        floor.push(stage.server.floor()?);
        whole.push(stage.troupe.hand_over(&mut leader)?);
    }
    println!("\nhand-over, 2 processes, resign");
    show("called → successor's elected() returned", &whole);
    show(&format!("floor: {}", S::FLOOR), &floor);
    let (p50, p99) = (name::<S>("hand-over, p50"), name::<S>("hand-over, p99"));
    bench.judge(&p50, whole.percentile(50), floor.percentile(50).mul_f64(S::HANDOVER))?;
    bench.tell(&p99, &human(whole.percentile(99)), "–")
}

fn failover<S: Served>(bench: &Bench, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::<S>::open()?;
    for _ in 0..2 {
        stage.launch(SHORT)?;
    }
    stage.troupe.hear_word("leads")?;
    let (mut excess, mut floor) = (Samples::default(), Samples::default());
    while excess.len() < rounds {
        stage.wait_for(1)?;
        // A candidate believes ages only after it has known the store for a ttl.
        let part = u32::try_from(excess.len() % 7)?;
        std::thread::sleep(SHORT + SHORT / 3 + SHORT / 21 * part);
        floor.push(stage.server.floor()?);
        let leader = stage.leader()?;
        if !stage.troupe.rest().iter().all(|said| said.word == "leads" && said.by == leader) {
            return Err("the lease was lost: this machine is too busy".into());
        }
        stage.troupe.kill(&leader)?;
        let age = stage.number(S::AGE)?;
        let renewed = clock::now() - Duration::from_micros(u64::try_from(age)?);
        let elected: Instant = stage.troupe.hear_word("leads")?.instant()?;
        excess.push(elected.since(renewed + SHORT));
        stage.launch(SHORT)?;
    }
    println!("\nfail-over, 2 processes, ttl {SHORT:?}");
    show("last renewal + ttl → successor's elected() returned", &excess);
    show(&format!("floor: {}", S::FLOOR), &floor);
    bench.judge(
        &name::<S>("fail-over beyond the lease, p99"),
        excess.percentile(99),
        Duration::from_millis(10),
    )?;
    bench.tell(&name::<S>("fail-over beyond the lease, p50"), &human(excess.percentile(50)), "–")
}

/// What one leader and two followers cost while nothing happens.
fn idle<S: Served>(bench: &Bench) -> Outcome<()> {
    const INTERVALS: u32 = 6;
    let mut stage = Stage::<S>::open()?;
    for _ in 0..3 {
        stage.launch(TTL)?;
    }
    stage.troupe.hear_word("leads")?;
    stage.wait_for(2)?;
    std::thread::sleep(TTL);
    let pids = (1..=3).map(|n| stage.troupe.pid(&format!("node-{n}"))).collect::<Outcome<Vec<_>>>()?;
    let used = |pids: &[u32]| pids.iter().map(|pid| cpu(*pid)).sum::<Outcome<Duration>>();
    let look = |stage: &Stage<S>| Outcome::Ok((stage.number(S::STATEMENTS)?, stage.number(S::WRITTEN)?));
    let (before, busy) = (look(&stage)?, used(&pids)?);
    std::thread::sleep(TTL / 3 * INTERVALS);
    let (after, busy) = (look(&stage)?, used(&pids)?.saturating_sub(busy));
    let per_node = |count: i64| count as f64 / f64::from(INTERVALS) / 3.0;
    let (statements, written) = (per_node(after.0 - before.0 - 2), per_node(after.1 - before.1));
    // Together: the program's own text is in memory once.
    let memory: u64 = pids.iter().map(|pid| proportional(*pid)).sum::<Outcome<u64>>()?;
    let apart: u64 = pids.iter().map(|pid| resident(*pid)).sum::<Outcome<u64>>()?;
    let share = busy.as_secs_f64() / (TTL / 3 * INTERVALS).as_secs_f64() * 100.0;
    println!("\nidle: one leader and two followers, per node and interval of {:?}", TTL / 3);
    println!(
        "  transactions {statements:.2}, rows written {written:.2}; together {share:.3} % of a core, {memory} KiB (the \
         sum of what each has, shared or not: {apart} KiB)"
    );
    bench.conclude(
        &name::<S>("idle, rows written per node and ttl/3"),
        &format!("{written:.2}"),
        "≤ 1",
        if written <= 1.05 { "met" } else { "MISSED" },
    )?;
    bench.conclude(
        &name::<S>("idle, three nodes together"),
        &format!("{share:.3} % of a core, {:.1} MiB", memory as f64 / 1024.0),
        "≤ 0.1 %, ≤ 24 MiB",
        if share <= 0.1 && memory <= 24 * 1024 { "met" } else { "MISSED" },
    )?;
    bench.tell(&name::<S>("idle, transactions per node and ttl/3"), &format!("{statements:.2}"), "–")
}

/// Many elections on one session.
fn holding<S: Served>(bench: &Bench, elections: usize) -> Outcome<()> {
    const INTERVALS: u32 = 4;
    let mut stage = Stage::<S>::open()?;
    stage.troupe.launch("holder", &[&elections.to_string(), &stage.server.url()])?;
    let won = Duration::from_nanos(stage.troupe.hear_word("held")?.rest.parse()?);
    std::thread::sleep(TTL);
    let before = stage.number(S::WRITTEN)?;
    std::thread::sleep(TTL / 3 * INTERVALS);
    let after = stage.number(S::WRITTEN)?;
    let per_interval = (after - before) as f64 / f64::from(INTERVALS);
    println!("\n{elections} elections on one session, won in {}", human(won));
    bench.conclude(
        &name::<S>(&format!("{elections} elections, rows written per interval")),
        &format!("{per_interval:.2}"),
        "as for one: 1",
        if per_interval <= 1.3 { "met" } else { "MISSED" },
    )
}

/// A process of `holding`.
pub fn hold(elections: usize, url: &str) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let node = Node::builder("holder").ttl(TTL).start(tenure::connect(url).await?).await?;
        let began = clock::now();
        let stood = (0..elections).map(|number| node.election(format!("election-{number}")));
        let stood = stood.collect::<Result<Vec<_>, _>>()?;
        let held = join_all(stood.iter().map(|election| election.elected())).await;
        let held = held.into_iter().collect::<Result<Vec<_>, _>>()?;
        say("held", clock::now().since(began).as_nanos());
        // Until it is killed.
        std::future::pending::<()>().await;
        drop(held);
        Outcome::Ok(())
    })
}
