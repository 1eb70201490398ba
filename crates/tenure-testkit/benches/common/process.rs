//! Processes that a bench starts from its own binary, and what they say.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

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
        let mut child = Command::new(std::env::current_exe()?)
            .args([PART, name])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
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

    pub fn pid(&mut self, name: &str) -> Outcome<u32> {
        Ok(self.member(name)?.0.id())
    }

    pub fn order(&mut self, name: &str, order: &str) -> Outcome<()> {
        Ok(writeln!(self.member(name)?.1, "{order}")?)
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

    /// The next line that begins with this word; others are passed over.
    pub fn hear_word(&self, word: &str) -> Outcome<Said> {
        loop {
            let said = self.hear()?;
            if said.word == word {
                return Ok(said);
            }
        }
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

/// A line to the process that started this one. If that is gone, so is the reason to speak.
pub fn say(word: &str, rest: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{word} {rest}");
}
