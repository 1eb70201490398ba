//! A hundred candidates for one election beside three of them: how long a hand-over takes, what is asked of the store
//! for it and while nothing happens, and how many connections a node holds.
//!
//! All nodes are in this process, each with a store of its own.

#[path = "../common/mod.rs"]
mod common;
mod counted;
mod meeting;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use common::samples::{Samples, human, show};
use common::{Bench, Outcome};
use counted::Tally;
use futures_util::future::join_all;
use meeting::{Meeting, OnMariaDb, OnPostgres, OnZooKeeper, Sqlite};
use tenure::{Leadership, Node};
use tenure_core::Instant;
use tenure_store::clock;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const TTL: Duration = Duration::from_secs(10);
/// From one renewal of a node to its next.
const BEAT: Duration = Duration::from_nanos(TTL.as_nanos() as u64 / 3);
const FEW: usize = 3;
const MANY: usize = 100;
/// Between hand-overs: the news of one has reached everybody, and its former leader stands again.
const PAUSE: Duration = Duration::from_millis(250);
/// Connections that were opened for something are closed by then: up to twice the ten seconds for which they are kept.
const CALM: Duration = Duration::from_secs(25);
/// Far beyond everything that is measured.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    common::run("crowd", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        meet::<Sqlite>(bench).await?;
        meet::<OnPostgres>(bench).await?;
        meet::<OnMariaDb>(bench).await?;
        meet::<OnZooKeeper>(bench).await
    })
}

async fn meet<M: Meeting>(bench: &Bench) -> Outcome<()> {
    let (rounds, beats) = if bench.quick { (8, 2) } else { (40, 6) };
    let mut meeting = M::open().await?;
    let mut crowd = Crowd::new();
    println!("\n{}, ttl {TTL:?}; requests are {}", M::NAME, M::REQUESTS);

    crowd.grow(&meeting.url(), FEW).await?;
    let few = crowd.hand_over(rounds).await?;
    show(&format!("hand-over, {FEW} candidates"), &few);

    crowd.grow(&meeting.url(), MANY).await?;
    sleep(CALM).await;
    let connections = meeting.connections().await?;
    let before = Count::take(&mut meeting, &crowd).await?;
    sleep(BEAT * beats).await;
    let idle = Count::take(&mut meeting, &crowd).await?.since(&before);
    println!("idle, per node and {BEAT:?}: {}", idle.per(f64::from(beats) * MANY as f64));

    let (before, began) = (Count::take(&mut meeting, &crowd).await?, clock::now());
    let many = crowd.hand_over(rounds).await?;
    // Whole beats, so that as many renewals are in it as in the idle ones, and one for what is learnt late.
    let whole = u32::try_from(clock::now().since(began).as_nanos().div_ceil(BEAT.as_nanos()))? + 1;
    sleep((began + BEAT * whole).since(clock::now())).await;
    let busy = Count::take(&mut meeting, &crowd).await?.since(&before);
    let beyond = busy.beyond(&idle, f64::from(whole) / f64::from(beats));
    show(&format!("hand-over, {MANY} candidates"), &many);
    println!("beyond idle, per hand-over: {}", beyond.per(rounds as f64));
    crowd.close().await;

    let judge = |figure: &str, measured: f64, shown: &str, target: f64| {
        let verdict = if measured <= target { "met" } else { "MISSED" };
        bench.conclude(&format!("{}: {figure}", M::NAME), shown, &format!("≤ {target}"), verdict)
    };
    let (p50, with_few) = (many.percentile(50), few.percentile(50));
    let ratio = p50.as_secs_f64() / with_few.as_secs_f64();
    judge(
        &format!("hand-over p50, {MANY} candidates ÷ {FEW}"),
        ratio,
        &format!("{ratio:.2} ({} ÷ {})", human(p50), human(with_few)),
        1.5,
    )?;
    let requests = beyond.requests / rounds as f64;
    judge(
        &format!("{MANY} candidates, {} per hand-over beyond idle", M::REQUESTS),
        requests,
        &format!("{requests:.1}"),
        20.0,
    )?;
    let rate = idle.requests / (BEAT * beats).as_secs_f64() / MANY as f64;
    judge(
        &format!("{MANY} candidates, idle, {} per second and node", M::REQUESTS),
        rate,
        &format!("{rate:.2}"),
        0.4,
    )?;
    let Some(connections) = connections else { return Ok(()) };
    let each = connections as f64 / MANY as f64;
    judge(&format!("{MANY} candidates, idle, connections per node"), each, &format!("{each:.2}"), 1.0)
}

// ----- what is asked ------------------------------------------------------------------------

/// What was asked of the store, as the store counts it (if it does), and as the nodes do.
struct Count {
    requests: f64,
    verbs: BTreeMap<&'static str, f64>,
}

impl Count {
    async fn take(meeting: &mut impl Meeting, crowd: &Crowd) -> Outcome<Self> {
        let told = meeting.requests().await?.map(|requests| requests as f64);
        let verbs: BTreeMap<_, _> =
            crowd.tally.read().into_iter().map(|(verb, times)| (verb, times as f64)).collect();
        Ok(Self { requests: told.unwrap_or_else(|| verbs.values().sum()), verbs })
    }

    fn since(self, before: &Self) -> Self {
        self.beyond(before, 1.0)
    }

    /// What is left without so many times the other.
    fn beyond(mut self, other: &Self, times: f64) -> Self {
        for (verb, count) in &mut self.verbs {
            *count -= other.verbs.get(verb).copied().unwrap_or_default() * times;
        }
        Self { requests: self.requests - other.requests * times, verbs: self.verbs }
    }

    /// For people: shares of this many.
    fn per(&self, many: f64) -> String {
        let verbs: Vec<_> = self
            .verbs
            .iter()
            .map(|(verb, count)| (verb, count / many))
            .filter(|(_, share)| share.abs() >= 0.005)
            .map(|(verb, share)| format!("{verb} {share:.2}"))
            .collect();
        format!("{:.2} requests (verbs: {})", self.requests / many, verbs.join(", "))
    }
}

// ----- nodes --------------------------------------------------------------------------------

/// The candidates. One that has led stands again when it is told to.
struct Crowd {
    members: Vec<Member>,
    leader: Option<Elected>,
    tally: Tally,
    tell: UnboundedSender<Elected>,
    told: UnboundedReceiver<Elected>,
}

struct Member {
    node: Node,
    stand: Arc<Notify>,
    task: JoinHandle<()>,
}

struct Elected {
    member: usize,
    at: Instant,
    leadership: Leadership,
}

impl Crowd {
    fn new() -> Self {
        let (tell, told) = unbounded_channel();
        Self { members: Vec::new(), leader: None, tally: Tally::default(), tell, told }
    }

    /// Until there are so many, one leads and the others stand. They come evenly spread over a beat, as do their
    /// renewals from then on.
    async fn grow(&mut self, url: &str, size: usize) -> Outcome<()> {
        let mut ticks = tokio::time::interval(BEAT / u32::try_from(size)?);
        while self.members.len() < size {
            ticks.tick().await;
            self.admit(url).await?;
        }
        if self.leader.is_none() {
            self.leader = Some(self.hear().await?);
        }
        let election = self.members[0].node.election("bench")?;
        let end = clock::now() + PATIENCE;
        while election.candidates().await?.len() + 1 != size {
            if clock::now() > end {
                return Err("the candidates do not stand".into());
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn admit(&mut self, url: &str) -> Outcome<()> {
        let (member, stand, tell) = (self.members.len(), Arc::new(Notify::new()), self.tell.clone());
        let store = self.tally.on(tenure::connect(url).await?);
        let node = Node::builder(format!("node-{member}")).ttl(TTL).start(store).await?;
        let (election, stands) = (node.election("bench")?, Arc::clone(&stand));
        let task = tokio::spawn(async move {
            while let Ok(leadership) = election.elected().await {
                let _ = tell.send(Elected { member, at: clock::now(), leadership });
                stands.notified().await;
            }
        });
        self.members.push(Member { node, stand, task });
        Ok(())
    }

    /// Has one leader after the other resign; how long nobody led.
    async fn hand_over(&mut self, rounds: usize) -> Outcome<Samples> {
        let mut gaps = Samples::default();
        while gaps.len() < rounds {
            sleep(PAUSE).await;
            let leader = self.leader.take().ok_or("nobody leads")?;
            let called = clock::now();
            leader.leadership.resign().await?;
            let next = self.hear().await?;
            gaps.push(next.at.since(called));
            drop(leader.leadership);
            self.members[leader.member].stand.notify_one();
            self.leader = Some(next);
        }
        Ok(gaps)
    }

    async fn hear(&mut self) -> Outcome<Elected> {
        Ok(timeout(PATIENCE, self.told.recv()).await?.ok_or("nobody is left")?)
    }

    async fn close(self) {
        for member in &self.members {
            member.task.abort();
        }
        drop(self.leader);
        join_all(self.members.iter().map(|member| member.node.close())).await;
    }
}
