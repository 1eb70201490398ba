//! Supervised work: which child is started, restarted, told to stop and aborted, and when all of it is
//! given up. Decided here, with time as an argument; whoever owns the tasks only obeys.
//!
//! Children are started in order, each after the one before has come up, and told to stop in reverse.
//! A child that ends is started again, alone, after a pause that doubles. More restarts within a window
//! than the budget has, and the whole work is given up: another node may fare better.

use std::collections::VecDeque;
use std::time::Duration;

use crate::settings::{SettingsError, at_most};
use crate::time::Instant;

/// How work is supervised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisionRules {
    /// The children, in the order in which they are started.
    pub children: Vec<ChildRules>,
    /// So many restarts within [`within`](SupervisionRules::within), of all children together, are borne.
    pub restarts: u32,
    /// How long a restart counts.
    pub within: Duration,
    /// The pause before a child's first restart. It doubles with each further one, until the child has
    /// run for as long as a restart counts.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

/// How one child is supervised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildRules {
    /// How long it may take to say that it is up. `None`: it is up as soon as it is started.
    pub start_within: Option<Duration>,
    /// How long it may take to stop once it is told to. It is then aborted.
    pub stop_within: Duration,
}

impl SupervisionRules {
    /// The defaults: no children, five restarts within a minute, pauses from 100 ms to 10 s.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            children: Vec::new(),
            restarts: 5,
            within: Duration::from_secs(60),
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
        }
    }

    /// Refuses rules under which a child that never comes up would be restarted for ever, because its
    /// restarts are too far apart to exceed the budget: a leader that does nothing.
    ///
    /// # Errors
    /// What the restarts may take in all, and its limit.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let pauses: Duration = (1..=self.restarts).map(|failures| self.pause(failures)).sum();
        let starts = self.children.iter().filter_map(|child| child.start_within).max().unwrap_or_default();
        let because = ", `within`, or the budget could never be used up";
        let advice = "raise `within`, or lower `restarts`, the pauses or `start_within`";
        let spent = pauses.saturating_add(starts.saturating_mul(self.restarts));
        at_most("restarts × start_within + their pauses", spent, self.within, because, advice)
    }

    /// How long an orderly stop takes at most, if everything can be aborted.
    #[must_use]
    pub fn longest_stop(&self) -> Duration {
        self.children.iter().map(|child| child.stop_within).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The pause after so many failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(doubled).min(self.longest_pause)
    }
}

impl Default for SupervisionRules {
    fn default() -> Self {
        Self::new()
    }
}

/// What the owner of the tasks is to do. Children are named by their place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start this child.
    Start(usize),
    /// Tell this child to stop.
    Stop(usize),
    /// This child has had its time, to start or to stop: abort it. Its end is still waited for.
    Abort(usize),
    /// This child has used up the budget: say that the work is given up. It is being stopped.
    GiveUp(usize),
}

/// How fast work is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// In reverse order, one after the other.
    InOrder,
    /// All at once: there is no time for order.
    AtOnce,
}

/// What a child is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// Its turn to start has not come.
    Waiting,
    /// Started, and not up yet.
    Starting {
        /// When it is aborted.
        until: Instant,
    },
    /// Up.
    Running {
        /// Since when.
        since: Instant,
    },
    /// It ended, and is to be started again.
    BackingOff {
        /// When.
        until: Instant,
    },
    /// Told to stop.
    Stopping {
        /// When it is aborted.
        until: Instant,
    },
    /// Aborted, and not at its end yet.
    Aborted,
    /// At its end, for good.
    Stopped,
}

#[derive(Clone, Debug)]
struct Child {
    state: ChildState,
    /// How often in a row it has ended.
    failures: u32,
}

/// The children of one term, from the first start to the last end.
#[derive(Clone, Debug)]
pub struct Supervision {
    rules: SupervisionRules,
    children: Vec<Child>,
    /// How many have come up, in order: the next one is the next to be started.
    up: usize,
    /// When children were restarted, as long as that counts.
    restarts: VecDeque<Instant>,
    stopping: Option<Pace>,
    orders: VecDeque<Order>,
}

impl Supervision {
    /// Begins with the first child.
    #[must_use]
    pub fn begin(rules: SupervisionRules, now: Instant) -> Self {
        let child = Child { state: ChildState::Waiting, failures: 0 };
        let children = vec![child; rules.children.len()];
        let (restarts, orders) = (VecDeque::new(), VecDeque::new());
        let mut supervision = Self { rules, children, up: 0, restarts, stopping: None, orders };
        supervision.start_next(now);
        supervision
    }

    /// What is to be done next.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// When [`handle_timeout`](Supervision::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.children.iter().filter_map(|child| child.state.until()).min()
    }

    /// What a child is doing.
    #[must_use]
    pub fn state(&self, child: usize) -> ChildState {
        self.children[child].state
    }

    /// Whether everything has stopped, for good.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stopping.is_some() && self.children.iter().all(|child| child.state == ChildState::Stopped)
    }

    /// A child says that it is up.
    pub fn ready(&mut self, child: usize, now: Instant) {
        if matches!(self.children[child].state, ChildState::Starting { .. }) {
            self.come_up(child, now);
        }
    }

    /// A child has ended, in whatever way.
    pub fn ended(&mut self, child: usize, now: Instant) {
        if self.stopping.is_some() {
            self.children[child].state = ChildState::Stopped;
            return self.go_on_stopping(now);
        }
        while self.restarts.front().is_some_and(|&at| now.since(at) > self.rules.within) {
            self.restarts.pop_front();
        }
        if self.restarts.len() >= usize::try_from(self.rules.restarts).unwrap_or(usize::MAX) {
            self.children[child].state = ChildState::Stopped;
            self.orders.push_back(Order::GiveUp(child));
            return self.stop(Pace::InOrder, now);
        }
        self.restarts.push_back(now);
        let ran = match self.children[child].state {
            ChildState::Running { since } => now.since(since),
            _ => Duration::ZERO,
        };
        let one = &mut self.children[child];
        one.failures = if ran >= self.rules.within { 1 } else { one.failures.saturating_add(1) };
        one.state = ChildState::BackingOff { until: now + self.rules.pause(one.failures) };
    }

    /// Everything is to stop. Asked again, the faster pace counts.
    pub fn stop(&mut self, pace: Pace, now: Instant) {
        self.stopping = self.stopping.max(Some(pace));
        for child in &mut self.children {
            if matches!(child.state, ChildState::Waiting | ChildState::BackingOff { .. }) {
                child.state = ChildState::Stopped;
            }
        }
        self.go_on_stopping(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for child in 0..self.children.len() {
            match self.children[child].state {
                ChildState::BackingOff { until } if until <= now => self.start(child, now),
                ChildState::Starting { until } | ChildState::Stopping { until } if until <= now => {
                    self.children[child].state = ChildState::Aborted;
                    self.orders.push_back(Order::Abort(child));
                }
                _ => {}
            }
        }
        self.go_on_stopping(now);
    }

    fn start_next(&mut self, now: Instant) {
        if self.up < self.children.len() {
            self.start(self.up, now);
        }
    }

    fn start(&mut self, child: usize, now: Instant) {
        self.orders.push_back(Order::Start(child));
        match self.rules.children[child].start_within {
            Some(patience) => self.children[child].state = ChildState::Starting { until: now + patience },
            None => self.come_up(child, now),
        }
    }

    fn come_up(&mut self, child: usize, now: Instant) {
        self.children[child].state = ChildState::Running { since: now };
        if child == self.up {
            self.up += 1;
            self.start_next(now);
        }
    }

    /// From the last child to the first. One that was aborted is not waited for before the next is told:
    /// it may be stuck, and the others must not run on because of it.
    fn go_on_stopping(&mut self, now: Instant) {
        let Some(pace) = self.stopping else { return };
        for child in (0..self.children.len()).rev() {
            if matches!(self.children[child].state, ChildState::Starting { .. } | ChildState::Running { .. })
            {
                let until = now + self.rules.children[child].stop_within;
                self.children[child].state = ChildState::Stopping { until };
                self.orders.push_back(Order::Stop(child));
            }
            if pace == Pace::InOrder && matches!(self.children[child].state, ChildState::Stopping { .. }) {
                return;
            }
        }
    }
}

impl ChildState {
    /// When something is due, if nothing happens before.
    const fn until(&self) -> Option<Instant> {
        match self {
            Self::Starting { until } | Self::BackingOff { until } | Self::Stopping { until } => Some(*until),
            Self::Waiting | Self::Running { .. } | Self::Aborted | Self::Stopped => None,
        }
    }
}
