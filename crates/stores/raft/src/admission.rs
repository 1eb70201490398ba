//! Admission: how many connections of each kind there may be, so that none of them shuts out another.
//!
//! A connection begins as a handshake. When there are too many of those, the oldest is closed: an honest one
//! takes milliseconds, so however many stall, members and clients get through. The first request decides what
//! it counts as: clients and members have limits of their own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// What connections may use up. The numbers are far above what a healthy group needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections whose first request has not come yet. One process that claims a thousand leases at once opens a
    /// thousand, so there may be many honest ones.
    pub handshakes: usize,
    /// Connections of those who use the group. Others are told so, and try another member.
    pub clients: usize,
    /// Connections of members.
    pub members: usize,
    /// How long it may take until the first request is there.
    pub handshake: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long the other side may take to read an answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes: 2048,
            clients: 2048,
            members: 256,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            answer: Duration::from_secs(30),
        }
    }
}

/// Counts the connections of one member.
pub(crate) struct Admission {
    pub limits: Limits,
    /// One sender per handshake, oldest first. Dropping it closes the connection.
    handshakes: Mutex<VecDeque<oneshot::Sender<()>>>,
    clients: Arc<Semaphore>,
    members: Arc<Semaphore>,
}

/// A connection that was let in. The limit has room again when this is dropped.
pub(crate) struct Admitted {
    _permit: OwnedSemaphorePermit,
    is_member: bool,
}

impl Admission {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            handshakes: Mutex::default(),
            clients: Arc::new(Semaphore::new(limits.clients)),
            members: Arc::new(Semaphore::new(limits.members)),
        }
    }

    /// Counts a handshake until the receiver is dropped. It resolves when the handshake has to make room for
    /// newer ones.
    pub(crate) fn begin_handshake(&self) -> oneshot::Receiver<()> {
        let (close, closed) = oneshot::channel();
        let mut handshakes = self.handshakes.lock().expect("nobody panics over the handshakes");
        if handshakes.len() >= self.limits.handshakes {
            handshakes.retain(|handshake| !handshake.is_closed());
        }
        if handshakes.len() >= self.limits.handshakes {
            handshakes.pop_front();
        }
        handshakes.push_back(close);
        closed
    }

    /// What a connection counts as after a request. One of a client becomes one of a member when it asks what
    /// only members ask: a process that is both uses the same connections for both.
    pub(crate) fn admit(&self, before: Option<Admitted>, is_member: bool) -> Option<Admitted> {
        let take = |limit: &Arc<Semaphore>, is_member| {
            let permit = Arc::clone(limit).try_acquire_owned().ok()?;
            Some(Admitted { _permit: permit, is_member })
        };
        match before {
            Some(admitted) if admitted.is_member || !is_member => Some(admitted),
            before if is_member => take(&self.members, true).or(before),
            _ => None,
        }
        .or_else(|| take(&self.clients, false))
    }
}
