//! What it costs one process to hold 1, 1,000 and 100,000 elections.

mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use common::place::Place;
use common::process::{Troupe, say};
use common::samples::human;
use common::usage::{cpu, resident};
use common::{Bench, Outcome};
use futures_util::future::join_all;
use tenure::{Leadership, Node};
use tenure_store::clock;

const TTL: Duration = Duration::from_secs(9);
/// A session is renewed every third of its ttl.
const INTERVAL: Duration = Duration::from_secs(3);
/// On a machine that stands still for most of a ttl, a case is tried again.
const TRIES: u32 = 3;

fn main() -> ExitCode {
    common::run("holding", measure, hold)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let most = if bench.quick { 10_000 } else { 100_000 };
    let intervals = if bench.quick { 2 } else { 5 };
    println!("per renewal interval of {INTERVAL:?}, over {intervals} intervals; a process for each line\n");
    println!(
        "{:<24} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "store", "elections", "commits", "renewals", "log bytes", "CPU", "memory", "all won in"
    );
    // Claims are one durable commit each: on a disk, 100,000 would take minutes. The log that is
    // counted is the same on both.
    let mut held = Vec::new();
    for (place, elections) in
        [(Kind::Disk, 1), (Kind::Disk, 1_000), (Kind::Tmpfs, 1), (Kind::Tmpfs, 1_000), (Kind::Tmpfs, most)]
    {
        held.push(observe(place, elections, intervals)?);
    }
    for elections in [1, 1_000, most] {
        observe(Kind::NoFile, elections, intervals)?;
    }
    println!("\non the memory store, what the store itself keeps is in the same process");
    conclude(bench, &held)
}

/// Compares the most elections with one, on the same kind of file.
fn conclude(bench: &Bench, held: &[Held]) -> Outcome<()> {
    let [.., one, _, many] = held else { return Err("too few cases".into()) };
    let per_interval = |held: &Held| held.commits as f64 / f64::from(held.intervals);
    let extra = many.commits.abs_diff(one.commits);
    // A renewal may fall on either side of where the watch begins and ends.
    let same = extra <= 1 && many.commits == many.renewals && one.commits == one.renewals;
    bench.conclude(
        &format!("holding {} elections, commits per interval", many.elections),
        &format!("{:.2}", per_interval(many)),
        &format!("as for one: {:.2}", per_interval(one)),
        &if same { String::from("met") } else { format!("MISSED by {extra} commits") },
    )?;
    bench.tell(
        &format!("holding {} elections, CPU per interval", many.elections),
        &human(many.cpu / many.intervals),
        &format!("holding one {}", human(one.cpu / one.intervals)),
    )
}

/// Where the store keeps what it knows.
#[derive(Clone, Copy)]
enum Kind {
    Disk,
    Tmpfs,
    NoFile,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Disk => "SQLite, disk",
            Self::Tmpfs => "SQLite, /dev/shm (tmpfs)",
            Self::NoFile => "memory",
        }
    }

    fn open(self) -> Outcome<Option<Place>> {
        Ok(match self {
            Self::Disk => Some(Place::on_disk()?),
            Self::Tmpfs => {
                Some(Place::in_memory().ok_or("there is no /dev/shm, where many elections are won fast")?)
            }
            Self::NoFile => None,
        })
    }
}

/// What was seen of a process while it held elections.
struct Held {
    elections: usize,
    intervals: u32,
    commits: u64,
    renewals: u64,
    cpu: Duration,
}

/// Has a process hold so many elections, and looks at it meanwhile.
fn observe(place: Kind, elections: usize, intervals: u32) -> Outcome<Held> {
    let store = place.name();
    for _ in 0..TRIES {
        let place = place.open()?;
        let database = place.as_ref().map(Place::database);
        match watch(store, database.as_deref(), elections, intervals)? {
            Some(held) => return Ok(held),
            None => println!("{store:<24} {elections:>9} left out: the lease was lost meanwhile"),
        }
    }
    Err("the leases cannot be held: this machine is too busy".into())
}

/// `None` if the leases were lost meanwhile.
fn watch(store: &str, database: Option<&Path>, elections: usize, intervals: u32) -> Outcome<Option<Held>> {
    let url = database.map_or(String::from("memory:"), |path| format!("sqlite:{}", path.display()));
    let mut troupe = Troupe::new();
    troupe.launch("holder", &[&elections.to_string(), &url])?;
    let won_in = Duration::from_nanos(troupe.hear_word("held")?.rest.parse()?);
    let pid = troupe.pid("holder")?;
    // What winning left behind (news of one's own grants, say) is not the cost of holding.
    std::thread::sleep(2 * INTERVAL);
    let log = database.map(Log::open).transpose()?;
    let (before, renewed) = (cpu(pid)?, log.as_ref().map(Log::renewals).transpose()?);
    std::thread::sleep(INTERVAL * intervals);
    let used = cpu(pid)?.saturating_sub(before);
    let renewals = log.as_ref().map(Log::renewals).transpose()?.unwrap_or(0) - renewed.unwrap_or(0);
    let (commits, bytes) = log.as_ref().map(Log::growth).transpose()?.unwrap_or((0, 0));
    troupe.order("holder", "stop")?;
    if troupe.hear_word("lost")?.rest != "0" {
        return Ok(None);
    }
    let each = |total: u64| match log {
        Some(_) => (total as f64 / f64::from(intervals)).to_string(),
        None => String::from("–"),
    };
    println!(
        "{store:<24} {elections:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}",
        each(commits),
        each(renewals),
        each(bytes),
        human(used / intervals),
        format!("{:.1} MiB", resident(pid)? as f64 / 1024.0),
        human(won_in),
    );
    Ok(Some(Held { elections, intervals, commits, renewals, cpu: used }))
}

/// The process: wins so many elections, and holds them until told otherwise.
fn hold(words: &[&str]) -> Outcome<()> {
    let [_, elections, url] = words else { return Err("usage: part NAME ELECTIONS URL".into()) };
    let elections: usize = elections.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let held = runtime.block_on(win(elections, url))?;
    std::io::stdin().read_line(&mut String::new())?;
    say("lost", held.iter().filter(|leadership| leadership.check().is_err()).count());
    std::io::stdin().read_line(&mut String::new())?;
    // Without giving back every lease, one by one.
    std::process::exit(0);
}

async fn win(elections: usize, url: &str) -> Outcome<Vec<Leadership>> {
    let node = Node::builder("holder").ttl(TTL).start(tenure::connect(url).await?).await?;
    let started = clock::now();
    let names = (0..elections).map(|number| format!("election-{number}"));
    let stood = names.map(|name| node.election(name)).collect::<Result<Vec<_>, _>>()?;
    let elected = join_all(stood.iter().map(|election| election.elected())).await;
    let held = elected.into_iter().collect::<Result<Vec<_>, _>>()?;
    say("held", clock::now().since(started).as_nanos());
    Ok(held)
}

/// The write-ahead log of a database, emptied, so that what is written from then on can be counted.
struct Log {
    path: PathBuf,
    connection: rusqlite::Connection,
}

impl Log {
    fn open(database: &Path) -> Outcome<Self> {
        let connection = rusqlite::Connection::open(database)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))?;
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Ok(Self { path: PathBuf::from(path), connection })
    }

    /// Commits and bytes in it. The last page of a commit tells in its header how large the
    /// database is after it; all other pages have a zero there.
    fn growth(&self) -> Outcome<(u64, u64)> {
        const HEADER: usize = 32;
        const FRAME: usize = 24 + 4096;
        let log = std::fs::read(&self.path)?;
        let frames = log.get(HEADER..).unwrap_or_default().chunks_exact(FRAME);
        let commits = frames.filter(|frame| frame[4..8] != [0; 4]).count();
        Ok((commits as u64, log.len().saturating_sub(HEADER) as u64))
    }

    /// How often the only session was renewed.
    fn renewals(&self) -> Outcome<u64> {
        let sql = "SELECT sequence FROM tenure_sessions";
        let sequence: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(u64::try_from(sequence)?)
    }
}
