//! The life of `tenure run`: a node is registered, a guardian started, and at the end everything given back.

use std::pin::pin;
use std::time::Duration;

use serde_json::json;
use tenure::{Election, Instant, Node, Reason};
use tenure_core::Settings;
use tenure_store::clock;

use super::division::Division;
use super::guard::Guard;
use super::orders::{End, Hello, Order, Tenancy};
use super::signals::{Signals, Wish};
use crate::cli::{Global, Grouping, NodeSettings, Run};
use crate::failure::{Exit, Failure};
use crate::service::Service;
use crate::serving::{Beside, Door};
use crate::voice::Voice;
use crate::{outage, registration, store};

/// The process group for programs: ours where a terminal's signals have to reach both, and otherwise one of their
/// own (0). Without a terminal our group is often an orphaned one: if then a program of it ends while we are stopped,
/// the kernel hangs up on the whole group, and so on whoever has started us.
fn program_group() -> i32 {
    let has_terminal = std::fs::File::open("/dev/tty").is_ok();
    if has_terminal { rustix::process::getpgrp().as_raw_nonzero().get() } else { 0 }
}

pub async fn supervise(global: &Global, asked: &Run, program: Vec<Vec<u8>>) -> Result<Exit, Failure> {
    let id = registration::node_id(&asked.node);
    let voice = Voice { json: global.json, election: asked.election(), node: id.clone() };
    let mut signals = Signals::listen()?;
    let margins = Margins::of(&asked.node);
    let hello = Hello {
        supervisor: rustix::process::getpid().as_raw_nonzero().get(),
        group: program_group(),
        store: store::url(global)?,
        namespace: global.namespace.to_string(),
        patience: margins.patience,
        grace: asked.run.grace,
        cgroup: asked.run.cgroup == Grouping::Auto,
        several: asked.partitions.is_some(),
    };
    registration::introduce(global, &asked.node, asked.serve.listen, &voice);
    let door = match asked.serve.listen {
        Some(listen) => Some(Door::open(listen, &asked.serve, &asked.node).await?),
        None => None,
    };
    // Before the session is opened: it is on guard from the first write on.
    let guard = Guard::start(hello.clone()).await?;
    let started = {
        let mut starting = pin!(registration::start(global, &asked.node, &id, &voice, |builder| {
            let builder = builder.stop_margin(margins.margin).grace(asked.run.grace);
            door.as_ref().map_or(builder.clone(), |door| door.introduce(builder))
        }));
        loop {
            tokio::select! {
                node = &mut starting => break node?,
                wish = signals.next() => if let Some(exit) = leave_while_waiting(wish) { return Ok(exit) },
            }
        }
    };
    outage::tell(&started, voice.clone(), false);
    Service.ready();
    let election = started.election(voice.election.as_str()).map_err(|error| {
        Failure::Usage(format!("`{}` is no name for an election: {error}", voice.election))
    })?;
    let served = match door {
        Some(door) => {
            let url = door.url.clone();
            let served = door.serve(&started, &election, &asked.node, Beside::default())?;
            voice.say("serving", &format!("node `{id}` serves {url}"), json!({"url": url}));
            Some(served)
        }
        None => None,
    };
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
    if let Some(served) = &served {
        served.stopping();
    }
    started.close().await;
    if let Some(served) = served {
        served.end().await;
    }
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

/// A signal before anything runs: 128 + its number, like every program that it ends.
pub fn leave_while_waiting(wish: Wish) -> Option<Exit> {
    match wish {
        Wish::End(signal) => Some(Exit(End::Signal(signal).code())),
        // The terminal is gone, and nobody else is there whom it could concern.
        Wish::Pass(signal_hook::consts::SIGHUP) => {
            Some(Exit(End::Signal(signal_hook::consts::SIGHUP).code()))
        }
        Wish::Pass(_) => None,
    }
}

pub struct Supervisor<'a> {
    pub node: Node,
    /// The election that is stood for, or whose leader divides the work.
    pub election: Election,
    pub asked: &'a Run,
    pub namespace: String,
    pub program: Vec<Vec<u8>>,
    margins: Margins,
    hello: Hello,
    pub guard: Guard,
    pub signals: Signals,
    pub voice: Voice,
}

impl Supervisor<'_> {
    /// Lives until there is nothing more to do.
    async fn live(&mut self) -> Result<Exit, Failure> {
        match &self.asked.partitions {
            Some(list) => Division::new(self, list.clone()).live().await,
            None => self.contest().await,
        }
    }

    /// The time that a program has to stop, and the guardian to see to it.
    pub fn time_to_stop(&self, willing: bool) -> (Duration, Duration) {
        let Margins { margin, patience } = self.margins;
        match willing {
            true => (self.asked.run.grace, self.asked.run.grace + margin),
            false => (patience, patience * 2),
        }
    }

    /// Ends everything that the old guardian has left, and starts another.
    pub async fn new_guardian(&mut self) -> Result<(), Failure> {
        self.guard.replace(self.hello.clone()).await?;
        self.guard.order(&Order::Held(Tenancy::from(self.node.held().now()))).await
    }
}

/// Whether what is over was given up, so that a program may take its time to stop.
pub fn is_willing(reason: Reason) -> bool {
    matches!(reason, Reason::Asked | Reason::Ended | Reason::Closing | Reason::Resigned)
}

/// Waits until then.
pub async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep(instant.since(clock::now())).await,
        None => std::future::pending().await,
    }
}
