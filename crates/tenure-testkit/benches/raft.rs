//! A Raft group of three processes: planned hand-over, crash fail-over, and what it costs while idle. Beside it,
//! Erlang's `:global` on three nodes: the same, and how long both sides of a cut lead.

mod common;
mod peers;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use common::cast::{Cast, Peer, Way};
use common::double::{Mishap, longest};
use common::place::Place;
use common::process::Troupe;
use common::samples::{Samples, human, show};
use common::usage::{cpu, resident};
use common::{Bench, Outcome, candidate};
use peers::global::Global;
use peers::tenure::Group;
use tenure::raft::RaftStore;
use tenure::{ElectionName, Store};
use tenure_store::clock;
use tenure_testkit::server::free_port;
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    common::run("raft", measure, candidate::part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    handover(bench, if bench.quick { 40 } else { 400 })?;
    let tight = Settings { ttl: Duration::from_secs(1), heartbeat: 50, target: Duration::from_millis(1600) };
    failover(bench, "ttl 1 s, heartbeat 50 ms", &tight, if bench.quick { 10 } else { 120 })?;
    // A ttl, and one election of the group: six heartbeats of trust and up to six of dice.
    let target = Duration::from_secs(10) + Duration::from_millis(1300);
    let usual = Settings { ttl: Duration::from_secs(10), heartbeat: 100, target };
    failover(bench, "default settings", &usual, if bench.quick { 2 } else { 20 })?;
    idle(bench, if bench.quick { 20 } else { 120 })?;
    global(bench)
}

struct Settings {
    ttl: Duration,
    /// In milliseconds.
    heartbeat: u32,
    target: Duration,
}

/// Three members on disk, and somebody who looks at them.
struct Stage {
    troupe: Troupe,
    runtime: Runtime,
    client: Arc<dyn Store>,
    urls: Vec<String>,
    ttl: Duration,
    place: Place,
}

impl Stage {
    fn open(ttl: Duration, heartbeat: u32) -> Outcome<Self> {
        let place = Place::on_disk()?;
        let peers: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let group = format!("raft://{}?heartbeat={heartbeat}ms", peers.join(","));
        let data = |number: usize| place.database().with_file_name(format!("member-{number}"));
        let url = |(number, peer): (usize, &String)| {
            format!("{group}&data={}&listen={peer}", data(number).display())
        };
        let urls: Vec<String> = peers.iter().enumerate().map(url).collect();
        let mut troupe = Troupe::new();
        for (number, url) in urls.iter().enumerate() {
            troupe.launch(&number.to_string(), &[url, &ttl.as_millis().to_string()])?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(async {
            let end = clock::now() + PATIENCE;
            loop {
                match tenure::connect(&group).await {
                    Ok(client) => return Outcome::Ok(client),
                    Err(error) if clock::now() > end => return Err(error.into()),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        })?;
        Ok(Self { troupe, runtime, client, urls, ttl, place })
    }

    fn restart(&mut self, name: &str) -> Outcome<()> {
        let url = self.urls[name.parse::<usize>()?].clone();
        self.troupe.launch(name, &[&url, &self.ttl.as_millis().to_string()])
    }

    fn wait_for(&self, candidates: usize) -> Outcome<()> {
        let (end, election) = (clock::now() + PATIENCE, ElectionName::new("bench")?);
        while clock::now() < end {
            let standing = self.runtime.block_on(self.client.candidates(election.clone()));
            if standing.is_ok_and(|told| told.value.len() == candidates) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("the candidates do not stand".into())
    }

    /// Two writes to the disk, one after the other: what a hand-over cannot do without.
    fn floor(&self) -> Outcome<Duration> {
        let mut file = File::create(self.place.floor())?;
        let began = clock::now();
        for _ in 0..2 {
            file.write_all(&[1; 512])?;
            file.sync_data()?;
        }
        Ok(clock::now().since(began))
    }

    /// How many entries were ever written to the log.
    fn entries(&self) -> Outcome<u64> {
        let group = self.client.as_any().downcast_ref::<RaftStore>().ok_or("this is no group")?;
        Ok(self.runtime.block_on(group.log_length())?)
    }
}

fn handover(bench: &Bench, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::open(Duration::from_secs(10), 100)?;
    let mut leader = stage.troupe.hear_word("leads")?.by;
    let (mut whole, mut floor) = (Samples::default(), Samples::default());
    while whole.len() < rounds {
        stage.wait_for(2)?;
        std::thread::sleep(Duration::from_millis(15));
        floor.push(stage.floor()?);
        whole.push(stage.troupe.hand_over(&mut leader)?);
    }
    println!("\nhand-over, 3 members, resign; on {}", stage.place);
    show("called → successor's elected() returned", &whole);
    show("floor: two fdatasync, one after the other", &floor);
    bench.judge("Raft: hand-over, p99", whole.percentile(99), Duration::from_millis(25))?;
    bench.tell("Raft: hand-over, p50", &human(whole.percentile(50)), "–")
}

fn failover(bench: &Bench, name: &str, settings: &Settings, rounds: usize) -> Outcome<()> {
    let mut stage = Stage::open(settings.ttl, settings.heartbeat)?;
    let mut leader = stage.troupe.hear_word("leads")?.by;
    let mut whole = Samples::default();
    while whole.len() < rounds {
        stage.wait_for(2)?;
        // A candidate believes ages only after it has known the store for a ttl.
        let part = u32::try_from(whole.len() % 7)?;
        std::thread::sleep(settings.ttl + settings.ttl / 3 + settings.ttl / 21 * part);
        if !stage.troupe.rest().is_empty() {
            return Err("the lease was lost: this machine is too busy".into());
        }
        stage.troupe.kill(&leader)?;
        let killed = clock::now();
        let next = stage.troupe.hear_word("leads")?;
        whole.push(next.instant()?.since(killed));
        stage.restart(&leader)?;
        leader = next.by;
    }
    println!("\nfail-over, 3 members, kill -9 of the leader's member, {name}");
    show("killed → successor's elected() returned", &whole);
    bench.judge(&format!("Raft: fail-over, {name}, p99"), whole.percentile(99), settings.target)?;
    bench.tell(&format!("Raft: fail-over, {name}, p50"), &human(whole.percentile(50)), "–")
}

/// What three members cost while one leads, two wait, and nothing happens.
fn idle(bench: &Bench, seconds: u32) -> Outcome<()> {
    let mut stage = Stage::open(Duration::from_secs(10), 100)?;
    stage.troupe.hear_word("leads")?;
    stage.wait_for(2)?;
    std::thread::sleep(Duration::from_secs(2));
    let pids = (0..3).map(|number| stage.troupe.pid(&number.to_string())).collect::<Outcome<Vec<_>>>()?;
    let used = |pids: &[u32]| pids.iter().map(|pid| cpu(*pid)).sum::<Outcome<Duration>>();
    let (entries, busy) = (stage.entries()?, used(&pids)?);
    std::thread::sleep(Duration::from_secs(1) * seconds);
    let (entries, busy) = (stage.entries()? - entries, used(&pids)?.saturating_sub(busy));
    let per_hour = entries as f64 / f64::from(seconds) * 3600.0;
    let share = busy.as_secs_f64() / f64::from(seconds) * 100.0;
    let memory: u64 = pids.iter().map(|pid| resident(*pid)).sum::<Outcome<u64>>()?;
    let file: PathBuf = stage.place.database().with_file_name("member-0").join("raft.redb");
    let size = std::fs::metadata(file)?.len();
    println!("\nidle: three members, ttl 10 s, over {seconds} s");
    println!(
        "  log: {entries} entries, {per_hour:.0} per hour, of which at most 2500 are kept; file {size} bytes"
    );
    println!("  together {share:.2} % of a core, {memory} KiB");
    bench.tell("Raft: idle, log entries per hour", &format!("{per_hour:.0}"), "bounded by snapshots")?;
    bench.tell("Raft: idle, three members together", &format!("{share:.2} % of a core"), "–")
}

/// Erlang's `:global` beside a group of ours, each on three machines of its own, whose leader is cut off from the
/// other two.
fn global(bench: &Bench) -> Outcome<()> {
    /// Of our leases. `:global` has none; nodes part that hear nothing of each other for so long.
    const TTL: Duration = Duration::from_secs(2);
    let (handovers, crashes, cuts) = if bench.quick { (10, 2, 1) } else { (100, 20, 5) };
    let (ours, theirs) = (Group::open()?, Global::open());
    for (peer, name) in [(&ours as &dyn Peer, "Raft"), (&theirs, "Erlang's :global")] {
        let mut cast = Cast::open(peer, TTL, Way::Direct, 3)?;
        cast.settle()?;
        let (mut handed, mut failed) = (Samples::default(), Samples::default());
        for _ in 0..handovers {
            std::thread::sleep(Duration::from_millis(100));
            handed.push(cast.troupe.hand_over(&mut cast.leader)?);
        }
        for round in 0..crashes {
            failed.push(cast.crash(round)?);
        }
        let both = longest(&mut cast, Mishap::Cut, cuts, Duration::from_secs(20))?;
        println!("\n{name}, three machines, ttl or net_ticktime {TTL:?}");
        show("called → the successor leads", &handed);
        show("killed → the successor leads", &failed);
        bench.tell(&format!("{name}, three machines: hand-over, p50"), &human(handed.percentile(50)), "–")?;
        bench.tell(&format!("{name}, three machines: fail-over, p50"), &human(failed.percentile(50)), "–")?;
        bench.tell(&format!("{name}, three machines: both sides of a cut lead"), &both.to_string(), "–")?;
    }
    Ok(())
}
