//! PostgreSQL: planned hand-over, crash fail-over, what idle nodes cost, and many elections on one session.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::process::{Troupe, say};
use common::samples::{Samples, human, show};
use common::usage::{cpu, resident};
use common::{Bench, Outcome, candidate};
use futures_util::future::join_all;
use tenure::Node;
use tenure_core::Instant;
use tenure_store::clock;
use tenure_testkit::server::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

const TTL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    common::run("postgres", measure, |words| match words {
        ["holder", elections, url] => hold(elections.parse()?, url),
        words => candidate::part(words),
    })
}

fn measure(bench: &Bench) -> Outcome<()> {
    handover(bench, if bench.quick { 40 } else { 400 })?;
    failover(bench, if bench.quick { 10 } else { 120 })?;
    idle(bench)?;
    holding(bench, if bench.quick { 5_000 } else { 100_000 })
}

/// A server with everything on disk, and somebody who looks at it.
struct Stage {
    troupe: Troupe,
    runtime: Runtime,
    client: Client,
    server: Postgres,
    launched: usize,
}

impl Stage {
    fn open() -> Outcome<Self> {
        let server = Postgres::start_with(&[]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(async {
            drop(tenure::connect(server.url()).await?);
            let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute("CREATE TABLE floor (n bigint); INSERT INTO floor VALUES (0)").await?;
            Outcome::Ok(client)
        })?;
        Ok(Self { troupe: Troupe::new(), runtime, client, server, launched: 0 })
    }

    fn launch(&mut self, ttl: Duration) -> Outcome<()> {
        self.launched += 1;
        let name = format!("node-{}", self.launched);
        self.troupe.launch(&name, &[&self.server.url(), &ttl.as_millis().to_string()])
    }

    fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, sql: &str) -> Outcome<T> {
        Ok(self.runtime.block_on(self.client.query_one(sql, &[]))?.try_get(0)?)
    }

    fn wait_for(&self, candidates: i64) -> Outcome<()> {
        let end = clock::now() + PATIENCE;
        while self.one::<i64>("SELECT count(*) FROM tenure.standing('default', 'bench')")? != candidates {
            if clock::now() > end {
                return Err("the candidates do not stand".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn leader(&self) -> Outcome<String> {
        self.one("SELECT leader FROM tenure.leases WHERE election = 'bench' AND state = 'held'")
    }

    /// Two durable updates and one NOTIFY: what a hand-over cannot do without.
    fn floor(&self) -> Outcome<Duration> {
        let began = clock::now();
        for sql in ["UPDATE floor SET n = n + 1", "UPDATE floor SET n = n + 1", "NOTIFY floor"] {
            self.runtime.block_on(self.client.batch_execute(sql))?;
        }
        Ok(clock::now().since(began))
    }
}

fn handover(bench: &Bench, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::open()?;
    for _ in 0..2 {
        stage.launch(TTL)?;
    }
    let mut leader = stage.troupe.hear_word("leads")?.by;
    let (mut whole, mut floor) = (Samples::default(), Samples::default());
    while whole.len() < rounds {
        stage.wait_for(1)?;
        std::thread::sleep(Duration::from_millis(15));
        floor.push(stage.floor()?);
        stage.troupe.order(&leader, "resign")?;
        let (mut called, mut elected) = (None, None);
        while called.is_none() || elected.is_none() {
            let said = stage.troupe.hear()?;
            match said.word.as_str() {
                "resigned" => called = Some(said.instant()?),
                "leads" => elected = Some((said.instant()?, said.by)),
                other => return Err(format!("the lease was {other}: this machine is too busy").into()),
            }
        }
        let (Some(called), Some((at, by))) = (called, elected) else { continue };
        whole.push(at.since(called));
        stage.troupe.order(&leader, "stand")?;
        leader = by;
    }
    println!("\nhand-over, 2 processes, resign");
    show("called → successor's elected() returned", &whole);
    show("floor: two durable UPDATEs and one NOTIFY", &floor);
    bench.judge("PostgreSQL: hand-over, p50", whole.percentile(50), floor.percentile(50) * 3)?;
    bench.tell("PostgreSQL: hand-over, p99", &human(whole.percentile(99)), "–")
}

fn failover(bench: &Bench, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::open()?;
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
        floor.push(stage.floor()?);
        let leader = stage.leader()?;
        if !stage.troupe.rest().iter().all(|said| said.word == "leads" && said.by == leader) {
            return Err("the lease was lost: this machine is too busy".into());
        }
        stage.troupe.kill(&leader)?;
        let sql = "SELECT (extract(epoch FROM clock_timestamp() - renewed_at) * 1000000)::bigint
                   FROM tenure.leases WHERE election = 'bench' AND leader IS NOT NULL";
        let age: i64 = stage.one(sql)?;
        let renewed = clock::now() - Duration::from_micros(u64::try_from(age)?);
        let elected: Instant = stage.troupe.hear_word("leads")?.instant()?;
        excess.push(elected.since(renewed + SHORT));
        stage.launch(SHORT)?;
    }
    println!("\nfail-over, 2 processes, ttl {SHORT:?}");
    show("last renewal + ttl → successor's elected() returned", &excess);
    show("floor: two durable UPDATEs and one NOTIFY", &floor);
    bench.judge(
        "PostgreSQL: fail-over beyond the lease, p99",
        excess.percentile(99),
        Duration::from_millis(10),
    )?;
    bench.tell("PostgreSQL: fail-over beyond the lease, p50", &human(excess.percentile(50)), "–")
}

/// What one leader and two followers cost while nothing happens.
fn idle(bench: &Bench) -> Outcome<()> {
    const INTERVALS: u32 = 6;
    let mut stage = Stage::open()?;
    for _ in 0..3 {
        stage.launch(TTL)?;
    }
    stage.troupe.hear_word("leads")?;
    stage.wait_for(2)?;
    std::thread::sleep(TTL);
    let pids = (1..=3).map(|n| stage.troupe.pid(&format!("node-{n}"))).collect::<Outcome<Vec<_>>>()?;
    let used = |pids: &[u32]| pids.iter().map(|pid| cpu(*pid)).sum::<Outcome<Duration>>();
    let counters = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
    let writes =
        "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables";
    let look = |stage: &Stage| Outcome::Ok((stage.one::<i64>(counters)?, stage.one::<i64>(writes)?));
    let (before, busy) = (look(&stage)?, used(&pids)?);
    std::thread::sleep(TTL / 3 * INTERVALS);
    let (after, busy) = (look(&stage)?, used(&pids)?.saturating_sub(busy));
    let per_node = |count: i64| count as f64 / f64::from(INTERVALS) / 3.0;
    let (statements, written) = (per_node(after.0 - before.0 - 2), per_node(after.1 - before.1));
    let memory: u64 = pids.iter().map(|pid| resident(*pid)).sum::<Outcome<u64>>()?;
    let share = busy.as_secs_f64() / (TTL / 3 * INTERVALS).as_secs_f64() * 100.0;
    println!("\nidle: one leader and two followers, per node and interval of {:?}", TTL / 3);
    println!(
        "  transactions {statements:.2}, rows written {written:.2}; together {share:.3} % of a core, {} KiB",
        memory
    );
    bench.conclude(
        "PostgreSQL: idle, rows written per node and ttl/3",
        &format!("{written:.2}"),
        "≤ 1",
        if written <= 1.05 { "met" } else { "MISSED" },
    )?;
    bench.conclude(
        "PostgreSQL: idle, three nodes together",
        &format!("{share:.3} % of a core, {:.1} MiB", memory as f64 / 1024.0),
        "≤ 0.1 %, ≤ 24 MiB",
        if share <= 0.1 && memory <= 24 * 1024 { "met" } else { "MISSED" },
    )?;
    bench.tell("PostgreSQL: idle, transactions per node and ttl/3", &format!("{statements:.2}"), "–")
}

/// Many elections on one session.
fn holding(bench: &Bench, elections: usize) -> Outcome<()> {
    const INTERVALS: u32 = 4;
    let mut stage = Stage::open()?;
    stage.troupe.launch("holder", &[&elections.to_string(), &stage.server.url()])?;
    let won = Duration::from_nanos(stage.troupe.hear_word("held")?.rest.parse()?);
    std::thread::sleep(TTL);
    let sql = "SELECT (n_tup_upd + n_tup_ins + n_tup_del)::bigint FROM pg_stat_user_tables WHERE relname = $";
    let written = |table: &str| stage.one::<i64>(&sql.replace('$', &format!("'{table}'")));
    let before = (written("sessions")?, written("elections")?);
    std::thread::sleep(TTL / 3 * INTERVALS);
    let after = (written("sessions")?, written("elections")?);
    let per_interval = (after.0 - before.0) as f64 / f64::from(INTERVALS);
    println!("\n{elections} elections on one session, won in {}", human(won));
    let same = after.1 == before.1 && per_interval <= 1.3;
    bench.conclude(
        &format!("PostgreSQL: {elections} elections, rows written per interval"),
        &format!("{per_interval:.2}"),
        "as for one: 1",
        if same { "met" } else { "MISSED" },
    )
}

fn hold(elections: usize, url: &str) -> Outcome<()> {
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
