//! Crash failover between processes on SQLite: how long after the instant at which the lease may
//! first be taken it is taken.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::candidate::{self, Contest};
use common::floor::{Row, oversleep};
use common::place::Place;
use common::process::Troupe;
use common::samples::{Samples, human, show};
use common::{Bench, Outcome};

const TARGET: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    common::run("failover", measure, candidate::part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let rounds = if bench.quick { 15 } else { 60 };
    for processes in [2, 3] {
        let mut play = Play::begin(processes)?;
        while play.excess.len() < rounds {
            play.round()?;
        }
        play.tell(bench)?;
    }
    Ok(())
}

struct Play {
    processes: usize,
    launched: usize,
    /// Rounds in which the leader lost its lease before it was killed: this machine stood still.
    disturbed: usize,
    /// Before its place: when this is dropped, the processes end first.
    troupe: Troupe,
    place: Place,
    contest: Contest,
    floor: Row,
    excess: Samples,
    claiming: Samples,
    commit: Samples,
    oversleep: Samples,
}

impl Play {
    fn begin(processes: usize) -> Outcome<Self> {
        let place = Place::on_disk()?;
        let floor = Row::open(&place.floor())?;
        let mut troupe = Troupe::new();
        let names: Vec<String> = (1..=processes).map(name).collect();
        let contest = Contest::open(&place, &mut troupe, &names, TTL)?;
        let (excess, claiming, commit, oversleep) = Default::default();
        let (launched, disturbed) = (processes, 0);
        Ok(Self {
            processes,
            launched,
            disturbed,
            place,
            troupe,
            contest,
            floor,
            excess,
            claiming,
            commit,
            oversleep,
        })
    }

    fn round(&mut self) -> Outcome<()> {
        self.contest.wait_for(self.processes - 1)?;
        // A candidate trusts no age within a ttl of its first contact with the store; a renewal
        // after that contact must be the last, so at least one interval passes, and then a part of
        // another, so that the crash comes at any point between two renewals.
        let part = u32::try_from(self.excess.len() % 7)?;
        self.wait(TTL / 3 + TTL / 30 + TTL / 21 * part)?;
        let (leader, _) = self.contest.leader()?;
        let disturbed = self.troupe.rest().iter().any(|said| said.word == "lost");
        if disturbed {
            self.disturbed += 1;
            return Ok(());
        }
        self.troupe.kill(&leader)?;
        let (holder, renewed) = self.contest.leader()?;
        if holder != leader {
            return Err(format!("{leader} was killed, and {holder} leads already").into());
        }
        let free = renewed + TTL;
        self.wait(free.since(tenure_store::clock::now()).saturating_sub(TTL / 20))?;
        let elected = self.troupe.hear_word("leads")?.instant()?;
        if elected < free {
            return Err(format!("elected {} too early", human(free.since(elected))).into());
        }
        self.excess.push(elected.since(free));
        self.claiming.push(self.contest.latest("leader_elected")?.since(free));
        self.launched += 1;
        candidate::launch(&self.place, &mut self.troupe, &name(self.launched), TTL)
    }

    /// Waits, and measures meanwhile what cannot be avoided.
    fn wait(&mut self, long: Duration) -> Outcome<()> {
        let until = tenure_store::clock::now() + long;
        loop {
            let left = until.since(tenure_store::clock::now());
            if left < Duration::from_millis(60) {
                std::thread::sleep(left);
                return Ok(());
            }
            self.commit.push(self.floor.commits(1)?);
            self.oversleep.push(oversleep(Duration::from_millis(50))?);
        }
    }

    fn tell(&self, bench: &Bench) -> Outcome<()> {
        let title = format!("failover, {} processes", self.processes);
        println!("\n{title}, ttl {TTL:?} ({})", self.place);
        show("last renewal + ttl → successor's elected() returned", &self.excess);
        show("  of this until the claim's transaction has begun", &self.claiming);
        show("floor: one durable commit", &self.commit);
        show("floor: waking up at an instant (timerfd)", &self.oversleep);
        if self.disturbed > 0 {
            println!("{} rounds left out: the leader lost its lease before the crash", self.disturbed);
        }
        bench.judge(&format!("{title}: beyond the lease, p99"), self.excess.percentile(99), TARGET)?;
        let floor = self.commit.percentile(50) + self.oversleep.percentile(50);
        bench.tell(
            &format!("{title}: beyond the lease, p50"),
            &human(self.excess.percentile(50)),
            &format!("floor (commit + wake-up) {}", human(floor)),
        )
    }
}

fn name(number: usize) -> String {
    format!("node-{number}")
}
