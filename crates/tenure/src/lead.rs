//! The usual form: work that runs while elected, is cancelled on loss, and is joined before the
//! lease is given up.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tenure_core::Reason;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::election::Election;
use crate::error::{ElectionError, Ending, LeadError};
use crate::leadership::{Charge, Leadership};
use crate::link::Command;
use crate::office::{Office, Stage};

impl Election {
    /// Stands, runs `work` while elected, and stands again whenever leadership is lost.
    ///
    /// `work` becomes a task on the caller's runtime. When leadership ends, its
    /// [`cancellation`](Leadership::cancellation) token is cancelled at once; if the task has not
    /// ended after its grace, it is aborted at its next await point. The lease is given back only
    /// after the task has ended. Tasks and threads that the work starts itself are its own to stop.
    ///
    /// | what happens | what follows |
    /// |---|---|
    /// | the work returns while it leads | the lease is given back, then `lead` returns the same |
    /// | leadership is lost | half the stop margin as grace; the result is discarded; `lead` stands again |
    /// | `resign`, `transfer`, [`Node::close`](crate::Node::close) | the node's grace; the lease is given back; `lead` returns what the work returned, or [`LeadError::CutOff`] |
    /// | somebody asks the leader to make way | the node's grace; the lease is given back; `lead` stands again, behind who waited |
    /// | the election is ended | the same, but `lead` returns [`ElectionError::Ended`] |
    /// | the work panics | the lease is given back, then the panic goes on in the caller |
    ///
    /// What the work captures is cloned for each run, because there may be several:
    ///
    #[cfg_attr(feature = "memory", doc = "```")]
    #[cfg_attr(not(feature = "memory"), doc = "```ignore")]
    /// use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = tenure::connect("memory:").await?;
    /// # let node = tenure::Node::builder("worker-1").start(store).await?;
    /// # let election = node.election("reports")?;
    /// let printer = Arc::new(String::from("printer-7"));
    /// let pages = election
    ///     .lead(move |leadership| {
    ///         let printer = Arc::clone(&printer);
    ///         async move {
    ///             let mut pages = 0;
    ///             while leadership.check().is_ok() && pages < 3 {
    ///                 println!("{printer} prints page {pages}");
    ///                 pages += 1;
    ///             }
    ///             Ok::<_, std::io::Error>(pages)
    ///         }
    ///     })
    ///     .await?;
    /// assert_eq!(pages, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A closure that captures nothing may be `async |leadership: Leadership| { … }`.
    ///
    /// # Errors
    /// [`LeadError::Work`] with the work's own error; otherwise why this node does not stand any
    /// more.
    ///
    /// # Cancel safety
    /// Dropping the future at any point ends the candidacy, or closes the guard and aborts the
    /// task; the lease is given back in the background, after the task has ended.
    pub async fn lead<W, F, T, E>(&self, mut work: W) -> Result<T, LeadError<E>>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let runtime = Handle::try_current().map_err(|_| ElectionError::NoRuntime)?;
        loop {
            let office = self.granted().await?;
            let charge = Charge::begin(&office, self.contest());
            let leadership = Leadership::supervised(Arc::clone(&office), Arc::clone(self.link()));
            let end = match catch_unwind(AssertUnwindSafe(|| work(leadership))) {
                Ok(work) => {
                    let work = Work { future: Box::pin(work), charge, office: Arc::clone(&office) };
                    Task::spawn(&runtime, work, &office).join().await
                }
                Err(panic) => {
                    drop(charge);
                    End::Panicked(panic)
                }
            };
            if let Some(outcome) = self.conclude(end, &office).await {
                return outcome;
            }
        }
    }

    /// What the end of the work means; `None`: stand again.
    async fn conclude<T, E>(&self, end: End<T, E>, office: &Office) -> Option<Result<T, LeadError<E>>> {
        let reason = office.reason().unwrap_or(Reason::Resigned);
        let willing = matches!(reason, Reason::Resigned | Reason::Closing);
        let outcome = match end {
            End::Returned(result) if willing => result.map_err(LeadError::Work),
            End::Panicked(panic) => {
                self.given_back(office).await;
                resume_unwind(panic)
            }
            End::Aborted if reason == Reason::Closing => {
                Err(LeadError::Election(ElectionError::Closed(Ending::Closed)))
            }
            End::Aborted if willing => Err(LeadError::CutOff),
            End::Returned(_) | End::Aborted if reason == Reason::Ended => {
                Err(LeadError::Election(ElectionError::Ended))
            }
            End::Returned(_) | End::Aborted => {
                // Whatever was let through a gate may be under way still.
                office.until(Stage::Stopped).await;
                return None;
            }
        };
        self.given_back(office).await;
        Some(outcome)
    }

    /// Waits until the lease is given back, or has lapsed.
    pub(crate) async fn given_back(&self, office: &Office) {
        let (election, id) = (office.election.clone(), office.id);
        // No driver means that the session is over, and the lease with it.
        let _ = self.link().ask(|done| Command::Released { election, id, done }).await;
    }
}

/// How the work ended.
enum End<T, E> {
    Returned(Result<T, E>),
    Aborted,
    Panicked(Box<dyn Any + Send>),
}

/// The work as a future that gives the office up the moment it returns. The order of the fields
/// matters: the work is dropped first, and then its duty, which says that it has stopped.
struct Work<F> {
    future: Pin<Box<F>>,
    charge: Charge,
    office: Arc<Office>,
}

impl<F: Future> Future for Work<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let output = std::task::ready!(self.future.as_mut().poll(context));
        // If this fails, leadership was lost before the work was done, and the office says why.
        let _ = self.office.surrender();
        Poll::Ready(output)
    }
}

/// The task of the work. Dropped before it was joined, it closes the guard and aborts the work.
struct Task<T, E> {
    handle: JoinHandle<Result<T, E>>,
    office: Arc<Office>,
    joined: bool,
}

impl<T: Send + 'static, E: Send + 'static> Task<T, E> {
    fn spawn<F>(runtime: &Handle, work: Work<F>, office: &Arc<Office>) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let span = work.charge.span();
        let handle = runtime.spawn(work.instrument(span));
        office.employ(handle.abort_handle());
        Self { handle, office: Arc::clone(office), joined: false }
    }

    async fn join(mut self) -> End<T, E> {
        let end = (&mut self.handle).await;
        self.joined = true;
        match end {
            Ok(result) => End::Returned(result),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => End::Panicked(panic),
                Err(_) => End::Aborted,
            },
        }
    }
}

impl<T, E> Drop for Task<T, E> {
    fn drop(&mut self) {
        if !self.joined {
            self.office.close(Reason::Resigned);
            self.handle.abort();
        }
    }
}
