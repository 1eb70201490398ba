//! How fast a store answers, and whether the clocks go as they should: for `check` and `bench`.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tenure::{ElectionName, Instant, NodeId, NodeInfo, SessionId, Store};
use tenure_core::{MIN_TTL, Opening};
use tenure_store::{Finding, Open, clock};

use crate::failure::Failure;
use crate::output::length;
use crate::store::ask;

/// How often each question is asked.
const SAMPLES: u32 = 50;

/// The life of the session under which it is measured.
const TTL: Duration = Duration::from_secs(10);

/// Lengths of time that people choose for a ttl, in milliseconds.
const SENSIBLE: [u64; 14] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 60_000, 120_000, 300_000];

/// By how much two clocks may part while we measure.
const IN_STEP: Duration = Duration::from_millis(100);

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub read: Latency,
    pub renew: Latency,
}

/// How long an answer takes, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    p50: f64,
    p99: f64,
}

impl Latency {
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |share: usize| {
            let rank = (samples.len() * share).div_ceil(100).saturating_sub(1);
            // To the microsecond: what is beyond is noise.
            samples.get(rank).map_or(0.0, |sample| (sample.as_secs_f64() * 1e6).round() / 1e3)
        };
        Self { p50: at(50), p99: at(99) }
    }

    pub fn half(&self) -> Duration {
        Duration::from_secs_f64(self.p50 / 1e3)
    }

    pub fn most(&self) -> Duration {
        Duration::from_secs_f64(self.p99 / 1e3)
    }
}

impl Measured {
    /// The shortest ttl that leaves room for slow answers: one attempt has a sixth of it, and four of
    /// the slowest renewals fit into that.
    pub fn supported_ttl(&self) -> Duration {
        let least = (self.renew.most() * 4 * 6).max(MIN_TTL);
        let chosen = SENSIBLE.iter().map(|millis| Duration::from_millis(*millis)).find(|ttl| *ttl >= least);
        chosen.unwrap_or_else(|| Duration::from_secs(least.as_secs().div_ceil(60) * 60))
    }
}

/// Measures under a session of our own, which is closed afterwards, and forgotten.
///
/// Every node that is over in this namespace is forgotten with it, so it must be one that nobody uses.
pub async fn measure(store: &Arc<dyn Store>) -> Result<Measured, Failure> {
    let session = open(store).await?;
    let measured = under(store, session).await;
    // Whatever became of it: our session is in nobody's way for longer than it takes.
    let closed = ask(store.close(session, Default::default())).await;
    let forgotten = ask(store.purge(Duration::ZERO)).await;
    let measured = measured?;
    closed.and(forgotten).map(|_| measured)
}

async fn open(store: &Arc<dyn Store>) -> Result<SessionId, Failure> {
    let random = || getrandom::u64().map_err(|error| Failure::System(format!("no random numbers: {error}")));
    let session = SessionId::from_u128(u128::from(random()?) << 64 | u128::from(random()?));
    let id = NodeId::new(format!("check-{:08x}", random()? >> 32)).map_err(Failure::system)?;
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let node = NodeInfo::new(id, hostname);
    let request = Open { session, sequence: 1, ttl: TTL, node, supersedes: None, over: None };
    match ask(store.open(request)).await? {
        Opening::Opened { .. } => Ok(session),
        Opening::Occupied { .. } => {
            Err(Failure::Store(String::from("a random node id was taken already; try again")))
        }
    }
}

async fn under(store: &Arc<dyn Store>, session: SessionId) -> Result<Measured, Failure> {
    // Nobody needs to stand for it: it is only looked at.
    let election = ElectionName::new("tenure-check").map_err(Failure::system)?;
    let (mut reads, mut renewals) = (Vec::new(), Vec::new());
    for sample in 0..SAMPLES {
        let asked = clock::now();
        ask(store.read(election.clone())).await?;
        let between = clock::now();
        ask(store.renew(session, u64::from(sample) + 2, 1)).await?;
        reads.push(between.since(asked));
        renewals.push(clock::now().since(between));
    }
    Ok(Measured { read: Latency::of(reads), renew: Latency::of(renewals) })
}

/// What the clocks showed before the check.
pub struct Clocks {
    boot: Instant,
    wall: Duration,
}

impl Clocks {
    pub fn read() -> Self {
        Self { boot: clock::now(), wall: clock::wall() }
    }

    /// How the clocks have gone since.
    pub fn findings(&self) -> [Finding; 2] {
        let named = clock::identity().is_some();
        let boot = Finding {
            name: "boot clock",
            fine: named,
            value: String::from(if named { "present" } else { "the system does not say which it is" }),
            advice: (!named).then(|| String::from("mount /proc, or nobody can tell how old a lease is")),
        };
        let (by_boot, by_wall) = (clock::now().since(self.boot), clock::wall().saturating_sub(self.wall));
        let apart = by_boot.abs_diff(by_wall);
        let fine = apart <= IN_STEP;
        let wall = Finding {
            name: "wall clock",
            fine,
            value: format!("{} apart from the boot clock over {}", length(apart), length(by_boot)),
            advice: (!fine).then(|| {
                String::from(
                    "it was set meanwhile; nobody's lease depends on it, but the times in the history do",
                )
            }),
        };
        [boot, wall]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supported(slowest: Duration) -> u64 {
        let latency = Latency::of(vec![slowest; 50]);
        let measured = Measured { read: latency, renew: latency };
        u64::try_from(measured.supported_ttl().as_millis()).unwrap()
    }

    #[test]
    fn four_of_the_slowest_renewals_fit_into_a_sixth_of_the_ttl() {
        assert_eq!(supported(Duration::from_micros(10)), 50);
        assert_eq!(supported(Duration::from_millis(4)), 100);
        assert_eq!(supported(Duration::from_millis(5)), 200);
        assert_eq!(supported(Duration::from_millis(500)), 15_000);
        assert_eq!(supported(Duration::from_secs(30)), 720_000);
    }

    #[test]
    fn half_of_the_samples_are_faster_than_the_median() {
        let samples = (1..=100).rev().map(Duration::from_millis).collect();
        let latency = Latency::of(samples);
        assert_eq!((latency.p50, latency.p99), (50.0, 99.0));
    }
}
