//! Planned hand-over between processes on SQLite: how long nobody leads.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::candidate::{self, Contest};
use common::floor::Row;
use common::place::Place;
use common::process::Troupe;
use common::samples::{Samples, show};
use common::{Bench, Outcome};

const TARGET: Duration = Duration::from_millis(20);
const TTL: Duration = Duration::from_secs(10);
/// After the last candidate has registered, its news has reached all others by then.
const SETTLE: Duration = Duration::from_millis(15);

fn main() -> ExitCode {
    common::run("handover", measure, candidate::part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let rounds = if bench.quick { 40 } else { 400 };
    for (processes, named) in [(2, false), (3, false), (3, true)] {
        let mut play = Play::begin(processes, named)?;
        for _ in 0..rounds {
            play.round()?;
        }
        play.tell(bench)?;
    }
    Ok(())
}

struct Play {
    processes: usize,
    /// Whether the leader names its successor, or leaves the lease to whoever comes first.
    named: bool,
    leader: String,
    /// Before its place: when this is dropped, the processes end first.
    troupe: Troupe,
    place: Place,
    contest: Contest,
    floor: Row,
    figures: Figures,
}

/// What is measured in every round. The hops add up to the whole.
#[derive(Default)]
struct Figures {
    whole: Samples,
    /// From the call until the resignation's transaction has begun.
    until_resigning: Samples,
    /// From there until the successor's claim has begun: a commit, the news, the way to the claim.
    until_claiming: Samples,
    /// From there until `elected()` returns: a commit, and the way back.
    until_elected: Samples,
    two_commits: Samples,
    excess: Samples,
}

impl Play {
    fn begin(processes: usize, named: bool) -> Outcome<Self> {
        let place = Place::on_disk()?;
        let floor = Row::open(&place.floor())?;
        let mut troupe = Troupe::new();
        let names: Vec<String> = (1..=processes).map(|number| format!("node-{number}")).collect();
        let contest = Contest::open(&place, &mut troupe, &names, TTL)?;
        let (leader, _) = contest.leader()?;
        Ok(Self { processes, named, leader, place, troupe, contest, floor, figures: Figures::default() })
    }

    fn round(&mut self) -> Outcome<()> {
        self.contest.wait_for(self.processes - 1)?;
        std::thread::sleep(SETTLE);
        let two_commits = self.floor.commits(2)?;
        let order = match self.contest.standing()?.first() {
            Some(next) if self.named => format!("transfer {next}"),
            _ => String::from("resign"),
        };
        self.troupe.order(&self.leader, &order)?;
        let (mut called, mut elected) = (None, None);
        while called.is_none() || elected.is_none() {
            let said = self.troupe.hear()?;
            match said.word.as_str() {
                "resigned" => called = Some(said.instant()?),
                "leads" => elected = Some((said.instant()?, said.by)),
                _ => return Err(format!("{} {} {}", said.by, said.word, said.rest).into()),
            }
        }
        let (Some(called), Some((elected, successor))) = (called, elected) else { return Ok(()) };
        let (resigning, claiming) =
            (self.contest.latest("leader_resigned")?, self.contest.latest("leader_elected")?);
        let figures = &mut self.figures;
        figures.whole.push(elected.since(called));
        figures.until_resigning.push(resigning.since(called));
        figures.until_claiming.push(claiming.since(resigning));
        figures.until_elected.push(elected.since(claiming));
        figures.two_commits.push(two_commits);
        figures.excess.push(elected.since(called).saturating_sub(two_commits));
        let former = std::mem::replace(&mut self.leader, successor);
        self.troupe.order(&former, "stand")
    }

    fn tell(&self, bench: &Bench) -> Outcome<()> {
        let how = if self.named { "transfer" } else { "resign" };
        let title = format!("hand-over, {} processes, {how}", self.processes);
        println!("\n{title} ({})", self.place);
        let figures = &self.figures;
        show("called → successor's elected() returned", &figures.whole);
        show("  called → resignation's transaction begun", &figures.until_resigning);
        show("  → successor's claim's transaction begun", &figures.until_claiming);
        show("  → elected() returned", &figures.until_elected);
        show("floor: two durable commits", &figures.two_commits);
        show("beyond the floor of the same round", &figures.excess);
        bench.judge(&format!("{title}, p99"), figures.whole.percentile(99), TARGET)?;
        bench.tell(
            &format!("{title}, p50"),
            &common::samples::human(figures.whole.percentile(50)),
            &format!("floor (2 commits) {}", common::samples::human(figures.two_commits.percentile(50))),
        )
    }
}
