//! The calm phase: faults have stopped, and now progress is demanded, within the bounds of L1 to L3.

use tenure_core::{ExpiryJudge, Machine, News, SessionId, Term};

use crate::clock::{Real, nanos};
use crate::config::Ages;
use crate::invariants::Violation;
use crate::node::SimNode;
use crate::world::{What, World};

/// Where the calm phase has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Mend,
    Converge,
    Stay,
    BlipBegins,
    BlipEnds,
    BlipOver,
    HandOver,
    Crash,
    Leave,
    Done,
}

/// The calm phase of a run.
#[derive(Debug)]
pub struct Calm {
    step: Step,
    leaders: Vec<(usize, Term)>,
    /// No notification reaches anybody while the leaders resign.
    unnotified: bool,
    crash: Option<usize>,
    dead: Option<SessionId>,
}

impl Default for Calm {
    fn default() -> Self {
        Self { step: Step::Mend, leaders: Vec::new(), unnotified: false, crash: None, dead: None }
    }
}

impl Calm {
    /// Takes the next step. `Ok(false)`: the run is over.
    ///
    /// # Errors
    /// The promise of progress that was broken.
    pub fn advance(&mut self, world: &mut World) -> Result<bool, Violation> {
        let ttl = world.config.ttl;
        let (next, pause) = match self.step {
            Step::Mend => {
                world.mend();
                let asks = world.nodes.iter().any(|node| node.config.failback);
                let failback = if asks { world.config.longest(ttl) * 3 + world.takeover_delay() } else { 0 };
                (Step::Converge, world.config.longest(ttl) * 5 + world.takeover_delay() + failback)
            }
            Step::Converge => {
                self.leaders = (0..world.config.elections)
                    .map(|e| world.leader(e).ok_or_else(|| nobody(e, "after the faults had stopped")))
                    .collect::<Result<_, _>>()?;
                nobody_unhealthy_stands(world)?;
                the_preferred_lead(world)?;
                (Step::Stay, ttl * 2)
            }
            Step::Stay => {
                self.unmoved(world, "although nothing happened")?;
                the_living_are_seen(world)?;
                // From here on others lead for a reason. And a candidate that only reads may claim when the store is
                // away for a moment: only then does the store know that it stands, and a leader can make way for it.
                world.fails_back = false;
                (Step::BlipBegins, world.dice.below(ttl / 2))
            }
            Step::BlipBegins => {
                let silent = world.dice.below(2) == 0;
                world.store_ails.refuses = u32::from(!silent);
                world.store_ails.hangs = u32::from(silent);
                (Step::BlipEnds, world.bearable_outage())
            }
            Step::BlipEnds => {
                world.store_ails = crate::world::StoreAils::default();
                (Step::BlipOver, ttl)
            }
            Step::BlipOver => {
                self.unmoved(world, "although the store was away only for a moment (L3)")?;
                let bound = self.resign_all(world);
                (Step::HandOver, bound)
            }
            Step::HandOver => {
                self.handed_over(world)?;
                world.store_ails.no_news = 0;
                // Whoever was not told of the new leader cannot time it yet.
                let bound = if self.unnotified { 0 } else { self.crash_one(world) };
                (Step::Crash, bound)
            }
            Step::Crash => {
                if self.crash.is_some() {
                    for e in 0..world.config.elections {
                        world
                            .leader(e)
                            .ok_or_else(|| nobody(e, "in time after its leader was killed (L1)"))?;
                    }
                }
                let bound = self.kill_another(world);
                (Step::Leave, bound)
            }
            Step::Leave => {
                self.the_dead_are_retired(world)?;
                (Step::Done, 0)
            }
            Step::Done => return Ok(false),
        };
        world.trace.line(world.real, || format!("calm: {:?} is over", self.step));
        self.step = next;
        let at = world.real + pause;
        world.at(at, What::Calm);
        Ok(true)
    }

    fn unmoved(&self, world: &World, although: &str) -> Result<(), Violation> {
        for (election, before) in self.leaders.iter().enumerate() {
            let now = world.leader(election);
            if now != Some(*before) {
                let how = format!("e{election} went from {before:?} to {now:?} {although}");
                return Err(Violation { promise: "L3 leaders stay", how });
            }
        }
        Ok(())
    }

    /// Every leader resigns, by itself or because it is asked to; says by when somebody else must lead.
    fn resign_all(&mut self, world: &mut World) -> Real {
        let asked = world.dice.below(2) == 0;
        self.unnotified = world.config.seed.is_multiple_of(2) && self.all_successors_are_known(world);
        world.store_ails.no_news = u32::from(self.unnotified);
        for (election, (leader, _)) in self.leaders.iter().enumerate() {
            let key = world.nodes[*leader].keys[election];
            // Its user takes a rest, so as not to win again.
            world.nodes[*leader].wants[election] = false;
            if asked {
                world.store.petition(election, None);
            } else {
                world.drive(*leader, |machine, now| {
                    let _ = machine.resign(key, None, now);
                });
            }
        }
        world.after_store();
        // A leader whom nobody tells hears of it with its next renewal, and so does a successor.
        let renewal =
            world.config.longest(world.config.longest_of(|node| node.renew_every)) + world.reaction();
        let hears = if asked { renewal } else { 0 };
        let learns = if self.unnotified { renewal } else { 0 };
        let stop = world.config.longest_of(|node| node.stop_margin) / 4;
        // An unhealthy node opens no session. One that it had before the store went back is still there, and whoever
        // makes way may leave the lease to it, unless the store passes over it: then others wait for a ttl.
        let open = |node: usize| world.nodes[node].machine.as_ref().is_some_and(|m| m.session().is_some());
        let absent = world.unhealthy.is_some_and(|node| !open(node));
        let passed_over = !world.config.strict_line;
        let unheeded =
            if asked && absent && !passed_over { world.config.longest(world.config.ttl) } else { 0 };
        hears + learns + unheeded + stop + world.takeover_delay() + world.reaction() * 3
    }

    /// Whether every election has a candidate that the store knows of, and takes for alive: to that one the lease is
    /// passed on, and its next renewal tells.
    fn all_successors_are_known(&self, world: &World) -> bool {
        let told = !world.config.strict_line && world.config.capabilities.news == News::Push;
        // If the rates of clocks differ by more, a store may find half of a ttl gone before the next renewal.
        let timely = world.config.drift <= 100;
        let known = |election: usize, node: usize| {
            let session = world.nodes[node].machine.as_ref().and_then(Machine::session);
            let leads = self.leaders[election].0 == node;
            !leads && session.is_some_and(|session| world.store.stands(election, session))
        };
        told && timely && (0..self.leaders.len()).all(|e| (0..world.nodes.len()).any(|n| known(e, n)))
    }

    fn handed_over(&mut self, world: &mut World) -> Result<(), Violation> {
        for election in 0..world.config.elections {
            let (old, _) = self.leaders[election];
            let others = (0..world.nodes.len()).filter(|n| *n != old && Some(*n) != world.unhealthy);
            let willing =
                others.filter(|n| world.nodes[*n].wants[election] && world.nodes[*n].config.eligible);
            let unchanged = world.leader(election) == Some(self.leaders[election]);
            if unchanged || (willing.count() > 0 && world.leader(election).is_none()) {
                let how = if unchanged { "still leads" } else { "has no successor" };
                return Err(Violation {
                    promise: "L2 planned hand-over",
                    how: format!("n{old} {how} in e{election}, long after it was to resign"),
                });
            }
        }
        Ok(())
    }

    /// Kills the leader of the first election; says by when others must lead all that it led.
    fn crash_one(&mut self, world: &mut World) -> Real {
        let Some((leader, _)) = world.leader(0) else { return 0 };
        // Those that resigned stand again, and are given the time to know the new leader well.
        self.crash = None;
        let stands = |world: &World, n: usize, e: usize| {
            let able = n != leader && Some(n) != world.unhealthy;
            able && matches!(world.nodes[n].role(e), "waiting" | "asking")
        };
        let followed = (0..world.config.elections)
            .all(|e| world.leader(e).is_some() && (0..world.nodes.len()).any(|n| stands(world, n, e)));
        let known = world.nodes[leader].machine.as_ref().is_some_and(|machine| machine.session().is_some());
        if !followed || !known {
            return 0;
        }
        self.crash = Some(leader);
        world.trace.line(world.real, || format!("calm: n{leader} is killed"));
        world.nodes[leader].kill();
        world.nodes[leader].wants.fill(false);
        // Whatever is left of the ttl is at most the ttl itself, from now.
        let ttl = nanos(world.nodes[leader].config.ttl);
        let rate = world.slowest();
        let poll = world.config.longest_of(|node| node.poll_every);
        let renewal = world.config.longest_of(|node| node.renew_every) * 11 / 10;
        let look = if world.config.renewals_tell { poll.max(renewal) } else { poll };
        let sight = if world.config.ages == Ages::Exact { 0 } else { look.max(world.config.ttl / 6) };
        let judged = match (world.config.capabilities.expiry, world.config.capabilities.news) {
            (ExpiryJudge::Store, News::Poll) => world.config.tick + world.config.longest(poll),
            (ExpiryJudge::Store, News::Push) => world.config.tick,
            (ExpiryJudge::Candidate, _) => 0,
        };
        // A candidate that sees the lease freed by another's take-over counts its delay from then.
        (ttl + sight) * 1000 / rate
            + judged
            + world.takeover_delay() * 2
            + world.trip() * 4
            + world.config.latency * 2
            + world.config.ttl / 50
    }
}

impl Calm {
    /// Kills a node that does not lead, if anybody watches; says by when that must be known.
    fn kill_another(&mut self, world: &mut World) -> Real {
        let leads = |node: usize| {
            (0..world.config.elections).any(|e| world.nodes[node].check(e, world.real).is_some())
        };
        let session = |node: usize| {
            let session = world.nodes[node].machine.as_ref()?.session()?;
            world.store.live(session).then_some(session)
        };
        let victim =
            (0..world.nodes.len()).find_map(|node| Some((node, session(node).filter(|_| !leads(node))?)));
        let watched = (0..world.nodes.len()).any(|node| world.nodes[node].watch.is_some());
        let Some((victim, session)) = victim.filter(|_| watched) else { return 0 };
        self.dead = Some(session);
        world.trace.line(world.real, || format!("calm: n{victim} is killed"));
        let ttl = world.nodes[victim].config.ttl;
        world.nodes[victim].kill();
        world.nodes[victim].wants.fill(false);
        // The look that shows its last pulse, its ttl from then, and the look that finds it silent.
        let look = world.config.longest_of(|node| node.look_every.unwrap_or_default());
        let tick =
            if world.config.capabilities.expiry == ExpiryJudge::Store { world.config.tick + look } else { 0 };
        world.config.longest(look + nanos(ttl) + tick) + world.trip() * 8 + world.config.latency * 6
    }

    /// Who has died is found silent by all who watch, and retired by the leader if it does.
    fn the_dead_are_retired(&self, world: &World) -> Result<(), Violation> {
        let Some(dead) = self.dead else { return Ok(()) };
        let broken = |how| Err(Violation { promise: "the dead are retired", how });
        if world.is_cleaned_up() && world.store.live(dead) {
            return broken(format!("{dead:?} is live long after its node was killed"));
        }
        let sees =
            |node: &SimNode| node.watch.as_ref().is_some_and(|watch| watch.view.contains(&(dead, true)));
        match world.nodes.iter().position(sees) {
            Some(node) => broken(format!("n{node} takes {dead:?} for live long after its node was killed")),
            None => Ok(()),
        }
    }
}

/// Whoever watches sees every node that has a session, and finds none of them silent.
fn the_living_are_seen(world: &World) -> Result<(), Violation> {
    let sessions = world.nodes.iter().filter_map(|node| node.machine.as_ref()?.session());
    let sessions: Vec<SessionId> = sessions.filter(|session| world.store.live(*session)).collect();
    for (n, node) in world.nodes.iter().enumerate() {
        let Some(watch) = &node.watch else { continue };
        if let Some(session) = sessions.iter().find(|session| !watch.view.contains(&(**session, true))) {
            let how = format!("n{n} does not see that {session:?} lives");
            return Err(Violation { promise: "the living are seen", how });
        }
    }
    Ok(())
}

/// No candidate that fails back stands behind a leader of lower priority.
fn the_preferred_lead(world: &World) -> Result<(), Violation> {
    for election in 0..world.config.elections {
        let Some((leader, _)) = world.leader(election) else { continue };
        let waits = |node: &SimNode| {
            let session = node.machine.as_ref().and_then(Machine::session);
            let stands = session.is_some_and(|session| world.store.stands(election, session));
            node.config.failback && node.ails.unwell == 0 && stands
        };
        let priority = world.nodes[leader].config.priority;
        let behind = world.nodes.iter().position(|node| waits(node) && node.config.priority > priority);
        if let Some(behind) = behind {
            let how =
                format!("n{behind} still stands behind n{leader} in e{election}, whose priority is lower");
            return Err(Violation { promise: "the preferred lead", how });
        }
    }
    Ok(())
}

/// A candidate that cannot lead is in nobody's way: the store does not have it in the line.
fn nobody_unhealthy_stands(world: &World) -> Result<(), Violation> {
    let machine = world.unhealthy.and_then(|node| world.nodes[node].machine.as_ref());
    let Some(session) = machine.and_then(Machine::session) else { return Ok(()) };
    match (0..world.config.elections).find(|election| world.store.stands(*election, session)) {
        Some(election) => {
            let how = format!("{session:?} is unhealthy, and stands for e{election}");
            Err(Violation { promise: "the unwell stand in no line", how })
        }
        None => Ok(()),
    }
}

fn nobody(election: usize, when: &str) -> Violation {
    Violation { promise: "L1 somebody leads", how: format!("nobody leads e{election} {when}") }
}

impl World {
    /// Who leads, if somebody does.
    #[must_use]
    pub fn leader(&self, election: usize) -> Option<(usize, Term)> {
        self.nodes.iter().enumerate().find_map(|(n, node)| Some((n, node.check(election, self.real)?)))
    }

    fn slowest(&self) -> u64 {
        let nodes = self.nodes.iter().map(|node| node.clock.rate());
        nodes.chain([self.config.store_rate]).min().unwrap_or(1000)
    }

    fn takeover_delay(&self) -> Real {
        let delays = self.nodes.iter().map(|node| nanos(node.config.takeover_delay));
        self.config.longest(delays.max().unwrap_or(0))
    }

    /// The longest way of a message to the store, or back.
    fn trip(&self) -> Real {
        self.config.network.least + self.config.network.spread
    }

    /// Two round trips, a look where nobody tells, and drivers that are woken late.
    fn reaction(&self) -> Real {
        let look = match self.config.capabilities.news {
            News::Push => 0,
            News::Poll => self.config.longest(self.config.longest_of(|node| node.poll_every)),
        };
        look + self.trip() * 4 + self.config.latency * 3
    }

    /// An outage that every leader must bear: shorter than deadline − renewal interval − round trip.
    fn bearable_outage(&self) -> Real {
        let leases = self.nodes.iter().map(|node| {
            let settings = node.settings(self.config.drift);
            let spare = nanos(settings.lease(settings.ttl)) - nanos(settings.renew_every);
            let trip = self.trip() * 2;
            self.config.shortest(spare).saturating_sub(trip + self.config.latency * 2)
        });
        leases.min().unwrap_or(0) * 7 / 10
    }
}
