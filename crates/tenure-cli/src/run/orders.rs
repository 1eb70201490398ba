//! What supervisor and guardian say to each other: lines of JSON over a socket that only they have.

use std::time::Duration;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};
use tenure::{Cause, Held, Instant, SessionId};

/// A run of a program, as supervisor and guardian call it: no two runs have the same number.
pub type Ward = u64;

/// From the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// The first one: who we are, and how the guardian would reach the store on our behalf.
    Hello(Hello),
    /// What is held, and until when: after every renewal.
    Held(Tenancy),
    /// Start a program under what is held.
    Start(Start),
    /// Pass a signal on to every program.
    Signal(i32),
    /// Stop a tree: SIGTERM now, SIGKILL after the grace (or earlier, if the session ends).
    Stop {
        /// Which.
        ward: Ward,
        /// How long that is.
        grace: Duration,
    },
    /// Everything is given back in order: leave.
    Dismissed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The supervisor's process.
    pub supervisor: i32,
    /// The process group that programs join: the supervisor's, so that a terminal's signals reach both; 0, without
    /// a terminal: one of their own.
    pub group: i32,
    /// `None`: the default store.
    pub store: Option<String>,
    pub namespace: String,
    /// From the end of a lease until SIGKILL.
    pub patience: Duration,
    /// How long what the program leaves behind may take to stop.
    pub grace: Duration,
    /// Whether a program gets a control group of its own, if possible.
    pub cgroup: bool,
    /// Whether there may be several programs at once. Each then has a keeper, so that their trees can be told apart.
    pub several: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    pub ward: Ward,
    pub program: Vec<Vec<u8>>,
    pub environment: Vec<(String, String)>,
    pub held: Tenancy,
}

/// [`Held`] on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenancy {
    /// `None` while there is no session.
    pub session: Option<(u64, u64)>,
    /// On the boot clock, in nanoseconds.
    pub until: u64,
}

impl Tenancy {
    pub fn session(&self) -> Option<SessionId> {
        self.session.map(|(high, low)| SessionId::from_u128(u128::from(high) << 64 | u128::from(low)))
    }

    pub fn until(&self) -> Instant {
        Instant::from_nanos(self.until)
    }
}

impl From<Held> for Tenancy {
    fn from(held: Held) -> Self {
        let halves = |id: SessionId| ((id.as_u128() >> 64) as u64, id.as_u128() as u64);
        Self { session: held.session.map(halves), until: held.until.as_nanos() }
    }
}

/// From the guardian.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub ward: Ward,
    pub what: Happened,
}

/// What became of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Happened {
    /// It runs.
    Started { pid: u32 },
    /// It could not be started; the system's number for it.
    Refused { errno: i32 },
    /// What was held had ended before it could be started.
    TooLate,
    /// It has ended, and nothing of its tree is left.
    Ended {
        end: End,
        /// The guardian ended it, because what it ran under was over.
        lapsed: bool,
    },
    /// These processes cannot be killed: they belong to somebody else.
    Immune { pids: Vec<i32> },
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Code(i32),
    Signal(i32),
}

impl End {
    /// How a process ended, if it has.
    pub fn of(status: WaitStatus) -> Option<Self> {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Self::Code(code)),
            (_, signal) => signal.map(Self::Signal),
        }
    }

    /// The same for the history.
    pub fn cause(self) -> Cause {
        match self {
            Self::Code(code) => Cause::ProgramExited(code),
            Self::Signal(signal) => Cause::ProgramKilled(signal),
        }
    }

    /// As shells tell it.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => u8::try_from(code).unwrap_or(1),
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(255),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
        }
    }
}
