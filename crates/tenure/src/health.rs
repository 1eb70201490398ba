//! Health: a probe that runs on the application's own runtime, paced and judged by the driver.
//!
//! The driver's thread would renew the session of an application that is wedged. A probe that has
//! to pass on the application's runtime tells the two apart.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tenure_core::Instant;
use tenure_store::Pending;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Asks the application whether it is well.
pub(crate) type Probe = Arc<dyn Fn() -> Pending<'static, bool> + Send + Sync>;

pub(crate) fn probe<P, F>(probe: P) -> Probe
where
    P: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    Arc::new(move || Box::pin(probe()))
}

/// The driver's side of the probe.
pub(crate) struct Health {
    ticks: mpsc::Sender<()>,
    verdicts: mpsc::UnboundedReceiver<bool>,
    every: Duration,
    next: Instant,
    /// When the application is taken for unwell, unless the probe passes before.
    until: Instant,
    well: bool,
}

impl Health {
    /// Starts the probe on the application's runtime. Until it passes, the node leads nothing.
    pub(crate) fn start(probe: Probe, runtime: &Handle, ttl: Duration) -> Self {
        let (ticks, due) = mpsc::channel(1);
        let (tell, verdicts) = mpsc::unbounded_channel();
        runtime.spawn(run(probe, due, tell));
        Self { ticks, verdicts, every: ttl / 6, next: Instant::ZERO, until: Instant::ZERO, well: false }
    }

    pub(crate) fn wake(&self) -> Instant {
        if self.well { self.next.min(self.until) } else { self.next }
    }

    /// Asks again if it is time, and says whether the application is well.
    pub(crate) fn due(&mut self, now: Instant) -> bool {
        if self.next <= now {
            self.next = now + self.every;
            // A tick that finds the one before still there: the application's runtime is wedged.
            let _ = self.ticks.try_send(());
        }
        self.well = self.well && now < self.until;
        self.well
    }

    pub(crate) const fn is_well(&self) -> bool {
        self.well
    }

    /// The probe's next verdict; never resolves when the probe is gone.
    pub(crate) async fn verdict(&mut self) -> bool {
        match self.verdicts.recv().await {
            Some(verdict) => verdict,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn judge(&mut self, passed: bool, now: Instant) {
        self.well = passed;
        self.until = now + 2 * self.every;
    }
}

/// One probe per tick. A probe that is still running at the next tick has had its time.
async fn run(probe: Probe, mut ticks: mpsc::Receiver<()>, verdicts: mpsc::UnboundedSender<bool>) {
    while ticks.recv().await.is_some() {
        loop {
            // A probe that panics has not passed.
            let passes = AssertUnwindSafe(async { probe().await }).catch_unwind();
            tokio::select! {
                biased;
                verdict = passes => {
                    if verdicts.send(verdict.unwrap_or(false)).is_err() {
                        return;
                    }
                    break;
                }
                tick = ticks.recv() => if tick.is_none() { return },
            }
        }
    }
}
