//! Processes that a bench starts, mostly from its own binary, and what they say.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_store::clock;
use tenure_testkit::lan::Machine;

use super::{Outcome, PART};

/// Far beyond everything that is measured: reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A line of a process: a word, and the rest.
pub struct Said {
    pub by: String,
    pub word: String,
    pub rest: String,
}

impl Said {
    /// An instant of the boot clock, which all processes of a machine share.
    pub fn instant(&self) -> Outcome<tenure_core::Instant> {
        Ok(tenure_core::Instant::from_nanos(self.rest.parse()?))
    }
}

/// The processes of a bench. Whatever is left of them when it is dropped is killed.
pub struct Troupe {
    members: BTreeMap<String, (Child, ChildStdin)>,
    tell: Sender<Said>,
    told: Receiver<Said>,
}

impl Troupe {
    pub fn new() -> Self {
        let (tell, told) = channel();
        Self { members: BTreeMap::new(), tell, told }
    }

    /// Starts this binary with the words `part NAME ARGUMENTS…`.
    pub fn launch(&mut self, name: &str, arguments: &[&str]) -> Outcome<()> {
        self.admit(name, part(name, arguments)?)
    }

    /// Starts any program that speaks as ours do.
    pub fn admit(&mut self, name: &str, mut command: Command) -> Outcome<()> {
        self.adopt(name, piped(&mut command).spawn()?)
    }

    /// The same on a machine of its own.
    pub fn admit_on(&mut self, machine: &Machine, name: &str, mut command: Command) -> Outcome<()> {
        self.adopt(name, machine.within(move || piped(&mut command).spawn())?)
    }

    fn adopt(&mut self, name: &str, mut child: Child) -> Outcome<()> {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process has no pipes".into());
        };
        self.members.insert(name.to_owned(), (child, stdin));
        let (tell, by) = (self.tell.clone(), name.to_owned());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
                let said = Said { by: by.clone(), word: word.to_owned(), rest: rest.to_owned() };
                let _ = tell.send(said);
            }
        });
        Ok(())
    }

    fn member(&mut self, name: &str) -> Outcome<&mut (Child, ChildStdin)> {
        Ok(self.members.get_mut(name).ok_or_else(|| format!("there is no process {name}"))?)
    }

    /// Those that run.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.members.keys()
    }

    pub fn pid(&mut self, name: &str) -> Outcome<u32> {
        Ok(self.member(name)?.0.id())
    }

    pub fn order(&mut self, name: &str, order: &str) -> Outcome<()> {
        Ok(writeln!(self.member(name)?.1, "{order}")?)
    }

    /// Stops it, say, or has it go on.
    pub fn signal(&mut self, name: &str, signal: Signal) -> Outcome<()> {
        let pid = i32::try_from(self.pid(name)?).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// SIGKILL; when this returns, it does nothing any more.
    pub fn kill(&mut self, name: &str) -> Outcome<()> {
        let (mut child, _stdin) =
            self.members.remove(name).ok_or_else(|| format!("there is no process {name}"))?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// The next line of any process.
    pub fn hear(&self) -> Outcome<Said> {
        Ok(self.told.recv_timeout(PATIENCE)?)
    }

    /// The same, if it comes before this instant.
    pub fn hear_until(&self, end: tenure_core::Instant) -> Outcome<Option<Said>> {
        match self.told.recv_timeout(end.since(clock::now())) {
            Ok(said) => Ok(Some(said)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The next line that begins with this word; others are passed over.
    pub fn hear_word(&self, word: &str) -> Outcome<Said> {
        Ok(self.hear_within(PATIENCE, word)?.ok_or_else(|| format!("nobody says `{word}`"))?)
    }

    /// The same, if it comes in this time.
    pub fn hear_within(&self, time: Duration, word: &str) -> Outcome<Option<Said>> {
        let end = clock::now() + time;
        while let Some(said) = self.hear_until(end)? {
            if said.word == word {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// Has the leader resign, another lead, and the former one stand again; how long nobody did.
    pub fn hand_over(&mut self, leader: &mut String) -> Outcome<Duration> {
        self.order(leader, "resign")?;
        let (mut called, mut elected) = (None, None);
        let (called, (at, successor)) = loop {
            let said = self.hear()?;
            match said.word.as_str() {
                "resigned" => called = Some(said.instant()?),
                "leads" => elected = Some((said.instant()?, said.by)),
                other => return Err(format!("the lease was {other}: this machine is too busy").into()),
            }
            if let (Some(called), Some(elected)) = (called, elected.take_if(|_| called.is_some())) {
                break (called, elected);
            }
        };
        self.order(leader, "stand")?;
        *leader = successor;
        Ok(at.since(called))
    }

    /// What was said and not heard yet.
    pub fn rest(&self) -> Vec<Said> {
        self.told.try_iter().collect()
    }
}

impl Drop for Troupe {
    fn drop(&mut self) {
        for (child, _stdin) in self.members.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// This binary with the words `part NAME ARGUMENTS…`.
pub fn part(name: &str, arguments: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([PART, name]).args(arguments);
    Ok(command)
}

fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped())
}

/// A line to the process that started this one. If that is gone, so is the reason to speak.
pub fn say(word: &str, rest: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{word} {rest}");
}
