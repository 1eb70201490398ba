//! Crash failover between processes on SQLite: how long after the instant at which the lease may
//! first be taken it is taken.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::floor::oversleep;
use common::samples::{Samples, human, show};
use common::stage::{Round, Stage};
use common::{Bench, Outcome, candidate};
use tenure_store::clock;

const TARGET: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    common::run("failover", measure, candidate::part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let rounds = if bench.quick { 15 } else { 200 };
    for processes in [2, 3] {
        let mut play = Play::begin(processes)?;
        while play.figures.excess.len() < rounds {
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
    stage: Stage,
    figures: Figures,
    disturbed: usize,
}

#[derive(Default)]
struct Figures {
    excess: Samples,
    /// The part of it until the claim's transaction has begun.
    until_claiming: Samples,
    commit: Samples,
    oversleep: Samples,
}

impl Play {
    fn begin(processes: usize) -> Outcome<Self> {
        let stage = Stage::open(processes, TTL)?;
        Ok(Self { processes, stage, figures: Figures::default(), disturbed: 0 })
    }

    /// The same with other processes and another file.
    fn anew(self) -> Outcome<Self> {
        let Self { processes, figures, disturbed, stage } = self;
        drop(stage);
        Ok(Self { figures, disturbed: disturbed + 1, ..Self::begin(processes)? })
    }

    fn round(&mut self) -> Outcome<Round> {
        self.stage.wait_for(self.processes - 1)?;
        // A candidate trusts no age within a ttl of its first contact with the store; a renewal
        // after that contact must be the last, so at least one interval passes, and then a part of
        // another, so that the crash comes at any point between two renewals.
        let part = u32::try_from(self.figures.excess.len() % 7)?;
        self.wait(TTL / 3 + TTL / 30 + TTL / 21 * part)?;
        let (leader, _) = self.stage.leader()?;
        if !self.stage.troupe.rest().iter().all(|said| said.word == "leads" && said.by == leader) {
            return Ok(Round::Disturbed);
        }
        self.stage.troupe.kill(&leader)?;
        let (holder, renewed) = self.stage.leader()?;
        if holder != leader {
            return Ok(Round::Disturbed);
        }
        let free = renewed + TTL;
        self.wait(free.since(clock::now()).saturating_sub(TTL / 20))?;
        let elected = self.stage.troupe.hear_word("leads")?.instant()?;
        if elected < free {
            return Err(format!("elected {} too early", human(free.since(elected))).into());
        }
        self.figures.excess.push(elected.since(free));
        self.figures.until_claiming.push(self.stage.latest("leader_elected")?.since(free));
        self.stage.launch()?;
        Ok(Round::Measured)
    }

    /// Waits, and measures meanwhile what cannot be avoided.
    fn wait(&mut self, long: Duration) -> Outcome<()> {
        let until = clock::now() + long;
        loop {
            let left = until.since(clock::now());
            if left < Duration::from_millis(60) {
                std::thread::sleep(left);
                return Ok(());
            }
            self.figures.commit.push(self.stage.floor.commits(1)?);
            self.figures.oversleep.push(oversleep(Duration::from_millis(50))?);
        }
    }

    fn tell(&self, bench: &Bench) -> Outcome<()> {
        let title = format!("failover, {} processes", self.processes);
        println!("\n{title}, ttl {TTL:?} ({})", self.stage.place);
        show("last renewal + ttl → successor's elected() returned", &self.figures.excess);
        show("  of this until the claim's transaction has begun", &self.figures.until_claiming);
        show("floor: one durable commit", &self.figures.commit);
        show("floor: waking up at an instant (timerfd)", &self.figures.oversleep);
        if self.disturbed > 0 {
            println!("{} rounds left out: a leader lost its lease before it was killed", self.disturbed);
        }
        bench.judge(
            &format!("{title}: beyond the lease, p99"),
            self.figures.excess.percentile(99),
            TARGET,
        )?;
        let floor = self.figures.commit.percentile(50) + self.figures.oversleep.percentile(50);
        bench.tell(
            &format!("{title}: beyond the lease, p50"),
            &human(self.figures.excess.percentile(50)),
            &format!("floor (commit + wake-up) {}", human(floor)),
        )
    }
}
