//! Leadership: the proof that this process leads, for as long as it does.

use std::fmt;
use std::sync::{Arc, Mutex};

use tenure_core::{ElectionName, NodeId, Reason, Term};
use tenure_store::{Cause, Lease};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;

use crate::election::Contest;
use crate::error::{NotLeader, TransferError};
use crate::link::{Command, Link};
use crate::office::{Office, lock};

/// This process leads an election under a term, or has led it. Clones are cheap, and all speak of
/// the same term.
///
/// Obtained from [`Election::elected`](crate::Election::elected), it also stands for the work
/// that is done under it: **dropping the last clone says that the work has stopped**, and gives
/// the lease back in the background. The same holds after a loss: as long as a clone is alive,
/// this node gives nothing back and does not stand again.
/// Inside [`Election::lead`](crate::Election::lead) the end of the task says so instead.
/// Work that was let through a [`Gate`](crate::Gate) counts as well.
#[derive(Clone)]
pub struct Leadership {
    seat: Arc<Seat>,
}

struct Seat {
    office: Arc<Office>,
    link: Arc<Link>,
    /// Whether the end of this handle is the end of the work, and not that of a task.
    by_hand: bool,
    /// What this handle is in charge of, until it says that it has stopped.
    charge: Mutex<Option<Charge>>,
}

/// Work under an office, shared by all who do a part of it: the handle or the task, and whatever was
/// let through a gate. When it is dropped, the work has stopped.
pub(crate) struct Duty {
    office: Arc<Office>,
    contest: Arc<Contest>,
    /// From the grant until all work has stopped.
    span: Span,
}

impl Duty {
    pub(crate) const fn office(&self) -> &Arc<Office> {
        &self.office
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        // The work of a forked child is not the work that was elected.
        if !self.office.forked() {
            let (election, id) = (self.office.election.clone(), self.office.id);
            self.contest.link.tell(Command::Stopped { election, id });
            self.office.stopped();
            self.span.record("reason", self.office.reason().map(Reason::name));
        }
    }
}

/// The share of whoever is in charge: a handle, a task, a supervisor. When it is dropped, the guard is closed,
/// and nobody else is let in, whoever may still be stopping.
pub(crate) struct Charge(Arc<Duty>);

impl Charge {
    /// The work begins, and gates open.
    pub(crate) fn begin(office: &Arc<Office>, contest: &Arc<Contest>) -> Self {
        let span = tracing::info_span!(
            target: "tenure", "leadership", node = %contest.link.node, election = %office.election,
            term = office.term.number(), reason = Empty
        );
        let duty = Arc::new(Duty { office: Arc::clone(office), contest: Arc::clone(contest), span });
        contest.doorplate.seat(office, &duty);
        Self(duty)
    }

    /// The span of the term, for a task that works under it.
    pub(crate) fn span(&self) -> Span {
        self.0.span.clone()
    }

    /// A share for somebody else.
    pub(crate) fn share(&self) -> Arc<Duty> {
        Arc::clone(&self.0)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let office = &self.0.office;
        if !office.forked() {
            let _ = office.surrender(); // an office that was lost keeps the reason of its loss
        }
    }
}

impl Leadership {
    /// A handle whose last clone is the end of the work.
    pub(crate) fn by_hand(office: Arc<Office>, contest: &Arc<Contest>) -> Self {
        let charge = Mutex::new(Some(Charge::begin(&office, contest)));
        Self { seat: Arc::new(Seat { office, link: Arc::clone(&contest.link), by_hand: true, charge }) }
    }

    /// A handle for work whose end is told by its task.
    pub(crate) fn supervised(office: Arc<Office>, link: Arc<Link>) -> Self {
        Self { seat: Arc::new(Seat { office, link, by_hand: false, charge: Mutex::default() }) }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.seat.link
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
        if !self.seat.office.forked() {
            self.seat.put_down();
        }
    }

    /// Like [`stopped`](Leadership::stopped), and records in the election's history why the work ended: that the
    /// program which did it has failed, for instance. That is told as a loss, and not as a resignation. It changes
    /// nothing else: the lease is given back in the same way.
    pub fn stopped_because(&self, cause: Cause) {
        if !self.seat.office.forked() {
            self.seat.office.explain(cause);
            self.seat.put_down();
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
        let still = || office.check().is_ok();
        Ok(tenure_postgres::transaction(store, self.lease(), still, work).await?)
    }

    /// The same in the store's MySQL or MariaDB database. A statement that ends transactions, as most do that
    /// define tables, breaks it.
    ///
    /// # Errors
    /// [`TransactionError`](crate::TransactionError).
    ///
    /// # Cancel safety
    /// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
    #[cfg(feature = "mysql")]
    pub async fn mysql_transaction<T, E>(
        &self,
        work: impl AsyncFnOnce(&mut tenure_mysql::mysql_async::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, crate::TransactionError<E>> {
        self.check()?;
        let store = self.seat.link.store.as_any().downcast_ref::<tenure_mysql::MySqlStore>();
        let store = store.ok_or(crate::TransactionError::NotSql)?;
        let office = Arc::clone(&self.seat.office);
        let still = || office.check().is_ok();
        Ok(tenure_mysql::transaction(store, self.lease(), still, work).await?)
    }
}

impl Seat {
    async fn give_up(&self, to: Option<NodeId>) -> Result<(), NotLeader> {
        self.office.surrender()?;
        let (election, id) = (self.office.election.clone(), self.office.id);
        self.link.tell(Command::Resign { election: election.clone(), id, to });
        self.put_down();
        if self.by_hand {
            // No driver means that the session is over, and the lease with it.
            let _ = self.link.ask(|done| Command::Released { election, id, done }).await;
        }
        Ok(())
    }

    /// The work of this handle has stopped. It may not have been the last that was under way.
    fn put_down(&self) {
        let charge = lock(&self.charge).take();
        drop(charge);
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
