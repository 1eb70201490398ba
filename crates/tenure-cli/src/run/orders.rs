//! What supervisor and guardian say to each other: lines of JSON over a socket that only they have.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Held, Instant, SessionId};

/// From the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// The first one: who we are, and how the guardian would reach the store on our behalf.
    Hello(Hello),
    /// What is held, and until when: after every renewal.
    Held(Tenancy),
    /// Start the program under this lease.
    Start(Start),
    /// Pass a signal on to the program.
    Signal(i32),
    /// Stop the tree: SIGTERM now, SIGKILL after the grace (or earlier, if the lease ends).
    Stop {
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
    /// Its process group, which the program joins: a terminal's signals reach both.
    pub group: i32,
    /// `None`: the default store.
    pub store: Option<String>,
    pub namespace: String,
    /// From the end of a lease until SIGKILL.
    pub patience: Duration,
    /// How long what the program leaves behind may take to stop.
    pub grace: Duration,
    /// Whether the program gets a control group of its own, if possible.
    pub cgroup: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
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
pub enum Report {
    /// The program runs.
    Started { pid: u32 },
    /// The program could not be started; the system's number for it.
    Refused { errno: i32 },
    /// The lease had ended before the program could be started.
    TooLate,
    /// The program has ended, and nothing of its tree is left.
    Ended {
        end: End,
        /// The guardian ended it, because its lease was over.
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
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}
