//! Planned hand-over between processes on SQLite: how long nobody leads.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::samples::{Samples, human, show};
use common::stage::{Round, Stage};
use common::{Bench, Outcome, candidate};

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
        while play.figures.whole.len() < rounds {
            if play.round()? == Round::Disturbed {
                play = play.anew()?;
            }
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
    stage: Stage,
    figures: Figures,
    disturbed: usize,
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
        let stage = Stage::open(processes, TTL)?;
        let (leader, _) = stage.leader()?;
        Ok(Self { processes, named, leader, stage, figures: Figures::default(), disturbed: 0 })
    }

    /// The same with other processes and another file.
    fn anew(self) -> Outcome<Self> {
        let Self { processes, named, figures, disturbed, stage, .. } = self;
        drop(stage);
        Ok(Self { figures, disturbed: disturbed + 1, ..Self::begin(processes, named)? })
    }

    fn round(&mut self) -> Outcome<Round> {
        self.stage.wait_for(self.processes - 1)?;
        std::thread::sleep(SETTLE);
        let two_commits = self.stage.floor.commits(2)?;
        let order = match self.stage.standing()?.first() {
            Some(next) if self.named => format!("transfer {next}"),
            _ => String::from("resign"),
        };
        self.stage.troupe.order(&self.leader, &order)?;
        let (mut called, mut elected) = (None, None);
        while called.is_none() || elected.is_none() {
            let said = self.stage.troupe.hear()?;
            match said.word.as_str() {
                "resigned" => called = Some(said.instant()?),
                "leads" => elected = Some((said.instant()?, said.by)),
                _ => return Ok(Round::Disturbed),
            }
        }
        let (Some(called), Some((elected, successor))) = (called, elected) else {
            return Ok(Round::Disturbed);
        };
        let (resigning, claiming) =
            (self.stage.latest("leader_resigned")?, self.stage.latest("leader_elected")?);
        let figures = &mut self.figures;
        figures.whole.push(elected.since(called));
        figures.until_resigning.push(resigning.since(called));
        figures.until_claiming.push(claiming.since(resigning));
        figures.until_elected.push(elected.since(claiming));
        figures.two_commits.push(two_commits);
        figures.excess.push(elected.since(called).saturating_sub(two_commits));
        let former = std::mem::replace(&mut self.leader, successor);
        self.stage.troupe.order(&former, "stand")?;
        Ok(Round::Measured)
    }

    fn tell(&self, bench: &Bench) -> Outcome<()> {
        let how = if self.named { "transfer" } else { "resign" };
        let title = format!("hand-over, {} processes, {how}", self.processes);
        println!("\n{title} ({})", self.stage.place);
        let figures = &self.figures;
        show("called → successor's elected() returned", &figures.whole);
        show("  called → resignation's transaction begun", &figures.until_resigning);
        show("  → successor's claim's transaction begun", &figures.until_claiming);
        show("  → elected() returned", &figures.until_elected);
        show("floor: two durable commits", &figures.two_commits);
        show("beyond the floor of the same round", &figures.excess);
        if self.disturbed > 0 {
            println!("{} rounds left out: a leader lost its lease", self.disturbed);
        }
        bench.judge(&format!("{title}, p99"), figures.whole.percentile(99), TARGET)?;
        bench.tell(
            &format!("{title}, p50"),
            &human(figures.whole.percentile(50)),
            &format!("floor (2 commits) {}", human(figures.two_commits.percentile(50))),
        )
    }
}
