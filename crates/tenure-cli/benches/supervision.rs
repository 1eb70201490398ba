//! `tenure run`: how soon a successor's program runs after a crash and after a hand-over, and how long before anybody
//! else could lead a stopped supervisor's program is gone.

#[path = "../../tenure-testkit/benches/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use common::floor::Row;
use common::place::Place;
use common::samples::{Samples, human, show};
use common::{Bench, Outcome, PART};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tenure::{Leadership, Node};
use tenure_core::Instant;
use tenure_store::clock;
use tokio::runtime::Runtime;

/// Far beyond everything that is measured: reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the crashes and hand-overs. None of them is paid with it.
const TTL: Duration = Duration::from_secs(10);
/// Of the stopped supervisors: short, since every round takes one.
const SHORT: Duration = Duration::from_secs(1);
/// Stopped at once, each with a store of its own.
const LANES: usize = 8;
/// The word for a program that ends at SIGTERM.
const HEEDS: &str = "heeds";

fn main() -> ExitCode {
    common::run("supervision", measure, program)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let rounds = if bench.quick { 20 } else { 200 };
    crash(bench, rounds, Victim::Program, Duration::from_millis(20), Duration::from_millis(50))?;
    crash(bench, rounds, Victim::Supervisor, Duration::from_millis(50), Duration::from_millis(100))?;
    hand_over(bench, rounds)?;
    freeze(bench, if bench.quick { 3 } else { 125 })
}

// ----- crashes ------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Program,
    Supervisor,
}

/// Kills one after the other; the successor's program says when it runs.
fn crash(bench: &Bench, rounds: usize, victim: Victim, p50: Duration, p99: Duration) -> Outcome<()> {
    let place = Place::on_disk()?;
    let floor = Row::open(&place.floor())?;
    let name = match victim {
        Victim::Program => "kill -9 of the program",
        Victim::Supervisor => "kill -9 of the supervisor",
    };
    println!("\n{name}, ttl {TTL:?} ({place})");
    let (mut gaps, mut commits) = (Samples::default(), Samples::default());
    let mut leader = Supervised::start(&place, TTL, 0, &[])?;
    let mut running = leader.runs()?;
    for round in 1..=rounds {
        let successor = Supervised::start(&place, TTL, round, &[])?;
        successor.waits()?;
        commits.push(floor.commits(2)?);
        let killed = clock::now();
        match victim {
            Victim::Program => kill_process(running.pid, Signal::KILL)?,
            Victim::Supervisor => leader.process.kill()?,
        }
        running = successor.runs()?;
        gaps.push(running.at.since(killed));
        leader = successor;
    }
    show("killed → the successor's program runs", &gaps);
    show("floor: two durable commits", &commits);
    bench.judge(&format!("{name} → successor's program runs, p50"), gaps.percentile(50), p50)?;
    bench.judge(&format!("{name} → successor's program runs, p99"), gaps.percentile(99), p99)
}

// ----- hand-overs ---------------------------------------------------------------------------

/// Tells one supervisor after the other to end, beside the library in the same rounds: what the command takes longer.
fn hand_over(bench: &Bench, rounds: usize) -> Outcome<()> {
    const MORE: Duration = Duration::from_millis(4);
    let (place, library) = (Place::on_disk()?, Place::on_disk()?);
    println!("\nhand-over of tenure run beside the library, ttl {TTL:?} ({place})");
    let (mut command, mut beside, mut starts) = (Samples::default(), Samples::default(), Samples::default());
    let mut library = Library::open(&library)?;
    let mut leader = Supervised::start(&place, TTL, 0, &[HEEDS])?;
    let mut running = leader.runs()?;
    for round in 1..=rounds {
        let successor = Supervised::start(&place, TTL, round, &[HEEDS])?;
        successor.waits()?;
        beside.push(library.hand_over()?);
        starts.push(start()?);
        let watched = pidfd_open(running.pid, PidfdFlags::empty())?;
        kill_process(leader.pid()?, Signal::TERM)?;
        let gone = gone(&watched)?;
        running = successor.runs()?;
        command.push(running.at.since(gone));
        leader = successor;
    }
    show("the old program is gone → the successor's runs", &command);
    show("of that, starting the program, by itself", &starts);
    show("library: called → successor's elected() returned", &beside);
    let [command, start, library] = [&command, &starts, &beside].map(|samples| samples.percentile(50));
    let more = command.saturating_sub(start + library);
    let verdict = if more <= MORE { "met" } else { "MISSED" };
    bench.conclude(
        "hand-over of tenure run beside the library, p50, starting the program taken off",
        &format!(
            "{} more (command {} − start {}; library {})",
            human(more),
            human(command),
            human(start),
            human(library)
        ),
        &format!("≤ {}", human(MORE)),
        verdict,
    )
}

/// How long it takes until the program runs that nobody supervises.
fn start() -> Outcome<Duration> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([PART, HEEDS]);
    let began = clock::now();
    let started = Supervised::spawn(&mut command)?;
    Ok(started.runs()?.at.since(began))
}

/// Two nodes of this process, one of which leads.
struct Library {
    runtime: Runtime,
    /// The leader first.
    nodes: [Node; 2],
    leadership: Leadership,
}

impl Library {
    fn open(place: &Place) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let url = format!("sqlite:{}", place.database().display());
        let start = async |name: &str| {
            Outcome::Ok(Node::builder(name).ttl(TTL).start(tenure::connect(&url).await?).await?)
        };
        let (nodes, leadership) = runtime.block_on(async {
            let nodes = [start("one").await?, start("other").await?];
            let leadership = nodes[0].election("bench")?.elected().await?;
            Outcome::Ok((nodes, leadership))
        })?;
        Ok(Self { runtime, nodes, leadership })
    }

    /// Has the leader resign while the other stands.
    fn hand_over(&mut self) -> Outcome<Duration> {
        let election = self.nodes[1].election("bench")?;
        let (took, next) = self.runtime.block_on(async {
            let elected = tokio::spawn(async move { (election.elected().await, clock::now()) });
            while self.nodes[0].election("bench")?.candidates().await?.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let called = clock::now();
            self.leadership.resign().await?;
            let (next, at) = elected.await?;
            Outcome::Ok((at.since(called), next?))
        })?;
        self.leadership = next;
        self.nodes.swap(0, 1);
        Ok(took)
    }
}

// ----- stopped supervisors ------------------------------------------------------------------

/// Stops supervisors whose programs do not heed SIGTERM, and looks when the kernel calls them gone.
fn freeze(bench: &Bench, rounds: usize) -> Outcome<()> {
    println!("\nstopped supervisors, ttl {SHORT:?}, {LANES} at once, programs that ignore SIGTERM");
    let lanes: Vec<_> =
        (0..LANES).map(|_| thread::spawn(move || lane(rounds).map_err(|e| e.to_string()))).collect();
    let (mut granted, mut promised) = (Vec::new(), Vec::new());
    for lane in lanes {
        for (to_grant, to_promise) in lane.join().map_err(|_| "a lane has panicked")?? {
            granted.push(to_grant);
            promised.push(to_promise);
        }
    }
    let late = promised.iter().filter(|margin| **margin < 0).count();
    println!("left when the tree was gone (the least is what counts), {} rounds:", granted.len());
    for (what, margins) in
        [("to the first possible grant", &mut granted), ("the same if clocks drift by 10 %", &mut promised)]
    {
        margins.sort_unstable();
        let at = |thousandth: usize| margins[margins.len() * thousandth / 1000];
        println!(
            "  {what:<40} p50 {}  p1 {}  p0.1 {}  least {}",
            signed(at(500)),
            signed(at(10)),
            signed(at(1)),
            signed(margins[0])
        );
    }
    let verdict = if late == 0 {
        String::from("met")
    } else {
        format!("MISSED in {late} of {} rounds", promised.len())
    };
    bench.conclude(
        &format!("stopped supervisor, ttl {SHORT:?}: left when the tree was gone, p50 / p99.9"),
        &format!("{} / {}", signed(promised[promised.len() / 2]), signed(promised[promised.len() / 1000])),
        "> 0 with 10 % drift",
        &verdict,
    )
}

fn signed(nanos: i64) -> String {
    let human = human(Duration::from_nanos(nanos.unsigned_abs()));
    if nanos < 0 { format!("-{human}") } else { human }
}

/// For every round: what was left to the first instant of a grant, as the clocks of one machine run
/// and as they may run.
fn lane(rounds: usize) -> Outcome<Vec<(i64, i64)>> {
    let place = Place::on_disk()?;
    let supervised = Supervised::start(&place, SHORT, 0, &[])?;
    let mut margins = Vec::new();
    while margins.len() < rounds {
        let running = supervised.runs()?;
        let watched = pidfd_open(running.pid, PidfdFlags::empty())?;
        let supervisor = supervised.pid()?;
        kill_process(supervisor, Signal::STOP)?;
        let gone = gone(&watched)?;
        let renewed = renewed(&place.database())?;
        kill_process(supervisor, Signal::CONT)?;
        let left =
            |until: Instant| i64::try_from(until.as_nanos()).unwrap_or(i64::MAX) - gone.as_nanos() as i64;
        margins.push((left(renewed + SHORT), left(renewed + SHORT.mul_f64(0.9 / 1.1))));
    }
    Ok(margins)
}

/// When the only live session was last renewed, on the boot clock.
fn renewed(database: &Path) -> Outcome<Instant> {
    let connection = rusqlite::Connection::open(database)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let sql = "SELECT renewed_boot_ns FROM tenure_sessions WHERE state = 'live'";
    let nanos: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(Instant::from_nanos(u64::try_from(nanos)?))
}

// ----- processes ----------------------------------------------------------------------------

/// A program that runs.
struct Running {
    pid: Pid,
    at: Instant,
}

/// When the kernel calls a program gone, which is waited for.
fn gone(watched: &OwnedFd) -> Outcome<Instant> {
    poll(&mut [PollFd::new(watched, PollFlags::IN)], None)?;
    Ok(clock::now())
}

/// A `tenure run` whose program says when it runs, or such a program without it.
struct Supervised {
    process: Child,
    said: Receiver<String>,
}

impl Supervised {
    fn start(place: &Place, ttl: Duration, number: usize, words: &[&str]) -> Outcome<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(["run", "--election", "bench", "--node", &format!("n{number}"), "--ttl"])
            .arg(format!("{}ms", ttl.as_millis()))
            .arg("--store")
            .arg(format!("sqlite:{}", place.database().display()))
            .arg("--")
            .arg(std::env::current_exe()?)
            .arg(PART)
            .args(words);
        Self::spawn(&mut command)
    }

    fn spawn(command: &mut Command) -> Outcome<Self> {
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (tell, said) = channel();
        if let Some(stdout) = process.stdout.take() {
            listen(stdout, tell.clone());
        }
        if let Some(stderr) = process.stderr.take() {
            listen(stderr, tell);
        }
        Ok(Self { process, said })
    }

    fn pid(&self) -> Outcome<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.process.id())?).ok_or("no process")?)
    }

    fn hear(&self, word: &str) -> Outcome<String> {
        loop {
            let line = self.said.recv_timeout(PATIENCE).map_err(|_| format!("nobody says `{word}`"))?;
            if line.contains(word) {
                return Ok(line);
            }
        }
    }

    fn waits(&self) -> Outcome<()> {
        self.hear("waiting:").map(drop)
    }

    fn runs(&self) -> Outcome<Running> {
        let line = self.hear("runs ")?;
        let mut words = line.split(' ').skip(1);
        let mut next = || words.next().ok_or("half a line");
        let (at, pid) = (next()?.parse()?, next()?.parse()?);
        Ok(Running { at: Instant::from_nanos(at), pid: Pid::from_raw(pid).ok_or("no process")? })
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Its guardian ends the rest.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn listen(source: impl std::io::Read + Send + 'static, tell: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
}

/// The program that is run: it says when it runs, and takes no notice of SIGTERM unless it was told to.
fn program(words: &[&str]) -> Outcome<()> {
    let at = clock::now().as_nanos();
    println!("runs {at} {}", std::process::id());
    std::io::stdout().flush()?;
    if words != [HEEDS] {
        signal_hook::flag::register(signal_hook::consts::SIGTERM, std::sync::Arc::default())?;
    }
    loop {
        thread::sleep(PATIENCE);
    }
}
