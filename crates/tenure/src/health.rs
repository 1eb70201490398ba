//! Health: a probe that runs on the application's own runtime, paced and judged by the driver.
//!
//! The driver's thread would renew the session of an application that is wedged. A probe that has
//! to pass on the application's runtime tells the two apart.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tenure_core::Instant;
use tenure_store::{Pending, Problem};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// What a [health probe](crate::NodeBuilder::health) answers: `true` or `false`; or a `Result`, whose error says what is
/// wrong.
pub trait ProbeOutcome {
    /// What is wrong, for people to read; `None` if nothing is.
    fn problem(self) -> Option<String>;
}

impl ProbeOutcome for bool {
    fn problem(self) -> Option<String> {
        (!self).then(|| String::from("the application's health probe failed"))
    }
}

impl<E: fmt::Display> ProbeOutcome for Result<(), E> {
    fn problem(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// Asks the application what is wrong with it.
pub(crate) type Probe = Arc<dyn Fn() -> Pending<'static, Option<Problem>> + Send + Sync>;

pub(crate) fn probe<P, F>(probe: P) -> Probe
where
    P: Fn() -> F + Send + Sync + 'static,
    F: Future<Output: ProbeOutcome> + Send + 'static,
{
    Arc::new(move || {
        let asked = probe();
        Box::pin(async move { asked.await.problem().map(|problem| Problem::new(&problem)) })
    })
}

/// What is known of the application.
enum Condition {
    /// The probe has not answered yet.
    Unknown,
    Well,
    Unwell(Problem),
}

/// The driver's side of the probe.
pub(crate) struct Health {
    ticks: mpsc::Sender<()>,
    verdicts: mpsc::UnboundedReceiver<Option<Problem>>,
    every: Duration,
    next: Instant,
    /// When the application is taken for unwell, unless the probe passes before; not known before the first look.
    until: Option<Instant>,
    condition: Condition,
}

impl Health {
    /// Starts the probe on the application's runtime. Until it passes, the node leads nothing.
    pub(crate) fn start(probe: Probe, runtime: &Handle, ttl: Duration) -> Self {
        let (ticks, due) = mpsc::channel(1);
        let (tell, verdicts) = mpsc::unbounded_channel();
        runtime.spawn(run(probe, due, tell));
        let condition = Condition::Unknown;
        Self { ticks, verdicts, every: ttl / 6, next: Instant::ZERO, until: None, condition }
    }

    pub(crate) fn wake(&self) -> Instant {
        match (&self.condition, self.until) {
            (Condition::Unknown | Condition::Well, Some(until)) => self.next.min(until),
            _ => self.next,
        }
    }

    /// Asks again if it is time, and says whether the application is well.
    pub(crate) fn due(&mut self, now: Instant) -> bool {
        if self.next <= now {
            self.next = now + self.every;
            // A tick that finds the one before still there: the application's runtime is wedged.
            let _ = self.ticks.try_send(());
        }
        let until = *self.until.get_or_insert(now + 2 * self.every);
        if until <= now && !matches!(self.condition, Condition::Unwell(_)) {
            let problem = Problem::new("the application's health probe has not answered in time");
            self.condition = Condition::Unwell(problem);
        }
        self.is_well()
    }

    pub(crate) const fn is_well(&self) -> bool {
        matches!(self.condition, Condition::Well)
    }

    /// What is wrong with the application, as far as that is known.
    pub(crate) const fn problem(&self) -> Option<&Problem> {
        match &self.condition {
            Condition::Unwell(problem) => Some(problem),
            Condition::Unknown | Condition::Well => None,
        }
    }

    /// The probe's next verdict; never resolves when the probe is gone.
    pub(crate) async fn verdict(&mut self) -> Option<Problem> {
        match self.verdicts.recv().await {
            Some(verdict) => verdict,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn judge(&mut self, verdict: Option<Problem>, now: Instant) {
        self.condition = verdict.map_or(Condition::Well, Condition::Unwell);
        self.until = Some(now + 2 * self.every);
    }
}

/// One probe per tick. A probe that is still running at the next tick has had its time.
async fn run(probe: Probe, mut ticks: mpsc::Receiver<()>, verdicts: mpsc::UnboundedSender<Option<Problem>>) {
    while ticks.recv().await.is_some() {
        loop {
            // A probe that panics has not passed.
            let passes = AssertUnwindSafe(async { probe().await }).catch_unwind();
            tokio::select! {
                biased;
                verdict = passes => {
                    let panicked = || Some(Problem::new("the application's health probe panicked"));
                    if verdicts.send(verdict.unwrap_or_else(|_| panicked())).is_err() {
                        return;
                    }
                    break;
                }
                tick = ticks.recv() => if tick.is_none() { return },
            }
        }
    }
}
