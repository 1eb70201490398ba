//! The `tenure run` processes, and who belongs to them.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure_core::Instant;
use tenure_store::clock;

use crate::{Outcome, program};

pub const TTL: Duration = Duration::from_millis(1500);
const ELECTION: &str = "torture";
/// Longer than an orderly end takes on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Crew {
    tenure: PathBuf,
    directory: Option<TempDir>,
    place: PathBuf,
    pub members: Vec<Member>,
}

/// A place for one `tenure run`.
pub struct Member {
    name: String,
    process: Option<Child>,
    /// Started again then, if it has ended.
    start_at: Instant,
    /// Somebody of it is stopped until then. One at a time: whoever stops or kills both supervisor and
    /// guardian has taken away everybody who could end the program.
    pub stopped: Option<(Vec<Pid>, Instant)>,
}

impl Crew {
    pub fn assemble(tenure: PathBuf, count: usize) -> Outcome<Self> {
        let directory = TempDir::new()?;
        let place = directory.path().to_owned();
        let members = (0..count).map(|number| Member {
            name: format!("n{number}"),
            process: None,
            start_at: Instant::ZERO,
            stopped: None,
        });
        Ok(Self { tenure, directory: Some(directory), place, members: members.collect() })
    }

    pub fn log(&self) -> PathBuf {
        self.place.join("beats.log")
    }

    /// Starts who has ended, and wakes who has been stopped for long enough.
    pub fn mend(&mut self) -> Outcome<()> {
        let now = clock::now();
        for number in 0..self.members.len() {
            if let Some((pids, _)) = self.members[number].stopped.take_if(|(_, until)| *until <= now) {
                wake(&pids);
            }
            let member = &mut self.members[number];
            if let Some(child) = &mut member.process
                && child.try_wait()?.is_some()
            {
                member.process = None;
            }
            if self.members[number].process.is_none() && self.members[number].start_at <= now {
                let child = self.start(number)?;
                self.members[number].process = Some(child);
            }
        }
        Ok(())
    }

    fn start(&self, number: usize) -> Outcome<Child> {
        let name = &self.members[number].name;
        let said = File::options().create(true).append(true).open(self.place.join(format!("{name}.said")))?;
        let mut command = self.tenure();
        command
            .args(["run", "--election", ELECTION, "--node", name, "--grace", "200ms", "--restart", "always"])
            .args(["--ttl", &format!("{}ms", TTL.as_millis()), "--"])
            .arg(std::env::current_exe()?)
            .arg(program::WORD)
            .arg(self.log())
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said);
        Ok(command.spawn()?)
    }

    /// The command on our store.
    fn tenure(&self) -> Command {
        let mut command = Command::new(&self.tenure);
        command.env("TENURE_STORE", format!("sqlite:{}", self.place.join("tenure.db").display()));
        command
    }

    /// Somebody asks the leader to make way, and we do not wait for what comes of it.
    pub fn ask_to_resign(&self) -> Outcome<()> {
        let mut command = self.tenure();
        command.args(["resign", ELECTION, "--timeout", "3s"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// Ends everybody in order.
    pub fn dismiss(&mut self) -> Outcome<()> {
        for member in &mut self.members {
            if let Some((pids, _)) = member.stopped.take() {
                wake(&pids);
            }
            if let Some(pid) = member.supervisor() {
                kill_process(pid, Signal::TERM)?;
            }
        }
        let end = clock::now() + PATIENCE;
        for member in &mut self.members {
            while let Some(child) = &mut member.process {
                if child.try_wait()?.is_some() {
                    member.process = None;
                } else if clock::now() > end {
                    return Err(
                        format!("{} does not end within {PATIENCE:?} after SIGTERM", member.name).into()
                    );
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Leaves the logs where they are.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.take().map_or_else(|| self.place.clone(), TempDir::keep)
    }
}

impl Member {
    pub fn supervisor(&self) -> Option<Pid> {
        self.process.as_ref().and_then(|child| pid(child.id()))
    }

    pub fn guardian(&self) -> Option<Pid> {
        children(self.supervisor()?).into_iter().next()
    }

    pub fn program(&self) -> Option<Pid> {
        children(self.guardian()?).into_iter().next()
    }

    pub fn descendant(&self) -> Option<Pid> {
        children(self.program()?).into_iter().next()
    }

    pub fn rest_for(&mut self, time: Duration) {
        self.start_at = clock::now() + time;
    }
}

fn wake(pids: &[Pid]) {
    for pid in pids {
        // It may have been ended meanwhile: a new guardian replaces one that does not answer.
        let _ = kill_process(*pid, Signal::CONT);
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The direct children of a process that are alive.
fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    processes()
        .filter(|process| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
            fields.first() != Some(&"Z") && fields.get(1).and_then(|of| of.parse().ok()) == Some(parent)
        })
        .filter_map(pid)
        .collect()
}

/// The numbers of all processes.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
