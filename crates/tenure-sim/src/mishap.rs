//! How faults begin and end, and how everything is mended for the calm phase.

use tenure_core::{Machine, Verb};

use crate::clock::nanos;
use crate::fact::Fact;
use crate::fault::{Fault, Kind};
use crate::node::{Ails, Work};
use crate::world::{What, World};

impl World {
    pub(crate) fn begin_fault(&mut self, index: usize) {
        if self.calm {
            return;
        }
        if self.config.aimed {
            self.aim(index);
        }
        let fault = self.config.faults[index];
        let Fault { node, election, kind, lasts, .. } = fault;
        let role = self.nodes[node].role(election);
        self.coverage.meet(kind, role);
        self.trace.mix(index as u64);
        self.trace.line(self.real, || {
            format!("fault {} n{node} ({role}) e{election} for {:.3}s", kind.name(), lasts as f64 / 1e9)
        });
        match kind {
            Kind::Resign | Kind::Transfer | Kind::Withdraw | Kind::Delete | Kind::Petition | Kind::Close => {
                return self.act_as_user(fault);
            }
            // A step that hides a pause is beyond what can be noticed.
            Kind::WallStep if self.nodes[node].frozen.is_some() => return,
            Kind::WallStep => {
                let step = i64::try_from(lasts).unwrap_or(i64::MAX);
                self.nodes[node].wall += if self.dice.below(2) == 0 { step } else { -step };
                self.nodes[node].stepped = true;
                return;
            }
            Kind::StoreStep => {
                let step = i64::try_from(lasts).unwrap_or(i64::MAX);
                let step = if self.dice.below(2) == 0 { step } else { -step };
                self.store.clock.step(step, self.real);
                return;
            }
            Kind::StepAtHandOver => {
                self.store.clock.step(i64::try_from(lasts).unwrap_or(i64::MAX), self.real);
                self.ambush = Some(election);
                let soon = self.real + self.dice.below(self.config.ttl / 3);
                return self.at(soon, What::HandOver { election });
            }
            Kind::Rollback | Kind::SilentRollback => return self.roll_back(kind == Kind::SilentRollback),
            Kind::Forget => self.store.take_snapshot(),
            Kind::Crash => {
                self.nodes[node].kill();
                return self.at(self.real + lasts, What::Start { node });
            }
            Kind::Stutter => return self.stutter(fault),
            Kind::Nap => return self.nodes[node].ails.nap = lasts,
            Kind::Faint => return self.nodes[node].ails.faint = lasts,
            Kind::Rue => return self.nodes[node].ails.rues = true,
            Kind::Pause => self.nodes[node].paused = true,
            // Nor is a pause that undoes a step which nobody has looked at yet.
            Kind::Freeze if self.nodes[node].stepped => return,
            Kind::Freeze => self.freeze(node),
            _ => self.ail(fault, 1),
        }
        self.at(self.real + lasts, What::FaultEnd(index));
    }

    /// Lets a fault strike whoever leads its election; but slow answers are for all alike.
    fn aim(&mut self, index: usize) {
        let Fault { election, kind, .. } = self.config.faults[index];
        if kind == Kind::Slow {
            return;
        }
        if let Some((leader, _)) = self.leader(election) {
            self.config.faults[index].node = leader;
        }
    }

    pub(crate) fn end_fault(&mut self, index: usize) {
        if self.calm {
            return;
        }
        let fault = self.config.faults[index];
        match fault.kind {
            Kind::Pause => self.resume(fault.node),
            Kind::Freeze => self.thaw(fault.node),
            Kind::Forget => self.roll_back(true),
            _ => self.ail(fault, -1),
        }
    }

    /// Pauses of which each is too short to be noticed, and no renewal in between.
    fn stutter(&mut self, fault: Fault) {
        let (ttl, real) = (nanos(self.nodes[fault.node].config.ttl), self.real);
        let cut = Fault { at: real, lasts: ttl * 2, kind: Kind::Cut, ..fault };
        let pauses =
            (1..9).map(|n| Fault { at: real + n * (ttl / 7), lasts: ttl / 12, kind: Kind::Freeze, ..fault });
        for fault in std::iter::once(cut).chain(pauses) {
            self.config.faults.push(fault);
            self.at(fault.at, What::Fault(self.config.faults.len() - 1));
        }
    }

    /// The leader resigns.
    pub(crate) fn hand_over(&mut self, election: usize) {
        let leader = (0..self.nodes.len()).find(|n| self.nodes[*n].role(election) == "leading");
        if let Some(leader) = leader.filter(|leader| !self.calm && self.nodes[*leader].awake()) {
            let key = self.nodes[leader].keys[election];
            self.drive(leader, |machine, now| {
                let _ = machine.resign(key, None, now);
            });
        }
    }

    /// Whoever is elected now is cut off, if that was to happen.
    pub(crate) fn spring_ambush(&mut self, node: usize, election: usize) {
        if self.ambush.take_if(|ambushed| *ambushed == election).is_some() && !self.calm {
            let (at, lasts) = (self.real, self.config.ttl * 2);
            self.config.faults.push(Fault { at, lasts, node, election, kind: Kind::Cut });
            self.at(at, What::Fault(self.config.faults.len() - 1));
        }
    }

    fn roll_back(&mut self, silent: bool) {
        // Nobody notices a place in a line that comes back after its candidate withdrew, nor a lease after its holder
        // resigned, if that session never missed anything: that is beyond what can be promised.
        let mut left = Vec::new();
        for node in 0..self.nodes.len() {
            let Some(session) = self.nodes[node].machine.as_ref().and_then(Machine::session) else {
                continue;
            };
            left.extend((0..self.config.elections).filter_map(|election| {
                let gone = match self.nodes[node].role(election) {
                    "idle" => true,
                    // The answer is still on its way.
                    "resigning" => !self.store.knows(election, session),
                    _ => false,
                };
                gone.then_some((election, session))
            }));
        }
        self.store.roll_back(silent);
        for (election, session) in left {
            self.store.forget_candidate(election, session);
        }
        self.facts.push(Fact::RolledBack { silent });
        self.store.take_snapshot();
    }

    fn ail(&mut self, fault: Fault, by: i32) {
        let node = &mut self.nodes[fault.node];
        let counts: &mut [&mut u32] = match fault.kind {
            Kind::Cut => &mut [&mut node.ails.mute, &mut node.ails.deaf],
            Kind::CutRequests => &mut [&mut node.ails.mute],
            Kind::CutReplies => &mut [&mut node.ails.deaf],
            Kind::Slow => &mut [&mut node.ails.slow],
            Kind::Fade => {
                node.ails.dead_from = self.real + self.config.ttl;
                &mut [&mut node.ails.fades]
            }
            Kind::Duplicate => &mut [&mut node.ails.twice],
            Kind::Unwell => &mut [&mut node.ails.unwell],
            Kind::Clumsy => &mut [&mut node.ails.clumsy],
            Kind::StoreRefuses => &mut [&mut self.store_ails.refuses],
            Kind::StoreHangs => &mut [&mut self.store_ails.hangs],
            Kind::StoreMute => &mut [&mut self.store_ails.mute],
            Kind::NoNews => &mut [&mut self.store_ails.no_news],
            _ => &mut [],
        };
        for count in counts {
            **count = count.saturating_add_signed(by);
        }
        for node in &mut self.nodes {
            node.connected_since = self.real;
        }
        if fault.kind == Kind::Unwell {
            self.tell_health(fault.node);
        }
    }

    pub(crate) fn tell_health(&mut self, node: usize) {
        let well = self.nodes[node].ails.unwell == 0;
        if self.nodes[node].awake() && self.nodes[node].ails.told_unwell == well {
            self.nodes[node].ails.told_unwell = !well;
            self.drive(node, |machine, now| machine.health(well, now));
        }
    }

    /// What a node's user or fate had in store for the moment of this request.
    pub(crate) fn spring(&mut self, node: usize, verb: &Verb) {
        let life = self.nodes[node].life;
        match verb {
            Verb::Renew { .. } if self.nodes[node].ails.nap > 0 => {
                let lasts = std::mem::take(&mut self.nodes[node].ails.nap);
                self.nodes[node].paused = true;
                self.at(self.real + lasts, What::Resume { node });
            }
            // Not if that would undo a step which nobody has looked at yet.
            Verb::Open { .. } if self.nodes[node].ails.faint > 0 && !self.nodes[node].stepped => {
                let lasts = std::mem::take(&mut self.nodes[node].ails.faint);
                self.freeze(node);
                self.at(self.real + lasts, What::Thaw { node });
            }
            Verb::Claim { election, .. } if self.nodes[node].ails.rues => {
                self.nodes[node].ails.rues = false;
                self.at(self.real, What::Withdraw { node, life, election: election.index() });
            }
            _ => {}
        }
    }

    pub(crate) fn resume(&mut self, node: usize) {
        if !self.nodes[node].paused || self.nodes[node].frozen.is_some() {
            return;
        }
        self.nodes[node].paused = false;
        self.nodes[node].resumed = self.real;
        self.nodes[node].connected_since = self.real;
        self.trace.line(self.real, || format!("n{node} goes on"));
        if self.nodes[node].machine.is_none() {
            return;
        }
        for what in std::mem::take(&mut self.nodes[node].held) {
            self.at(self.real, what);
        }
        // Whatever was missed: the driver's timer is overdue.
        self.tell_health(node);
        let late = self.dice.below(self.config.latency);
        let at = self.real + late;
        self.nodes[node].alarm = Some(at);
        self.at(at, What::Wake { node });
    }

    /// The machine stops, and its boot clock with it.
    fn freeze(&mut self, node: usize) {
        let real = self.real;
        self.nodes[node].paused = true;
        self.nodes[node].frozen.get_or_insert(real);
        self.nodes[node].clock.stop(real);
    }

    /// The machine runs again. Its boot clock knows nothing of the pause; its wall clock does.
    pub(crate) fn thaw(&mut self, node: usize) {
        let Some(since) = self.nodes[node].frozen.take() else { return };
        let real = self.real;
        self.nodes[node].clock.go_on(real);
        self.nodes[node].wall += i64::try_from(real - since).unwrap_or(i64::MAX);
        self.nodes[node].paused = false;
        if self.nodes[node].machine.is_some() {
            // The driver looks at its clocks before anything else gets to run.
            self.drive(node, tenure_core::Machine::handle_timeout);
        }
        self.nodes[node].paused = true;
        self.resume(node);
    }

    fn act_as_user(&mut self, fault: Fault) {
        let Fault { node, election, kind, lasts, .. } = fault;
        if matches!(kind, Kind::Delete | Kind::Petition) {
            if self.store_ails.refuses == 0 && self.store_ails.hangs == 0 {
                let to = (lasts % 2 == 0).then(|| self.nodes[node].name.clone());
                match kind {
                    Kind::Delete => _ = self.store.delete(election, to.is_some()),
                    _ => self.store.petition(election, to),
                }
                self.after_store();
            }
            return;
        }
        let leader = (0..self.nodes.len()).find(|n| self.nodes[*n].role(election) == "leading");
        let node = if matches!(kind, Kind::Resign | Kind::Transfer) { leader.unwrap_or(node) } else { node };
        if !self.nodes[node].awake() {
            return;
        }
        let key = self.nodes[node].keys[election];
        if kind != Kind::Close && !self.nodes[node].config.persistent {
            self.nodes[node].wants[election] = false;
        }
        match kind {
            Kind::Resign => self.drive(node, |machine, now| {
                let _ = machine.resign(key, None, now);
            }),
            Kind::Transfer => {
                let to = usize::try_from(lasts).unwrap_or(0) % self.nodes.len();
                let to = self.nodes[to].name.clone();
                self.drive(node, |machine, now| {
                    let _ = machine.resign(key, Some(to), now);
                });
            }
            Kind::Withdraw => self.withdraw(node, election),
            _ => self.drive(node, tenure_core::Machine::close),
        }
    }

    /// Everything is mended, and stays so; in some runs, except for the health of one application, whichever it is.
    pub(crate) fn mend(&mut self) {
        self.calm = true;
        self.store_ails = crate::world::StoreAils::default();
        if self.config.division.is_none() && self.dice.below(3) == 0 {
            let node = self.dice.below(self.nodes.len() as u64);
            self.unhealthy = usize::try_from(node).ok();
        }
        for node in 0..self.nodes.len() {
            let told_unwell = self.nodes[node].ails.told_unwell;
            let unwell = u32::from(self.unhealthy == Some(node));
            self.nodes[node].ails = Ails { told_unwell, unwell, ..Ails::default() };
            let real = self.real;
            self.thaw(node);
            self.resume(node);
            self.tell_health(node);
            if self.nodes[node].config.persistent {
                self.nodes[node].wants.fill(true);
            }
            self.nodes[node].connected_since = real;
            self.start(node);
            let life = self.nodes[node].life;
            for election in 0..self.config.elections {
                let idle = self.nodes[node].role(election) == "idle";
                if self.nodes[node].wants[election] && idle && self.nodes[node].work[election] == Work::None {
                    self.at(real, What::Stand { node, life, election });
                }
            }
        }
    }
}
