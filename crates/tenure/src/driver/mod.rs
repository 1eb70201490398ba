//! The driver: one thread per node that owns the machine, and connects it to the store, the clock
//! and the handles. It takes no decision of its own, and never runs the application's code.

mod commands;
mod desks;
mod enlistment;
mod events;
mod failback;
mod health_reports;
mod ledger;
mod requests;
mod slots;
mod words;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Answer, Failback, Failure, Instant, Machine, Opening, Reason, Settings};
use tenure_store::clock::{self, Timer};
use tenure_store::{Hint, Hints, NodeInfo, Pending, Problem, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use crate::error::{Ending, StartError};
use crate::event::{NodeEvent, Observer};
use crate::health::Health;
use crate::held::Held;
use crate::link::{Command, Status};
use crate::office::Roster;
use crate::page::Page;
use crate::timer::AsyncTimer;
use crate::watchdog::Watchdog;
use desks::Desks;
use health_reports::HealthReports;
use ledger::{Questions, Word};
use requests::{Requests, Response};
use slots::Slots;

/// What a driver is made of. Everything that can fail for want of resources was made before its
/// thread starts.
pub(crate) struct Plan {
    pub machine: Machine,
    pub info: NodeInfo,
    pub store: Arc<dyn Store>,
    pub status: Arc<Status>,
    pub page: Arc<Page>,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub health: Option<Health>,
    pub observer: Option<Observer>,
    pub settings: Settings,
    /// Whether it asks leaders of lower priority to make way.
    pub failback: bool,
    /// How long work may take to stop when the lease is still ours.
    pub grace: Duration,
    /// How long when it is not.
    pub margin: Duration,
    pub start: Start,
}

/// Who waits for the session to be opened.
pub(crate) struct Start {
    pub opened: oneshot::Sender<Result<(), StartError>>,
    pub limit: Option<Duration>,
}

struct Driver {
    machine: Machine,
    info: NodeInfo,
    store: Arc<dyn Store>,
    status: Arc<Status>,
    page: Arc<Page>,
    /// What the page says, unless a guard has found it passed.
    published: Instant,
    watchdog: Watchdog,
    roster: Arc<Roster>,
    slots: Slots,
    requests: Requests,
    /// What this node has to do with partitions, and what it asks about them.
    desks: Desks,
    questions: Questions,
    /// What handles asked of the store; each answers its own handle.
    asides: FuturesUnordered<Pending<'static, ()>>,
    timer: AsyncTimer,
    health: Option<Health>,
    /// There are some if there is a probe.
    health_reports: Option<HealthReports>,
    observer: Option<Observer>,
    /// When the work of which office is cut off.
    cut_offs: BinaryHeap<Reverse<(Instant, u64)>>,
    settings: Settings,
    /// There is one if the node asks leaders of lower priority to make way.
    failback: Option<Failback>,
    /// The life of a session, as asked for or as granted.
    ttl: Duration,
    grace: Duration,
    margin: Duration,
    start: Option<Start>,
    start_by: Option<Instant>,
    closers: Vec<oneshot::Sender<()>>,
}

/// Where inputs come from that are not the driver's own.
struct Inlets {
    /// `None` once all handles are gone.
    commands: Option<mpsc::UnboundedReceiver<Command>>,
    /// `None` once the store can give no more.
    news: Option<Hints>,
}

enum Input {
    Due,
    Response(Response),
    Word(Word),
    Verdict(Option<Problem>),
    Command(Option<Command>),
    Hint(Option<Hint>),
    Answered,
}

/// Starts the driver's thread.
pub(crate) fn spawn(plan: Plan) -> io::Result<()> {
    let roster = Arc::new(Roster::default());
    let timer = Timer::nonblocking()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (page, status) = (Arc::clone(&plan.page), Arc::clone(&plan.status));
    let watchdog = Watchdog::start(page, Arc::clone(&roster), status, plan.margin)?;
    std::thread::Builder::new().name(String::from("tenure")).spawn(move || {
        // Says the end after all else is gone, a panic included; see `LastWords`.
        let span = tracing::info_span!(target: "tenure", "node", node = %plan.info.id);
        runtime.block_on(run(plan, timer, watchdog, roster).instrument(span));
        // A store may have left tasks behind that never end.
        runtime.shutdown_background();
    })?;
    Ok(())
}

async fn run(plan: Plan, timer: Timer, watchdog: Watchdog, roster: Arc<Roster>) {
    let mut inlets = Inlets { commands: Some(plan.commands), news: Some(plan.store.news()) };
    let timer = match AsyncTimer::new(timer) {
        Ok(timer) => timer,
        Err(error) => {
            let _ = plan.start.opened.send(Err(StartError::System(error)));
            return;
        }
    };
    let asides = FuturesUnordered::new();
    let health_reports = plan.health.as_ref().map(|_| {
        let (store, limit) = (Arc::clone(&plan.store), plan.settings.ttl.max(Duration::from_secs(1)));
        let (reports, sending) = HealthReports::new(store, limit, plan.settings.poll_every);
        asides.push(sending);
        reports
    });
    let failback =
        plan.failback.then(|| Failback::new(plan.info.id.clone(), plan.settings.priority, plan.settings.ttl));
    let mut driver = Driver {
        machine: plan.machine,
        info: plan.info,
        store: plan.store,
        status: Arc::clone(&plan.status),
        page: Arc::clone(&plan.page),
        published: Instant::ZERO,
        watchdog,
        roster: Arc::clone(&roster),
        slots: Slots::default(),
        requests: Requests::default(),
        desks: Desks::default(),
        questions: Questions::default(),
        asides,
        timer,
        health: plan.health,
        health_reports,
        observer: plan.observer,
        cut_offs: BinaryHeap::new(),
        settings: plan.settings,
        failback,
        ttl: plan.settings.ttl,
        grace: plan.grace,
        margin: plan.margin,
        start_by: plan.start.limit.map(|limit| clock::now() + limit),
        start: Some(plan.start),
        closers: Vec::new(),
    };
    // Declared after the driver, so dropped before it: waiters find the reason when they wake.
    let _last_words = LastWords { page: plan.page, status: plan.status, roster };
    driver.machine.start(clock::now());
    driver.drive(&mut inlets).await;
}

impl Driver {
    async fn drive(&mut self, inlets: &mut Inlets) {
        loop {
            let now = self.look_at_the_clocks();
            self.do_what_is_due(now);
            self.settle(now);
            self.report_health();
            if self.status.ending.get().is_some() {
                return;
            }
            let input = self.next_input(inlets).await;
            let now = self.look_at_the_clocks();
            self.take(input, inlets, now);
            self.settle(now);
        }
    }

    async fn next_input(&mut self, inlets: &mut Inlets) -> Input {
        let wake = self.wake();
        if wake.is_some_and(|at| at <= clock::now()) || self.timer.set(wake).is_err() {
            return Input::Due;
        }
        let health = async {
            match &mut self.health {
                Some(health) => health.verdict().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.timer.fired() => Input::Due,
            Some(response) = self.requests.next() => Input::Response(response),
            Some(word) = self.questions.next() => Input::Word(word),
            verdict = health => Input::Verdict(verdict),
            command = next(&mut inlets.commands) => Input::Command(command),
            hint = hint(&mut inlets.news) => Input::Hint(hint),
            Some(()) = self.asides.next() => Input::Answered,
        }
    }

    fn take(&mut self, input: Input, inlets: &mut Inlets, now: Instant) {
        match input {
            Input::Due | Input::Answered => {}
            Input::Response(response) => self.respond(response, now),
            Input::Word(word) => self.hear(word, now),
            Input::Verdict(verdict) => {
                if let Some(health) = &mut self.health {
                    health.judge(verdict, now);
                }
            }
            Input::Command(Some(command)) => self.obey(command, now),
            Input::Command(None) => {
                inlets.commands = None;
                self.machine.close(now);
            }
            Input::Hint(Some(hint)) => {
                self.desks.hint(&hint, now);
                self.hint(&hint, now);
            }
            Input::Hint(None) => inlets.news = None,
        }
    }

    fn hint(&mut self, hint: &Hint, now: Instant) {
        match hint {
            Hint::Election(name) => {
                if let Some(key) = self.slots.find(name) {
                    self.machine.hint(key, now);
                }
            }
            Hint::Named { election, node } => {
                let named = *node == self.info.id;
                match self.slots.find(election) {
                    Some(key) if named => self.machine.hint_named(key, now),
                    Some(key) => self.machine.hint_other(key, now),
                    None => {}
                }
            }
            // Who comes and goes is nothing to a candidate: its rivals' silence is.
            Hint::Nodes => {}
            Hint::All => self.machine.hint_all(now),
        }
    }

    /// Tells who counts, and nobody else.
    fn observe(&self, event: &NodeEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    fn respond(&mut self, response: Response, now: Instant) {
        let (verb, took, answered) = (response.verb, response.took, response.outcome.is_ok());
        self.observe(&NodeEvent::StoreAsked { verb, took, answered });
        let renews = response.verb == "renew" && response.outcome.is_ok();
        let outcome = match response.outcome {
            Ok((store, answer)) => {
                self.answered(now);
                self.note_check(response.id, &answer);
                if let Answer::Open(Opening::Opened { ttl }) = &answer {
                    self.ttl = *ttl;
                    if let Some(failback) = &mut self.failback {
                        failback.opened(*ttl);
                    }
                }
                Ok((store, answer.rename(|election| self.slots.find(&election))))
            }
            Err(error) => Err(self.unanswered(response.verb, error, now)),
        };
        self.machine.reply(response.id, outcome, now);
        let until = self.machine.deadline();
        if renews && until > self.published && self.published > Instant::ZERO {
            self.whisper(|| NodeEvent::LeaseRenewed { until });
        }
    }

    /// The store has answered: if it was away, it is back.
    fn answered(&mut self, now: Instant) {
        if let Some(event) = self.requests.trouble.over(now) {
            self.tell(event);
        }
    }

    /// The store has not answered, or refused.
    fn unanswered(&mut self, verb: &'static str, error: StoreError, now: Instant) -> Failure {
        let (failure, event) = self.requests.trouble.arose(verb, error, now);
        if let Some(event) = event {
            self.tell(event);
        }
        failure
    }

    /// Reads both clocks, close enough to each other to be compared. The driver's thread may be
    /// preempted between two readings, which must not look like a leap.
    fn look_at_the_clocks(&mut self) -> Instant {
        const TRIES: u32 = 4;
        for _ in 0..TRIES {
            let before = clock::now();
            let wall = clock::wall();
            let now = clock::now();
            if now.since(before) < self.ttl / 200 {
                self.machine.clock(wall, now);
                return now;
            }
        }
        clock::now()
    }

    fn wake(&self) -> Option<Instant> {
        let health = self.health.as_ref().map(Health::wake);
        let cut_off = self.cut_offs.peek().map(|Reverse((at, _))| *at);
        let start = self.start.as_ref().and(self.start_by);
        let desks = self.desks.wake(clock::now());
        let failback = self.failback.as_ref().and_then(Failback::poll_timeout);
        let own = self.machine.poll_timeout().into_iter().chain(health).chain(cut_off);
        own.chain(start).chain(desks).chain(failback).min()
    }

    fn do_what_is_due(&mut self, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        self.desks.handle_timeout(now);
        self.fail_back_when_due(now);
        if let Some(health) = &mut self.health {
            let well = health.due(now);
            self.machine.health(well, now);
        }
        while self.cut_offs.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, id))) = self.cut_offs.pop()
                && let Some(office) = self.roster.find(id)
                && !office.cut_off()
            {
                tracing::warn!(
                    target: "tenure", election = %office.election, node = %self.info.id,
                    term = office.term.number(),
                    "the term is over, but its work has not stopped: drop every clone of its `Leadership`",
                );
            }
        }
        if self.start.is_some() && self.start_by.is_some_and(|at| at <= now) {
            self.give_up_starting(now);
        }
    }

    /// Carries out everything that the machine wants after an input.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(event) = self.machine.poll_event() {
                self.deliver(event, now);
            }
            if self.publish(now) && !self.attend(now) {
                break;
            }
        }
        while let Some(request) = self.machine.poll_request(self.requests.room(), now) {
            self.requests.send(request, &self.slots, &self.store, &self.info, now);
        }
    }

    /// Publishes the session's deadline. False if a guard has found the one before passed: then
    /// the session is over, and the machine has more to say.
    fn publish(&mut self, now: Instant) -> bool {
        let deadline = self.machine.deadline();
        if deadline == self.published {
            return true;
        }
        if deadline == Instant::ZERO {
            self.page.close(Reason::Closing);
        } else if !self.page.publish(self.published, deadline) {
            self.machine.lapse(now);
            return false;
        }
        self.published = deadline;
        self.watchdog.expect(deadline);
        self.tell_what_is_held();
        true
    }

    fn tell_what_is_held(&self) {
        let held = Held { session: self.machine.session(), until: self.machine.deadline() };
        self.status.held.send_replace(Some(held));
    }

    fn end(&mut self, ending: Ending) {
        let _ = self.status.ending.set(ending);
        for closer in self.closers.drain(..) {
            let _ = closer.send(());
        }
    }
}

async fn next(commands: &mut Option<mpsc::UnboundedReceiver<Command>>) -> Option<Command> {
    match commands {
        Some(commands) => commands.recv().await,
        None => std::future::pending().await,
    }
}

async fn hint(news: &mut Option<Hints>) -> Option<Hint> {
    match news {
        Some(news) => news.next().await,
        None => std::future::pending().await,
    }
}

/// However the driver ends, no guard says yes after it.
struct LastWords {
    page: Arc<Page>,
    status: Arc<Status>,
    roster: Arc<Roster>,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        let reason = match self.status.ending.get() {
            Some(_) => Reason::Closing,
            None => {
                tracing::error!(target: "tenure", "the driver thread died; nothing is led any more");
                Reason::DriverDied
            }
        };
        let _ = self.status.ending.set(Ending::DriverDied);
        self.page.close(reason);
        self.status.held.send_replace(None);
        self.status.fall_silent();
        self.roster.close_all(reason);
        self.roster.cut_off_all();
    }
}
