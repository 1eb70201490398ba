//! Nodes of our own, for `demo` and `bench`: real `tenure node` processes, which die with us.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_store::clock;

use crate::failure::Failure;
use crate::severed::CUT;

/// How long nodes may take to leave before they are killed.
const FAREWELL: Duration = Duration::from_secs(3);

const NAMES: [&str; 12] =
    ["anna", "ben", "clara", "dora", "emil", "frieda", "gustav", "hanna", "ida", "jonas", "klara", "lukas"];

/// What was done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plight {
    /// Nothing.
    Runs,
    /// Killed with -9.
    Killed,
    /// Stopped with SIGSTOP.
    Stopped,
    /// Cut off from the store.
    Cut,
}

pub struct Actor {
    pub name: String,
    pub plight: Plight,
    child: Child,
    /// While it exists, the node does not reach the store.
    cut: PathBuf,
}

pub struct Crew {
    pub actors: Vec<Actor>,
    directory: PathBuf,
    store: String,
    election: String,
    ttl: Duration,
    /// What whoever wants to give the nodes orders must show.
    pub token: String,
}

impl Crew {
    /// Nobody yet. What they say, and their token, is kept in the directory.
    pub fn new(directory: &Path, store: String, election: &str, ttl: Duration) -> Result<Self, Failure> {
        let (directory, election) = (directory.to_owned(), election.to_owned());
        let token = format!("{:08x}{:08x}", random(), random());
        std::fs::write(directory.join("token"), &token)?;
        Ok(Self { actors: Vec::new(), directory, store, election, ttl, token })
    }

    /// Starts one more; its name.
    ///
    /// The thread that calls must live as long as the process: a child's life hangs from it.
    pub fn add(&mut self) -> Result<String, Failure> {
        let number = self.actors.len();
        let name =
            NAMES.get(number).map_or_else(|| format!("node-{}", number + 1), |name| (*name).to_owned());
        let cut = self.directory.join(format!("{name}.cut"));
        let child = self.spawn(&name, &cut)?;
        self.actors.push(Actor { name: name.clone(), plight: Plight::Runs, child, cut });
        Ok(name)
    }

    fn spawn(&self, name: &str, cut: &Path) -> Result<Child, Failure> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENURE_"))
        {
            command.env_remove(name);
        }
        let log = File::create(self.directory.join(format!("{name}.log")))?;
        command
            .args(["node", "--node", name, "--election", &self.election, "--listen", "127.0.0.1:0", "--ttl"])
            .arg(humantime::format_duration(self.ttl).to_string())
            .arg("--token-file")
            .arg(self.directory.join("token"))
            // Not as an argument: everybody reads command lines, and there may be a password in it.
            .env("TENURE_STORE", &self.store)
            .env(CUT, cut)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C is for us: we take our nodes down in good order.
            .process_group(0);
        tenure_sys::bind_to_us(&mut command);
        command.spawn().map_err(Failure::system)
    }

    pub fn get(&mut self, name: &str) -> Option<&mut Actor> {
        self.actors.iter_mut().find(|actor| actor.name == name)
    }

    /// Those to whom this was done.
    pub fn names(&self, plight: Plight) -> Vec<String> {
        self.actors.iter().filter(|actor| actor.plight == plight).map(|actor| actor.name.clone()).collect()
    }

    pub fn kill(&mut self, name: &str) {
        if let Some(actor) = self.get(name) {
            actor.signal(Signal::KILL);
            // It is dead already; this takes note of it.
            let _ = actor.child.wait();
            actor.plight = Plight::Killed;
        }
    }

    pub fn stop(&mut self, name: &str) {
        if let Some(actor) = self.get(name) {
            actor.signal(Signal::STOP);
            actor.plight = Plight::Stopped;
        }
    }

    pub fn cut(&mut self, name: &str) -> Result<(), Failure> {
        if let Some(actor) = self.get(name) {
            File::create(&actor.cut)?;
            actor.plight = Plight::Cut;
        }
        Ok(())
    }

    /// Whatever was done to it is undone.
    pub fn restore(&mut self, name: &str) -> Result<(), Failure> {
        let Some(index) = self.actors.iter().position(|actor| actor.name == name) else { return Ok(()) };
        match self.actors[index].plight {
            Plight::Runs => {}
            Plight::Killed => self.actors[index].child = self.spawn(name, &self.actors[index].cut)?,
            Plight::Stopped => self.actors[index].signal(Signal::CONT),
            Plight::Cut => std::fs::remove_file(&self.actors[index].cut)?,
        }
        self.actors[index].plight = Plight::Runs;
        Ok(())
    }

    /// A node that has ended although nobody killed it, and its last word.
    pub fn lost(&mut self) -> Option<String> {
        let ended = |actor: &mut Actor| {
            actor.plight != Plight::Killed && matches!(actor.child.try_wait(), Ok(Some(_)))
        };
        let actor = self.actors.iter_mut().find_map(|actor| ended(actor).then_some(actor))?;
        let log = std::fs::read_to_string(self.directory.join(format!("{}.log", actor.name)));
        let last = log.ok().and_then(|log| log.lines().last().map(str::to_owned)).unwrap_or_default();
        Some(format!("node `{}` has ended by itself: {last}", actor.name))
    }

    /// All leave, the leader last: nobody has to take over from anybody.
    pub fn end(&mut self, leader: Option<&str>) {
        self.actors.sort_by_key(|actor| Some(actor.name.as_str()) == leader);
        for actor in &mut self.actors {
            let _ = std::fs::remove_file(&actor.cut);
            if actor.plight == Plight::Stopped {
                actor.signal(Signal::CONT);
            }
            actor.signal(Signal::TERM);
            actor.leave();
        }
        self.actors.clear();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for actor in &mut self.actors {
            let _ = actor.child.kill();
            let _ = actor.child.wait();
        }
    }
}

impl Actor {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&mut self, which: Signal) {
        // Reaped: its number may be another's by now.
        if matches!(self.child.try_wait(), Ok(None))
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, which);
        }
    }

    fn leave(&mut self) {
        let end = clock::now() + FAREWELL;
        while matches!(self.child.try_wait(), Ok(None)) {
            if clock::now() >= end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// For names that nobody else has.
pub fn random() -> u32 {
    getrandom::u32().unwrap_or_else(|_| std::process::id())
}
