//! A keeper: where the guardian looks after several programs, each has one for a parent. Whatever loses its parent
//! below a keeper becomes the keeper's own child, so that it is known to which program it belongs.
//!
//! It starts the program, tells the guardian how that went and how it ended, and leaves when nothing of the tree is
//! left. It decides nothing, and dies with its guardian.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;

use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};
use tenure::Instant;
use tenure_store::clock;

use super::cgroup;
use super::orders::{End, Ward};
use crate::output;

/// The word on the command line that makes this program a keeper. It is not for people.
pub const WORD: &str = "__keeper";
/// Stands for no control group.
const NO_CGROUP: &str = "-";

/// What a keeper says to its guardian, each in a line of its own that is written at one stroke.
#[derive(Debug, Serialize, Deserialize)]
pub struct Word {
    pub ward: Ward,
    pub said: Said,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Said {
    /// The program runs, as this process.
    Started(i32),
    /// It could not be started; the system's number for it.
    Refused(i32),
    /// What it was to run under had ended before.
    TooLate,
    /// It has ended; its tree may still be there.
    Ended(End),
}

/// How a keeper is told what to do.
pub struct Errand<'a> {
    /// Where it speaks to the guardian.
    pub line: BorrowedFd<'a>,
    pub ward: Ward,
    /// The process group that the program joins.
    pub group: i32,
    /// Later than that the program is not started.
    pub until: Instant,
    /// The program's control group.
    pub cgroup: Option<&'a Path>,
}

impl Errand<'_> {
    /// A keeper of this program.
    pub fn command(&self, program: impl Iterator<Item = OsString>) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tenure").args([WORD, &self.line.as_raw_fd().to_string(), &self.ward.to_string()]);
        command.args([self.group.to_string(), self.until.as_nanos().to_string()]);
        command.arg(self.cgroup.unwrap_or(Path::new(NO_CGROUP))).args(program);
        command
    }
}

/// The whole life of a keeper process, with the words that follow its own.
pub fn keep(words: impl Iterator<Item = OsString>) -> ExitCode {
    match Keeper::begin(words).and_then(Keeper::live) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("tenure: the keeper of a program has failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Keeper {
    line: File,
    ward: Ward,
    group: i32,
    until: Instant,
    cgroup: Option<PathBuf>,
    program: Vec<OsString>,
}

impl Keeper {
    fn begin(mut words: impl Iterator<Item = OsString>) -> io::Result<Self> {
        fn number<T: FromStr>(word: Option<OsString>) -> io::Result<T> {
            let number = word.and_then(|word| word.to_str()?.parse().ok());
            number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
        }
        let line = File::from(tenure_sys::adopt(number(words.next())?)?);
        set_child_subreaper(Some(getpid()))?;
        super::guardian::outlive_signals()?;
        Ok(Self {
            line,
            ward: number(words.next())?,
            group: number(words.next())?,
            until: Instant::from_nanos(number(words.next())?),
            cgroup: words.next().filter(|group| group != NO_CGROUP).map(PathBuf::from),
            program: words.collect(),
        })
    }

    fn live(mut self) -> io::Result<()> {
        if clock::now() >= self.until {
            return self.say(Said::TooLate);
        }
        let mut words = std::mem::take(&mut self.program).into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).process_group(self.group);
        tenure_sys::bind_to_us(&mut command);
        let program = match cgroup::spawn(&mut command, self.cgroup.as_deref()) {
            Ok(child) => child.as_raw_nonzero().get(),
            Err(error) => return self.say(Said::Refused(error.raw_os_error().unwrap_or(0))),
        };
        self.say(Said::Started(program))?;
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                    if let Some(end) = End::of(status) {
                        self.say(Said::Ended(end))?;
                    }
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn say(&mut self, said: Said) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Word { ward: self.ward, said })?;
        line.push(b'\n');
        self.line.write_all(&line)
    }
}
