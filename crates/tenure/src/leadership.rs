//! Leadership: the proof that this process leads, for as long as it does.

use std::fmt;
use std::sync::Arc;

use tenure_core::{ElectionName, NodeId, Reason, Term};
use tenure_store::Lease;
use tokio_util::sync::CancellationToken;

use crate::error::{NotLeader, TransferError};
use crate::link::{Command, Link};
use crate::office::Office;

/// This process leads an election under a term, or has led it. Clones are cheap, and all speak of
/// the same term.
///
/// Obtained from [`Election::elected`](crate::Election::elected), it also stands for the work
/// that is done under it: **dropping the last clone says that the work has stopped**, and gives
/// the lease back in the background. The same holds after a loss: as long as a clone is alive,
/// this node gives nothing back and does not stand again.
/// Inside [`Election::lead`](crate::Election::lead) the end of the task says so instead.
#[derive(Clone)]
pub struct Leadership {
    seat: Arc<Seat>,
}

struct Seat {
    office: Arc<Office>,
    link: Arc<Link>,
    /// The work's end, if it is the end of this handle.
    duty: Option<Duty>,
}

/// Work under an office. When it is dropped, the work has stopped.
pub(crate) struct Duty {
    office: Arc<Office>,
    link: Arc<Link>,
}

impl Duty {
    pub(crate) const fn new(office: Arc<Office>, link: Arc<Link>) -> Self {
        Self { office, link }
    }

    fn stopped(&self) {
        // The work of a forked child is not the work that was elected.
        if !self.office.forked() {
            let _ = self.office.surrender(); // an office that was lost keeps the reason of its loss
            let (election, id) = (self.office.election.clone(), self.office.id);
            self.link.tell(Command::Stopped { election, id });
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        self.stopped();
    }
}

impl Leadership {
    /// A handle whose last clone is the end of the work.
    pub(crate) fn by_hand(office: Arc<Office>, link: Arc<Link>) -> Self {
        let duty = Some(Duty::new(Arc::clone(&office), Arc::clone(&link)));
        Self { seat: Arc::new(Seat { office, link, duty }) }
    }

    /// A handle for work whose end is told by its task.
    pub(crate) fn supervised(office: Arc<Office>, link: Arc<Link>) -> Self {
        Self { seat: Arc::new(Seat { office, link, duty: None }) }
    }

    /// The term, if this process leads at this instant.
    ///
    /// It compares the boot clock with the session's deadline: no I/O, no lock, and right even if
    /// the thread that renews the session is starved, stopped or dead. Once it has failed it never
    /// succeeds again. What it cannot know is how long your process pauses after it: hand the term
    /// to whatever you write to, and let that refuse lower ones ([`Fence`](crate::Fence)).
    ///
    /// # Errors
    /// [`NotLeader`] with the reason. In a forked child it always fails.
    pub fn check(&self) -> Result<Term, NotLeader> {
        self.seat.office.check()
    }

    /// The term that was granted, whether or not it is over: the fencing token.
    #[must_use]
    pub fn term(&self) -> Term {
        self.seat.office.term
    }

    /// The election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.seat.office.election
    }

    /// The lease as a store's fenced transactions want it.
    #[must_use]
    pub fn lease(&self) -> Lease {
        let office = &self.seat.office;
        Lease { session: office.session, election: office.election.clone(), term: office.term }
    }

    /// Waits until leadership is over, and says why.
    ///
    /// # Cancel safety
    /// Safe: dropping the future changes nothing.
    pub async fn lost(&self) -> Reason {
        let office = &self.seat.office;
        office.lost().cancelled().await;
        office.reason().unwrap_or(Reason::Lapsed)
    }

    /// A token that is cancelled the moment leadership is over. Cancelling it yourself changes
    /// nothing for others.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.seat.office.lost().child_token()
    }

    /// Gives leadership up, for whoever comes first. If this node stands again at once, that may
    /// be this node: to be sure of a successor, [`transfer`](Leadership::transfer).
    ///
    /// The check fails from the first poll on. Of a leadership from
    /// [`elected`](crate::Election::elected), this call **says that your work has stopped**: call
    /// it after that. It resolves once the lease is given back on the store (or has lapsed, if the
    /// store cannot be reached).
    ///
    /// Inside [`lead`](crate::Election::lead), it resolves as soon as the check fails, so that the
    /// work may call it: the work is cancelled and joined, then the lease is given back, then
    /// `lead` returns.
    ///
    /// # Errors
    /// [`NotLeader`] if there was nothing to give up.
    ///
    /// # Cancel safety
    /// Once polled, the resignation goes on even if the future is dropped.
    pub async fn resign(&self) -> Result<(), NotLeader> {
        self.seat.give_up(None).await
    }

    /// Hands leadership over to a named candidate, in the manner of
    /// [`resign`](Leadership::resign). The lease is kept for that candidate for one ttl.
    ///
    /// # Errors
    /// [`TransferError`]; all but `NotLeader` and `Closed` leave leadership untouched.
    ///
    /// # Cancel safety
    /// Dropped before the store has said who stands: nothing happens. Dropped later: the
    /// hand-over goes on.
    pub async fn transfer<N>(&self, to: N) -> Result<(), TransferError>
    where
        N: TryInto<NodeId>,
        TransferError: From<N::Error>,
    {
        let to = to.try_into()?;
        let seat = &self.seat;
        self.check()?;
        let election = seat.office.election.clone();
        let answer = seat.link.ask(|answer| Command::Candidates(election, answer)).await;
        let candidates = answer.map_err(TransferError::Closed)??;
        if !candidates.iter().any(|candidate| candidate.node == to) {
            let names: Vec<_> = candidates.iter().map(|candidate| candidate.node.as_str()).collect();
            let candidates = if names.is_empty() { String::from("none") } else { names.join(", ") };
            return Err(TransferError::NotStanding { to, candidates });
        }
        Ok(seat.give_up(Some(to)).await?)
    }

    /// Says that the work has stopped, as dropping the last clone does: for those who cannot tell
    /// when that will be. Leadership, if it was not over, is. Does nothing inside `lead`.
    pub fn stopped(&self) {
        if let Some(duty) = &self.seat.duty {
            duty.stopped();
        }
    }

    /// Writes to the application's own tables in the store's SQLite file, if and only if this
    /// process leads.
    ///
    /// The lease is checked inside the transaction, so what is committed was written by the
    /// leader of this term, however long the process paused. `work` runs on a thread of the store;
    /// while it runs no session can be renewed, so keep it short.
    ///
    /// # Errors
    /// [`TransactionError`](crate::TransactionError).
    ///
    /// # Cancel safety
    /// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
    #[cfg(feature = "sqlite")]
    pub async fn transaction<T, E, W>(&self, work: W) -> Result<T, crate::TransactionError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        W: FnOnce(&tenure_sqlite::rusqlite::Transaction<'_>) -> Result<T, E> + Send + 'static,
    {
        self.check()?;
        let store = self.seat.link.store.as_any().downcast_ref::<tenure_sqlite::SqliteStore>();
        let store = store.ok_or(crate::TransactionError::NotSql)?;
        let office = Arc::clone(&self.seat.office);
        let still = move || office.check().is_ok();
        Ok(store.transaction(self.lease(), still, work).await?)
    }

    /// Writes to the application's own tables in the store's PostgreSQL database, if and only if this
    /// process leads: what `transaction` is on SQLite, for a database that is reached over a network, so
    /// the work is async.
    ///
    /// The lease is locked inside the transaction: nobody else is granted it before the work is
    /// committed or rolled back. So keep it short.
    ///
    /// # Errors
    /// [`TransactionError`](crate::TransactionError).
    ///
    /// # Cancel safety
    /// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
    #[cfg(feature = "postgres")]
    pub async fn postgres_transaction<T, E>(
        &self,
        work: impl AsyncFnOnce(&tenure_postgres::tokio_postgres::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, crate::TransactionError<E>> {
        self.check()?;
        let store = self.seat.link.store.as_any().downcast_ref::<tenure_postgres::PostgresStore>();
        let store = store.ok_or(crate::TransactionError::NotSql)?;
        let office = Arc::clone(&self.seat.office);
        Ok(store.transaction(self.lease(), || office.check().is_ok(), work).await?)
    }
}

impl Seat {
    async fn give_up(&self, to: Option<NodeId>) -> Result<(), NotLeader> {
        self.office.surrender()?;
        let (election, id) = (self.office.election.clone(), self.office.id);
        let stopped = self.duty.is_some();
        self.link.tell(Command::Resign { election: election.clone(), id, to, stopped });
        if stopped {
            // No driver means that the session is over, and the lease with it.
            let _ = self.link.ask(|done| Command::Released { election, id, done }).await;
        }
        Ok(())
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("election", self.election())
            .field("term", &self.term())
            .field("check", &self.check())
            .finish()
    }
}

impl From<std::convert::Infallible> for TransferError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
