//! The life of `tenure run`: stand, serve, stand again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tenure::{
    ConnectError, Election, ElectionError, Instant, Leadership, Node, Reason, StartError, Store, StoreError,
};
use tenure_core::Settings;
use tenure_store::clock;

use super::guard::Guard;
use super::orders::{End, Hello, Order, Report, Start, Tenancy};
use super::program;
use super::restart::Backoff;
use super::service::Service;
use super::signals::{Signals, Wish};
use super::voice::Voice;
use crate::cli::{Global, Grouping, NodeSettings, Run};
use crate::failure::{Exit, Failure, chain};
use crate::{output, store};

/// How soon an unreachable store is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How a term of service ended.
enum Served {
    /// The program has ended.
    Ended { end: End, ran: Duration },
    /// Leadership is over, and the program with it.
    Lost(Reason),
    /// A signal wants us to end.
    Told { signal: i32, end: Option<End> },
}

pub async fn supervise(global: &Global, asked: &Run, program: Vec<Vec<u8>>) -> Result<Exit, Failure> {
    let id = node_id(&asked.node);
    let voice = Voice { json: global.json, election: asked.election.clone(), node: id.clone() };
    let mut signals = Signals::listen()?;
    let margins = Margins::of(&asked.node);
    let hello = Hello {
        supervisor: rustix::process::getpid().as_raw_nonzero().get(),
        group: rustix::process::getpgrp().as_raw_nonzero().get(),
        store: store::url(global)?,
        namespace: global.namespace.to_string(),
        patience: margins.patience,
        grace: asked.run.grace,
        cgroup: asked.run.cgroup == Grouping::Auto,
    };
    let started = {
        let mut starting = pin!(start(global, asked, &id, margins, &voice));
        loop {
            tokio::select! {
                node = &mut starting => break node?,
                wish = signals.next() => if let Some(exit) = leave_while_waiting(wish) { return Ok(exit) },
            }
        }
    };
    let guard = Guard::start(hello.clone()).await?;
    Service.ready();
    let election = started.election(asked.election.as_str()).map_err(|error| {
        Failure::Usage(format!("`{}` is no name for an election: {error}", asked.election))
    })?;
    let mut supervisor = Supervisor {
        node: started.clone(),
        election,
        asked,
        namespace: global.namespace.to_string(),
        program,
        margins,
        hello,
        guard,
        signals,
        voice,
    };
    let outcome = tokio::select! {
        outcome = supervisor.live() => outcome,
        () = Service.keep_alive() => unreachable!("it never ends"),
    };
    Service.stopping();
    started.close().await;
    supervisor.guard.dismiss().await;
    outcome
}

/// What the end of a lease leaves to the program.
#[derive(Clone, Copy)]
struct Margins {
    /// From the end of a lease until somebody else may lead, at the earliest.
    margin: Duration,
    /// From SIGTERM to SIGKILL within it: a quarter, so that three remain for dying.
    patience: Duration,
}

impl Margins {
    fn of(settings: &NodeSettings) -> Self {
        let margin = Settings::new(settings.ttl).stop_margin;
        Self { margin, patience: margin / 4 }
    }
}

/// The host name and a short random word, unless it was given.
fn node_id(settings: &NodeSettings) -> String {
    settings.node.as_ref().map_or_else(
        || {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let random = getrandom::u32().unwrap_or_else(|_| std::process::id());
            format!("{host}-{:05x}", random & 0xf_ffff)
        },
        ToString::to_string,
    )
}

/// A signal before anything runs: 128 + its number, like every program that it ends.
fn leave_while_waiting(wish: Wish) -> Option<Exit> {
    match wish {
        Wish::End(signal) => Some(Exit(End::Signal(signal).code())),
        // The terminal is gone, and nobody else is there whom it could concern.
        Wish::Pass(signal_hook::consts::SIGHUP) => {
            Some(Exit(End::Signal(signal_hook::consts::SIGHUP).code()))
        }
        Wish::Pass(_) => None,
    }
}

/// Connects and registers. A store that is away is waited for; one that cannot be used is an error.
async fn start(
    global: &Global,
    asked: &Run,
    id: &str,
    margins: Margins,
    voice: &Voice,
) -> Result<Node, Failure> {
    let store = reach(global, voice).await?;
    let settings = &asked.node;
    let mut builder = Node::builder(id)
        .ttl(settings.ttl)
        .takeover_delay(settings.takeover_delay)
        .eligible(settings.eligible)
        .priority(settings.priority)
        .stop_margin(margins.margin)
        .grace(asked.run.grace);
    if let Some(every) = settings.renew_every {
        builder = builder.renew_every(every);
    }
    if let Some(every) = settings.poll_every {
        builder = builder.poll_every(every);
    }
    if let Some(address) = &settings.address {
        builder = builder.address(address);
    }
    let mut starting = pin!(builder.start(store));
    // Most often it is there at once. If not, somebody at a terminal wants to know why.
    let node = match tokio::time::timeout(Duration::from_millis(500), &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            let sentence = format!(
                "registering as `{id}` takes a while: the store is slow, or an earlier process with this id has \
                 not lapsed yet (at most {})",
                output::length(settings.ttl)
            );
            voice.say("registering", &sentence, json!({}));
            starting.await
        }
    };
    node.map_err(|error| match error {
        StartError::NodeIdTaken { .. } => {
            Failure::No(format!("{}; give this one another with --node, or leave --node out", chain(&error)))
        }
        StartError::Misconfigured { .. } | StartError::TimedOut { .. } => Failure::Store(chain(&error)),
        StartError::System(_) | StartError::DriverDied => Failure::System(chain(&error)),
        _ => Failure::Usage(chain(&error)),
    })
}

async fn reach(global: &Global, voice: &Voice) -> Result<Arc<dyn Store>, Failure> {
    let mut said = None;
    loop {
        let url = store::url(global)?;
        match store::open(url.as_deref(), &global.namespace).await {
            Err(ConnectError::Store(error @ (StoreError::Unavailable(_) | StoreError::Indeterminate(_)))) => {
                let problem = chain(&error);
                if said.as_ref() != Some(&problem) {
                    voice.say("waiting_for_store", &format!("waiting for the store: {problem}"), json!({}));
                    said = Some(problem);
                }
                tokio::time::sleep(RETRY).await;
            }
            connected => return Ok(connected?),
        }
    }
}

struct Supervisor<'a> {
    node: Node,
    election: Election,
    asked: &'a Run,
    namespace: String,
    program: Vec<Vec<u8>>,
    margins: Margins,
    hello: Hello,
    guard: Guard,
    signals: Signals,
    voice: Voice,
}

impl Supervisor<'_> {
    async fn live(&mut self) -> Result<Exit, Failure> {
        let mut backoff = Backoff::new(self.asked.run.restart);
        loop {
            let leadership = match self.wait().await? {
                Ok(leadership) => leadership,
                Err(exit) => return Ok(exit),
            };
            match self.serve(leadership).await? {
                Served::Told { signal, end } => return Ok(Exit(end.unwrap_or(End::Signal(signal)).code())),
                // Standing again would start it anew, against the wish of whoever ended it.
                Served::Lost(Reason::Ended) => return Err(cannot_stand(ElectionError::Ended)),
                Served::Lost(reason) if self.asked.run.exit_on_loss && reason != Reason::Asked => {
                    return Err(Failure::Lost(format!("leadership was lost: {reason}")));
                }
                Served::Lost(_) => {}
                Served::Ended { end, ran } => match backoff.after(end, ran) {
                    None => return Ok(Exit(end.code())),
                    Some(pause) => {
                        let sentence =
                            format!("the program {end}; standing again in {}", output::length(pause));
                        self.voice.say("restarting", &sentence, json!({"pause_ms": output::millis(pause)}));
                        if let Some(exit) = self.pause(pause).await {
                            return Ok(exit);
                        }
                    }
                },
            }
        }
    }

    /// Waits until nothing but a signal can end it earlier.
    async fn pause(&mut self, pause: Duration) -> Option<Exit> {
        let mut over = pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut over => return None,
                wish = self.signals.next() => {
                    let exit = leave_while_waiting(wish);
                    if exit.is_some() {
                        return exit;
                    }
                }
            }
        }
    }

    // ----- waiting --------------------------------------------------------------------------

    /// Stands until elected. `Err` within: a signal wants us to end.
    async fn wait(&mut self) -> Result<Result<Leadership, Exit>, Failure> {
        let election = self.election.clone();
        let mut elected = pin!(election.elected());
        let mut changes = election.observe();
        let mut holding = self.node.held();
        self.guard.order(&Order::Held(holding.now().into())).await?;
        let mut said = None;
        loop {
            tokio::select! {
                biased;
                leadership = &mut elected => return Ok(Ok(leadership.map_err(cannot_stand)?)),
                wish = self.signals.next() => if let Some(exit) = leave_while_waiting(wish) {
                    return Ok(Err(exit));
                },
                Some(held) = holding.changed() => self.guard.order(&Order::Held(held.into())).await?,
                Some(change) = changes.next() => {
                    let leader = change.leader.as_ref().map(ToString::to_string);
                    if leader.as_deref() != Some(self.voice.node.as_str()) && said.as_ref() != Some(&change) {
                        self.say_waiting(leader, change.term.number());
                    }
                    said = Some(change);
                }
                report = self.guard.report() => if report.is_none() {
                    self.new_guardian().await?;
                    self.guard.order(&Order::Held(holding.now().into())).await?;
                },
            }
        }
    }

    fn say_waiting(&self, leader: Option<String>, term: u64) {
        let name = self.election.name();
        let sentence = match &leader {
            Some(leader) => format!("waiting: `{leader}` leads `{name}` under term {term}"),
            None => format!("nobody leads `{name}` at the moment"),
        };
        self.voice.say("leader_changed", &sentence, json!({"leader_id": leader, "term": term}));
    }

    // ----- serving --------------------------------------------------------------------------

    /// Runs the program under a term. Returns when nothing of it is left, and the lease is given back.
    async fn serve(&mut self, leadership: Leadership) -> Result<Served, Failure> {
        let began = clock::now();
        let term = leadership.term();
        let mut holding = self.node.held();
        let start = Start {
            program: self.program.clone(),
            environment: self.environment(term.number()),
            held: holding.now().into(),
        };
        self.guard.order(&Order::Start(start)).await?;
        let mut stopping: Option<Stopping> = None;
        let lost = leadership.cancellation();
        let mut runs = true;
        let end = loop {
            // Only once it is time to doubt the guardian.
            let doubt = stopping.as_ref().and_then(|stopping| stopping.doubt);
            tokio::select! {
                biased;
                Some(held) = holding.changed() => self.guard.order(&Order::Held(held.into())).await?,
                report = self.guard.report() => match report {
                    Some(Report::Started { pid }) => {
                        let sentence = format!("leading `{}` under term {term}: started as process {pid}", self.election.name());
                        self.voice.say("leader_elected", &sentence, json!({"term": term.number(), "pid": pid}));
                    }
                    Some(Report::Ended { end, lapsed }) => {
                        // We were stopped or starved, and the guardian knew before us.
                        if lapsed && runs {
                            let reason = leadership.check().map_or_else(|over| over.reason, |_| Reason::Lapsed);
                            self.say_loss(reason, term.number());
                            let told = stopping.and_then(|stopping| stopping.told);
                            stopping = Some(Stopping { told, reason: Some(reason), doubt: None });
                        }
                        break Some(end);
                    }
                    Some(Report::TooLate) => break None,
                    Some(Report::Refused { errno }) => {
                        leadership.stopped();
                        return Err(program::refused(&self.program[0], errno));
                    }
                    Some(Report::Immune { pids }) => self.voice.say("immune", &format!(
                        "processes {pids:?} of the program belong to somebody else and cannot be killed; the lease \
                         is not given back while they run"), json!({"pids": pids})),
                    None => {
                        self.voice.say("guardian_died", "the guardian was killed: the program is ended", json!({}));
                        self.new_guardian().await?;
                        break Some(End::Signal(signal_hook::consts::SIGKILL));
                    }
                },
                () = doubtful(doubt) => {
                    self.voice.say("guardian_silent", "the guardian does not answer: the program is ended", json!({}));
                    self.new_guardian().await?;
                    break Some(End::Signal(signal_hook::consts::SIGKILL));
                },
                () = lost.cancelled(), if runs => {
                    runs = false;
                    let reason = leadership.check().map_or_else(|over| over.reason, |_| Reason::Lapsed);
                    let (grace, doubt) = self.say_loss(reason, term.number());
                    self.guard.order(&Order::Stop { grace }).await?;
                    let told = stopping.and_then(|stopping| stopping.told);
                    stopping = Some(Stopping { told, reason: Some(reason), doubt: Some(clock::now() + doubt) });
                }
                wish = self.signals.next() => match wish {
                    Wish::End(signal) => {
                        // Asked twice: no more patience.
                        let again = stopping.as_ref().is_some_and(|stopping| stopping.told.is_some());
                        let grace = if again { Duration::ZERO } else { self.asked.run.grace };
                        self.guard.order(&Order::Stop { grace }).await?;
                        let reason = stopping.and_then(|stopping| stopping.reason);
                        stopping = Some(Stopping { told: Some(signal), reason, doubt: None });
                    }
                    Wish::Pass(signal) => self.guard.order(&Order::Signal(signal)).await?,
                },
            }
        };
        // The program is gone, so the lease can be.
        leadership.stopped();
        let stopping = stopping.unwrap_or(Stopping { told: None, reason: None, doubt: None });
        Ok(match (stopping.told, stopping.reason, end) {
            (Some(signal), ..) => Served::Told { signal, end },
            (None, Some(reason), _) => Served::Lost(reason),
            (None, None, Some(end)) => Served::Ended { end, ran: clock::now().since(began) },
            (None, None, None) => Served::Lost(Reason::Lapsed),
        })
    }

    /// Says that leadership is over; gives the time that the program has to stop, and the guardian
    /// to see to it.
    fn say_loss(&self, reason: Reason, term: u64) -> (Duration, Duration) {
        let willing = matches!(reason, Reason::Asked | Reason::Ended | Reason::Closing | Reason::Resigned);
        let Margins { margin, patience } = self.margins;
        let (grace, doubt) = match willing {
            true => (self.asked.run.grace, self.asked.run.grace + margin),
            false => (patience, patience * 2),
        };
        let name = self.election.name();
        let sentence = format!("term {term} of `{name}` is over: {reason}; stopping the program");
        let event = if willing { "leader_resigned" } else { "leader_lost" };
        self.voice.say(event, &sentence, json!({"term": term, "reason": reason.name()}));
        (grace, doubt)
    }

    fn environment(&self, term: u64) -> Vec<(String, String)> {
        vec![
            (String::from("TENURE_ELECTION"), self.election.name().to_string()),
            (String::from("TENURE_NODE"), self.voice.node.clone()),
            (String::from("TENURE_TERM"), term.to_string()),
            (String::from("TENURE_NAMESPACE"), self.namespace.clone()),
        ]
    }

    /// Ends everything that the old guardian has left, and starts another.
    async fn new_guardian(&mut self) -> Result<(), Failure> {
        self.guard.replace(self.hello.clone()).await?;
        self.guard.order(&Order::Held(Tenancy::from(self.node.held().now()))).await
    }
}

/// A program that was told to stop.
#[derive(Clone, Copy)]
struct Stopping {
    /// By this signal to us.
    told: Option<i32>,
    /// For this loss.
    reason: Option<Reason>,
    /// When the guardian itself is in doubt.
    doubt: Option<Instant>,
}

async fn doubtful(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(clock::now())).await,
        None => std::future::pending().await,
    }
}

fn cannot_stand(error: ElectionError) -> Failure {
    match error {
        ElectionError::Ended => Failure::No(String::from("the election was ended by `tenure delete`")),
        ElectionError::NotEligible => Failure::Usage(String::from(
            "this node is not eligible, so it would never run anything; leave out --eligible=false",
        )),
        ElectionError::Closed(ending) => Failure::System(ending.to_string()),
        other => Failure::System(chain(&other)),
    }
}
