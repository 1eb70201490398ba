//! A simulated node: the real machine, a clock, and a user with work to do.

use std::time::Duration;

use tenure_core::{
    Capabilities, Drift, ElectionKey, Failback, Instant, Machine, NodeId, Planted, Settings, Term,
};

use crate::clock::{Clock, Real};
use crate::config::NodeConfig;
use crate::desk::Desk;
use crate::failback;
use crate::watch::Watch;
use crate::world::What;

/// What the user's work is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    None,
    /// Runs.
    Running,
    /// Was told to stop, and has not stopped yet.
    Stopping,
}

/// One node of the world.
#[derive(Debug)]
pub struct SimNode {
    /// How it is configured.
    pub config: NodeConfig,
    /// Its name.
    pub name: NodeId,
    /// Its boot clock.
    pub clock: Clock,
    /// Its wall clock, beyond the boot clock.
    pub wall: i64,
    /// Its machine, while it is up.
    pub machine: Option<Machine>,
    /// What it has to do with partitions, in a run that is about them.
    pub desk: Option<Box<Desk>>,
    /// What it knows of the cluster, if it watches it.
    pub watch: Option<Watch>,
    /// When it asks leaders of lower priority to make way, if it does.
    pub failback: Option<Failback>,
    /// The elections, by index.
    pub keys: Vec<ElectionKey>,
    /// Counts its lives.
    pub life: u32,
    /// When this life first heard from the store.
    pub met: Option<Real>,
    /// When the store executed the oldest request whose answer has reached this life.
    pub earliest: Option<Real>,
    /// Stopped: nothing is dealt with.
    pub paused: bool,
    /// When it last went on.
    pub resumed: Real,
    /// Since when its machine has been paused together with its boot clock.
    pub frozen: Option<Real>,
    /// Its wall clock was stepped, and its machine has not looked at it since.
    pub stepped: bool,
    /// What arrived meanwhile.
    pub held: Vec<What>,
    /// Faults that are on.
    pub ails: Ails,
    /// What its user does, by election.
    pub work: Vec<Work>,
    /// Whether its user wants to lead, by election.
    pub wants: Vec<bool>,
    /// Whether its user waits to lead, by election: from when the node stands until it is elected, withdraws, or the
    /// election ends.
    pub waits: Vec<bool>,
    /// When it last began to stand, by election.
    pub stood: Vec<Real>,
    /// When the machine first learned something of the election in this candidacy.
    pub acquainted: Vec<Option<Real>>,
    /// When the store executed what the machine last learned of the election.
    pub looked: Vec<Real>,
    /// The wake-up that counts.
    pub alarm: Option<Real>,
    /// The wish of the machine that it was set for.
    pub alarm_for: Option<Instant>,
    /// Since when nothing has stood between it and the store.
    pub connected_since: Real,
}

/// Faults of one node that are on, counted, since they may overlap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ails {
    /// Requests are lost.
    pub mute: u32,
    /// Replies are lost.
    pub deaf: u32,
    /// Messages take long.
    pub slow: u32,
    /// Messages take a little long, until the link is dead.
    pub fades: u32,
    /// When it is dead.
    pub dead_from: Real,
    /// Requests arrive twice.
    pub twice: u32,
    /// For how long it will be stopped once it has asked for a renewal.
    pub nap: Real,
    /// For how long its machine will be frozen once it has asked for a session.
    pub faint: Real,
    /// The machine was told that the application is unwell.
    pub told_unwell: bool,
    /// Its user will withdraw once it has claimed.
    pub rues: bool,
    /// The application is unwell.
    pub unwell: u32,
    /// Work stops slowly.
    pub clumsy: u32,
}

impl SimNode {
    /// A node that is down.
    #[must_use]
    pub fn new(config: NodeConfig, name: NodeId, elections: usize) -> Self {
        let clock = Clock::new(config.rate, config.origin);
        Self {
            config,
            name,
            clock,
            wall: 0,
            machine: None,
            desk: None,
            watch: None,
            failback: None,
            keys: Vec::new(),
            life: 0,
            met: None,
            earliest: None,
            paused: false,
            resumed: 0,
            frozen: None,
            stepped: false,
            held: Vec::new(),
            ails: Ails::default(),
            work: vec![Work::None; elections],
            wants: vec![true; elections],
            waits: vec![false; elections],
            stood: vec![0; elections],
            acquainted: vec![None; elections],
            looked: vec![0; elections],
            alarm: None,
            alarm_for: None,
            connected_since: 0,
        }
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self, drift: u16) -> Settings {
        let drift = Drift::from_thousandths(drift).expect("the simulation's drift is possible");
        Settings {
            renew_every: self.config.renew_every,
            poll_every: self.config.poll_every,
            stop_margin: self.config.stop_margin,
            drift,
            takeover_delay: self.config.takeover_delay,
            priority: self.config.priority,
            eligible: self.config.eligible,
            ..Settings::new(self.config.ttl)
        }
    }

    /// Begins a new life with an empty machine.
    pub fn boot(&mut self, capabilities: Capabilities, drift: u16, seed: u64, planted: Planted) {
        self.life += 1;
        let settings = self.settings(drift);
        let machine = Machine::new(self.name.clone(), settings, capabilities, seed);
        let mut machine = machine.expect("the simulation's settings are possible").planted(planted);
        self.keys = (0..self.work.len()).map(|_| machine.add()).collect();
        self.machine = Some(machine);
        self.failback = failback::of(&self.config, &self.name, planted);
        self.waits.fill(false);
        self.work.fill(Work::None);
        self.acquainted.fill(None);
        self.alarm = None;
        self.met = None;
        self.earliest = None;
        self.held.clear();
    }

    /// An answer has reached it.
    pub fn hear(&mut self, executed: Real) {
        self.earliest = Some(self.earliest.map_or(executed, |earliest| earliest.min(executed)));
    }

    /// Ends its life without a word.
    pub fn kill(&mut self) {
        self.machine = None;
        self.desk = None;
        self.watch = None;
        self.work.fill(Work::None);
        self.alarm = None;
        self.held.clear();
    }

    /// What its boot clock shows.
    #[must_use]
    pub fn now(&self, real: Real) -> Instant {
        self.clock.read(real)
    }

    /// What its wall clock shows.
    #[must_use]
    pub fn wall(&self, real: Real) -> Duration {
        // An origin far from zero, so that steps back stay possible.
        let wall = (1u64 << 60).saturating_add(self.now(real).as_nanos()).saturating_add_signed(self.wall);
        Duration::from_nanos(wall)
    }

    /// The term under which it passes its check, if it does.
    #[must_use]
    pub fn check(&self, election: usize, real: Real) -> Option<Term> {
        self.machine.as_ref()?.check(self.keys[election], self.now(real))
    }

    /// Its role in a word.
    #[must_use]
    pub fn role(&self, election: usize) -> &'static str {
        self.machine.as_ref().map_or("none", |machine| machine.role(self.keys[election]))
    }

    /// Whether it is up and dealing with its inputs.
    #[must_use]
    pub fn awake(&self) -> bool {
        self.machine.is_some() && !self.paused
    }
}
