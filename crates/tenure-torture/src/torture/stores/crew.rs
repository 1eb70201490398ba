//! Candidates, each in its role, and started again whenever it has ended.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure_core::Instant;
use tenure_store::clock;
use tenure_torture::journal::{Event, Journal, incumbent};
use tenure_torture::{evidence, signals};

use super::cast::{Cast, Part, TASK_LIST};
use super::place::Place;
use super::vitals::Vitals;
use crate::Outcome;

/// Whoever has ended is started again after so long.
const REST: Duration = Duration::from_millis(500);
/// Longer than an orderly end takes on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Crew {
    pub cast: Cast,
    pub members: Vec<Member>,
    pub journal: Arc<Journal>,
    /// How often somebody was started.
    started: u32,
    directory: TempDir,
    blind: bool,
}

pub struct Member {
    pub name: String,
    process: Option<(Child, Option<ChildStdin>)>,
    stopped: bool,
    /// It was told to end, and may still be at it.
    leaving: bool,
    /// Started again then, if it has ended.
    start_at: Instant,
    pub vitals: Vitals,
}

impl Crew {
    /// Nobody runs yet. `blind` plants a mistake: they take themselves for leaders without asking their check.
    pub fn assemble(cast: Cast, blind: bool) -> Outcome<Self> {
        let directory = evidence::workplace();
        evidence::make_register(&directory.path().join("register.db"));
        std::fs::create_dir(directory.path().join("logs"))?;
        let members = cast.roles.iter().map(|role| Member {
            name: role.name.clone(),
            process: None,
            stopped: false,
            leaving: false,
            start_at: Instant::ZERO,
            vitals: Vitals::default(),
        });
        let members = members.collect();
        Ok(Self { cast, members, journal: Arc::default(), started: 0, directory, blind })
    }

    pub fn directory(&self) -> &TempDir {
        &self.directory
    }

    pub fn logs(&self) -> PathBuf {
        self.directory.path().join("logs")
    }

    pub fn register(&self) -> PathBuf {
        self.directory.path().join("register.db")
    }

    /// Starts who has ended, as a service manager does, and feels everybody's pulse.
    pub fn mend(&mut self, place: &Place) -> Outcome<()> {
        let now = clock::now();
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            if let Some((child, _)) = &mut member.process
                && child.try_wait()?.is_some()
            {
                // The store was not there, say.
                member.process = None;
                member.rest_for(REST);
            }
            if member.process.is_none() && member.start_at <= now {
                let process = self.start(number, place)?;
                let member = &mut self.members[number];
                (member.process, member.leaving, member.vitals) = (Some(process), false, Vitals::default());
            }
            let member = &mut self.members[number];
            if let Some(pid) = member.pid().filter(|_| !member.stopped) {
                member.vitals.feel(pid, now);
            }
        }
        Ok(())
    }

    fn start(&mut self, number: usize, place: &Place) -> Outcome<(Child, Option<ChildStdin>)> {
        self.started += 1;
        let (cast, role) = (&self.cast, &self.cast.roles[number]);
        let (name, millis) = (&role.name, |time: Duration| time.as_millis().to_string());
        let log = |what: &str| self.logs().join(format!("{}-{name}.{what}", self.started));
        let mut command = Command::new(crate::beside("candidate")?);
        command.args(["--store", &place.url(number), "--node", name, "--ttl-ms", &millis(role.ttl)]);
        command.arg("--log").arg(log("log")).arg("--register").arg(self.register());
        command.args(["--write-every-ms", &millis(cast.write_every)]);
        command.args(["--watch-every-ms", &millis(cast.watch_every)]);
        if role.part == Part::Everything {
            command.args(["--election", cast.election]);
        }
        if role.part != Part::Worker {
            command.arg("--coordinate");
        }
        if role.part != Part::Coordinator {
            command.args(["--task-list", TASK_LIST]);
        }
        if number % 2 == 1 {
            command.arg("--lead");
        }
        if self.blind {
            command.arg("--blind");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log("stderr"))?);
        let mut child = command.spawn()?;
        let mouth = child.stdout.take().ok_or("a child has a mouth")?;
        self.journal.listen(child.id(), mouth);
        let ear = child.stdin.take();
        Ok((child, ear))
    }

    /// Whether they do not ask their check.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Has a process look at all that it holds, and waits until it has. Whether it runs.
    pub fn looks(&self, pid: u32) -> bool {
        let member = self.members.iter().find(|member| member.pid() == Some(pid) && !member.stopped);
        let ear = member.and_then(|member| member.process.as_ref()?.1.as_ref());
        let pongs = |events: &[Event]| events.iter().filter(|event| event.is("pong", pid)).count();
        let before = pongs(&self.journal.all());
        // It may just have ended.
        let Some(Ok(())) = ear.map(|mut ear| writeln!(ear, "ping")) else { return false };
        self.journal.wait("it answers", |events| (pongs(events) > before).then_some(()));
        true
    }

    /// What this one is called.
    pub fn name(&self, number: usize) -> &str {
        &self.members[number].name
    }

    /// Whoever runs and was not stopped.
    pub fn up(&self) -> Vec<u32> {
        self.members.iter().filter(|member| !member.stopped).filter_map(Member::pid).collect()
    }

    pub fn leader(&self) -> Option<Event> {
        incumbent(&self.journal.all(), self.cast.election, &self.up())
    }

    /// Says something to the leader, if there is one.
    pub fn order_leader(&mut self, orders: &[&str]) -> Option<String> {
        let leader = self.leader()?;
        let member = self.members.iter_mut().find(|member| member.pid() == Some(leader.pid))?;
        let (_, ear) = member.process.as_mut()?;
        for order in orders {
            // It may just have ended.
            let _ = writeln!(ear.as_mut()?, "{order}");
        }
        Some(member.name.clone())
    }

    /// Whether it has joined the others, and was not told to leave them.
    pub fn is_back(&self, number: usize) -> bool {
        let member = &self.members[number];
        !member.leaving && member.pid().is_some_and(|pid| self.journal.heard("joined", pid))
    }

    /// What whoever lived longest took of the machine.
    pub fn growth(&self) -> String {
        let longest = self.members.iter().max_by_key(|member| member.vitals.span());
        longest.map_or_else(String::new, |member| format!("{}: {}", member.name, member.vitals.growth()))
    }

    /// Ends everybody in good order.
    pub fn dismiss(&mut self) -> Outcome<()> {
        for member in &mut self.members {
            member.go_on();
            member.leave();
        }
        let end = clock::now() + PATIENCE;
        for member in &mut self.members {
            while let Some((child, _)) = &mut member.process {
                if child.try_wait()?.is_some() {
                    member.process = None;
                } else if clock::now() > end {
                    return Err(format!("{} does not end within {PATIENCE:?}", member.name).into());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Leaves the logs where they are.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory.path().to_owned()
    }
}

impl Member {
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|(child, _)| child.id())
    }

    pub fn rest_for(&mut self, time: Duration) {
        self.start_at = clock::now() + time;
    }

    /// Whether there was somebody to kill.
    pub fn kill(&mut self, rest: Duration) -> bool {
        let Some((mut child, _)) = self.process.take() else { return false };
        signals::kill(&mut child);
        self.stopped = false;
        self.rest_for(rest);
        true
    }

    /// Tells it to end in good order, as soon as it hears that.
    pub fn leave(&mut self) {
        if let Some((_, ear)) = &mut self.process {
            drop(ear.take());
            self.leaving = true;
        }
    }

    /// Stops it, but not inside a transaction on a file: that keeps the file from everybody, and is a limit of such
    /// a store, not of Tenure.
    pub fn stop(&mut self) -> bool {
        let Some((child, _)) = self.process.as_mut() else { return false };
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        tenure_testkit::freeze(child.id());
        self.stopped = true;
        true
    }

    pub fn go_on(&mut self) {
        if let Some((child, _)) = &self.process
            && std::mem::take(&mut self.stopped)
        {
            signals::go_on(child);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.kill(Duration::ZERO);
        }
    }
}
