//! `tenure bench`: how long it takes on this store until another leads, and what standing costs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tempfile::TempDir;
use tenure::{Election, ElectionName, Instant, Leadership, Node, NodeEvent, Store};
use tenure_store::clock;
use tokio::task::JoinHandle;

use super::crew::{Crew, random};
use super::measure::{self, Latency};
use crate::cli::{Bench as Asked, Global};
use crate::failure::{Exit, Failure};
use crate::output::{self, Table, length, millis};
use crate::store::{self, ask};

/// How long two idle nodes are watched, in lives of a session.
const IDLE: u32 = 2;

/// How soon to look again whether somebody stands or leads. Nothing that is measured waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[derive(Serialize)]
struct Report {
    ttl_ms: u64,
    read_ms: Latency,
    renew_ms: Latency,
    handover_ms: Option<Latency>,
    failover_ms: Option<Latency>,
    idle: Idle,
}

/// What a leader and a follower cost that have nothing to do.
#[derive(Serialize)]
struct Idle {
    /// Per node and interval, of which a ttl has three.
    renewals: f64,
    /// Everything else that the store is asked, counted the same.
    other_requests: f64,
    /// Of one core, for both nodes.
    cpu_percent: f64,
}

pub fn bench(global: &Global, asked: &Asked) -> Result<Exit, Failure> {
    // All on this thread: the lives of those who are killed hang from the one that started them.
    crate::runtime()?.block_on(async {
        let stage = Stage::open(global, asked).await?;
        let measured = tokio::select! {
            measured = stage.measure(global.json, asked) => measured.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        };
        stage.clean().await;
        let Some(report) = measured? else { return Ok(Exit(130)) };
        match global.json {
            true => output::json(&report)?,
            false => report.print(asked)?,
        }
        Ok(Exit::DONE)
    })
}

impl Report {
    fn print(&self, asked: &Asked) -> Result<(), Failure> {
        let mut table = Table::new(&["FIGURE", "P50", "P99", ""]);
        let ttl = length(asked.ttl);
        let rows = [
            (Some(self.read_ms), "a read", String::new()),
            (Some(self.renew_ms), "a renewal", String::new()),
            (self.handover_ms, "planned hand-over", format!("{} times", asked.rounds)),
            (self.failover_ms, "failover after kill -9", format!("{} times, ttl {ttl}", asked.crashes)),
        ];
        for (latency, what, note) in rows {
            if let Some(latency) = latency {
                table.row(vec![what.to_owned(), length(latency.half()), length(latency.most()), note]);
            }
        }
        table.print()?;
        let Idle { renewals, other_requests, cpu_percent } = self.idle;
        output::say(format!(
            "idle: {renewals} renewals and {other_requests} other requests per node and {}; \
             {cpu_percent} % of a core for both nodes",
            length(asked.ttl / 3)
        ))
    }
}

/// Where it is measured: an election in a namespace of its own, so that nothing of the user's is touched.
struct Stage {
    url: String,
    store: Arc<dyn Store>,
    election: ElectionName,
    ttl: Duration,
}

impl Stage {
    async fn open(global: &Global, asked: &Asked) -> Result<Self, Failure> {
        // Creates nothing by a slip in the path. The default file is Tenure's own.
        let connected = match asked.write || global.store.is_none() {
            true => store::connect_or_create(global).await,
            false => store::connect(global).await,
        };
        connected.map_err(|failure| match failure {
            Failure::NotSetUp(problem) => {
                Failure::Store(format!("{problem}; with --write, `tenure bench` sets it up"))
            }
            other => other,
        })?;
        let url = store::url_of_scratch(global, &format!("bench-{:08x}", random()))?;
        let store = store::within(tenure::connect(&url)).await??;
        let election = ElectionName::new(format!("bench-{:08x}", random())).map_err(Failure::system)?;
        Ok(Self { url, store, election, ttl: asked.ttl })
    }

    async fn measure(&self, json: bool, asked: &Asked) -> Result<Report, Failure> {
        let answers = measure::measure(&self.store).await?;
        let (first, second) = (self.candidate("first").await?, self.candidate("second").await?);
        output::notice(json, &format!("planned hand-overs: {}", asked.rounds));
        let (leadership, handovers) = hand_over(&first, &second, asked.rounds).await?;
        let (leader, follower) =
            if asked.rounds.is_multiple_of(2) { (first, second) } else { (second, first) };
        output::notice(json, &format!("two nodes that have nothing to do, for {}", length(self.ttl * IDLE)));
        let idle = idle(&leader, &follower, self.ttl).await;
        follower.node.close().await;
        output::notice(json, &format!("crashes: {}, each for about {}", asked.crashes, length(self.ttl)));
        let failovers = self.crash(&leader, leadership, asked.crashes).await?;
        leader.node.close().await;
        Ok(Report {
            ttl_ms: millis(self.ttl),
            read_ms: answers.read,
            renew_ms: answers.renew,
            handover_ms: (!handovers.is_empty()).then(|| Latency::of(handovers)),
            failover_ms: (!failovers.is_empty()).then(|| Latency::of(failovers)),
            idle,
        })
    }

    async fn candidate(&self, name: &str) -> Result<Candidate, Failure> {
        let id = format!("bench-{name}-{:08x}", random());
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let count = Arc::clone(&asked);
        // Each on connections of its own, as in earnest.
        let store = store::within(tenure::connect(&self.url)).await??;
        let node = Node::builder(id)
            .ttl(self.ttl)
            .start_timeout(Duration::from_secs(10))
            .observer(move |event| {
                if let NodeEvent::StoreAsked { verb, .. } = event {
                    *count.lock().unwrap_or_else(PoisonError::into_inner).entry(*verb).or_default() += 1;
                }
            })
            .start(store)
            .await
            .map_err(|error| Failure::Store(crate::failure::chain(&error)))?;
        let election = node.election(self.election.as_str()).map_err(Failure::system)?;
        Ok(Candidate { node, election, asked })
    }

    /// Leaders of other processes are killed, and `candidate` takes over: from the death to the return of
    /// `elected`.
    async fn crash(
        &self,
        candidate: &Candidate,
        mut leadership: Leadership,
        times: u32,
    ) -> Result<Vec<Duration>, Failure> {
        let directory = TempDir::with_prefix("tenure-bench-")?;
        let mut crew = Crew::new(directory.path(), self.url.clone(), self.election.as_str(), self.ttl)?;
        let mut samples = Vec::new();
        for _ in 0..times {
            let victim = crew.add()?;
            candidate.until(async |election| stands(election, &victim).await, &mut crew).await?;
            give_up(&leadership).await?;
            candidate.until(async |election| leads(election, &victim).await, &mut crew).await?;
            let successor = candidate.stand();
            let own = candidate.node.id().as_str();
            candidate.until(async |election| stands(election, own).await, &mut crew).await?;
            let killed = clock::now();
            crew.kill(&victim);
            let (elected, led) = taken_over(successor).await?;
            samples.push(led.since(killed));
            leadership = elected;
        }
        let _ = leadership.resign().await;
        crew.end(None);
        Ok(samples)
    }

    /// Nothing of ours is left but an ended election.
    async fn clean(&self) {
        let _ = ask(self.store.delete(self.election.clone(), true)).await;
        let _ = ask(self.store.purge(Duration::ZERO)).await;
    }
}

/// A node of this process.
struct Candidate {
    node: Node,
    election: Election,
    /// What its store was asked, and how often.
    asked: Arc<Mutex<BTreeMap<&'static str, u32>>>,
}

impl Candidate {
    /// Stands; the answer is the leadership, and when it came.
    fn stand(&self) -> JoinHandle<Result<(Leadership, Instant), tenure::ElectionError>> {
        let election = self.election.clone();
        tokio::spawn(async move { election.elected().await.map(|leadership| (leadership, clock::now())) })
    }

    /// Looks until it is so.
    async fn until(
        &self,
        so: impl AsyncFn(&Election) -> Result<bool, tenure::ElectionError>,
        crew: &mut Crew,
    ) -> Result<(), Failure> {
        while !so(&self.election).await.map_err(Failure::system)? {
            if let Some(problem) = crew.lost() {
                return Err(Failure::System(problem));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Renewals and other requests so far.
    fn counted(&self) -> (u32, u32) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let renewals = asked.get("renew").copied().unwrap_or_default();
        (renewals, asked.values().sum::<u32>() - renewals)
    }
}

async fn stands(election: &Election, node: &str) -> Result<bool, tenure::ElectionError> {
    Ok(election.candidates().await?.iter().any(|candidate| candidate.node.as_str() == node))
}

async fn leads(election: &Election, node: &str) -> Result<bool, tenure::ElectionError> {
    Ok(election.leader().await?.is_some_and(|leader| leader.node.as_str() == node))
}

async fn taken_over(
    successor: JoinHandle<Result<(Leadership, Instant), tenure::ElectionError>>,
) -> Result<(Leadership, Instant), Failure> {
    successor.await.map_err(Failure::system)?.map_err(Failure::system)
}

/// Whoever has lost its lease meanwhile cannot hand it over, and there is nothing to measure.
async fn give_up(leadership: &Leadership) -> Result<(), Failure> {
    leadership.resign().await.map_err(|lost| {
        let why = crate::failure::chain(&lost);
        Failure::No(format!("a lease was lost while it was measured ({why}); give a longer --ttl"))
    })
}

/// Two nodes take turns: from the call of `resign` to the return of `elected`. Who leads in the end.
async fn hand_over(
    first: &Candidate,
    second: &Candidate,
    rounds: u32,
) -> Result<(Leadership, Vec<Duration>), Failure> {
    let (mut leadership, _) = taken_over(first.stand()).await?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let next = if round.is_multiple_of(2) { second } else { first };
        let successor = next.stand();
        while !stands(&next.election, next.node.id().as_str()).await.map_err(Failure::system)? {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let asked = clock::now();
        give_up(&leadership).await?;
        let (elected, led) = taken_over(successor).await?;
        samples.push(led.since(asked));
        leadership = elected;
    }
    Ok((leadership, samples))
}

/// One leads, the other stands, and nothing happens.
async fn idle(leader: &Candidate, follower: &Candidate, ttl: Duration) -> Idle {
    let standing = follower.stand();
    // The first look of a follower is no part of what it costs in the long run.
    tokio::time::sleep(ttl).await;
    let count = || {
        let (one, other) = (leader.counted(), follower.counted());
        (one.0 + other.0, one.1 + other.1)
    };
    let (before, used, begun) = (count(), processor(), clock::now());
    tokio::time::sleep(ttl * (IDLE - 1)).await;
    let (after, busy, passed) = (count(), processor().saturating_sub(used), clock::now().since(begun));
    // Dropping what waits for the election withdraws from it.
    standing.abort();
    let intervals = 2.0 * passed.as_secs_f64() / (ttl.as_secs_f64() / 3.0);
    let per_interval = |count: u32| (f64::from(count) / intervals * 100.0).round() / 100.0;
    Idle {
        renewals: per_interval(after.0 - before.0),
        other_requests: per_interval(after.1 - before.1),
        cpu_percent: (busy.as_secs_f64() / passed.as_secs_f64() * 1e5).round() / 1e3,
    }
}

/// What this process has used so far.
fn processor() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or_default())
}
