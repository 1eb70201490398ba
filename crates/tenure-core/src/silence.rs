//! How a follower times a holder's silence: the instant from which the lease may be taken.

use std::time::Duration;

use crate::plants::{Plant, Planted};
use crate::record::{Age, Pulse, Stamp};
use crate::time::{Drift, Instant};

/// Since when this node has known the store that answers it. A new epoch begins when the store
/// turns out to be another one, or to have gone back in time: everything seen before is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    pub epoch: u32,
    pub since: Instant,
}

/// When a read left and when its answer came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub sent: Instant,
    pub received: Instant,
}

/// What one candidate has seen of one rival's pulse.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    last: Option<Sight>,
}

#[derive(Clone, Copy, Debug)]
struct Sight {
    stamp: Stamp,
    epoch: u32,
    look: Look,
    clock: Option<Duration>,
    lapses: Instant,
    /// When the pulse was shown, as far as its age can be believed: only to know when to look.
    shown: Option<Instant>,
    /// How long the rival takes from one pulse to the next.
    beat: Option<Duration>,
}

/// How long after its pulse is expected a rival is looked at.
pub(crate) const LATE: Duration = Duration::from_millis(2);

/// When a rival's pulses come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    shown: Instant,
    beat: Duration,
}

impl Rhythm {
    /// Whether someone who acts so often meets a pulse every time, with a tenth of the interval to spare.
    pub fn keeps_step_with(&self, every: Duration) -> bool {
        let beat = self.beat.as_nanos().max(1);
        let pulses = ((every.as_nanos() + beat / 2) / beat).max(1);
        (pulses * beat).abs_diff(every.as_nanos()) <= every.as_nanos() / 10
    }

    /// The last pulse that is expected until then.
    pub fn last_until(&self, until: Instant) -> Instant {
        let pulses = until.since(self.shown).as_nanos() / self.beat.as_nanos().max(1);
        self.shown + self.beat.saturating_mul(u32::try_from(pulses).unwrap_or(u32::MAX))
    }
}

impl Sight {
    /// How long the rival takes from pulse to pulse, going by this one and the one before.
    fn beat_to(&self, pulse: &Pulse, shown: Option<Instant>) -> Option<Duration> {
        if pulse.stamp.session != self.stamp.session {
            return None;
        }
        let pulses = u32::try_from(pulse.stamp.sequence.saturating_sub(self.stamp.sequence)).ok()?;
        match (self.shown, shown, pulses) {
            (Some(before), Some(shown), 1..) => {
                Some((shown.since(before) / pulses).clamp(pulse.ttl / 20, pulse.ttl / 2))
            }
            _ => self.beat,
        }
    }
}

impl Silence {
    /// Takes note of a pulse, and tells from when on its session may be taken for dead.
    ///
    /// The pulse must stay unchanged for the *record's* ttl on our own clock. A read that shows it
    /// for the first time may have crossed the renewal on its way, so silence counts from when the
    /// read was answered; an age that can be believed is taken off.
    pub fn observe(
        &mut self,
        pulse: &Pulse,
        look: Look,
        trust: Trust,
        drift: Drift,
        planted: Planted,
    ) -> Instant {
        let previous = self.last.filter(|sight| sight.epoch == trust.epoch);
        let unnoticed = planted.has(Plant::RenewalUnnoticed);
        let same = |sight: &Sight| {
            sight.stamp == pulse.stamp || (unnoticed && sight.stamp.session == pulse.stamp.session)
        };
        let lapses = match previous {
            Some(sight) if same(&sight) => sight.lapses,
            _ => Self::lapse(pulse, look, previous, trust, drift, planted),
        };
        let clock = match pulse.age {
            Age::Told { clock, .. } => Some(clock),
            Age::Unknown | Age::Exact(_) => None,
        };
        let shown = match pulse.age {
            Age::Unknown => None,
            Age::Exact(age) | Age::Told { age, .. } => Some(look.received - age),
        };
        let beat = previous.and_then(|sight| sight.beat_to(pulse, shown));
        self.last = Some(Sight { stamp: pulse.stamp, epoch: trust.epoch, look, clock, lapses, shown, beat });
        lapses
    }

    /// When to look again in order to see the next pulse fresh. The sooner after it, the less of its age
    /// has to be believed: so a moment after it is expected, and if it is late, after a while as long as
    /// it is late. `None` if nobody can tell.
    pub fn look_at(&self, ttl: Duration, now: Instant) -> Option<Instant> {
        let sight = self.last.as_ref()?;
        let late = LATE.min(ttl / 100);
        let beat = sight.beat.unwrap_or(ttl / 3);
        let due = sight.shown? + beat + late;
        let at = if due > now { due } else { now + now.since(due).max(late) };
        Some(at.min(now + ttl / 2))
    }

    /// How the rival's pulses follow each other, once two have been seen.
    pub fn rhythm(&self) -> Option<Rhythm> {
        let sight = self.last.as_ref()?;
        Some(Rhythm { shown: sight.shown?, beat: sight.beat? })
    }

    /// The pulse that was seen last.
    pub fn stamp(&self) -> Option<Stamp> {
        self.last.map(|sight| sight.stamp)
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        self.last = None;
    }

    fn lapse(
        pulse: &Pulse,
        look: Look,
        previous: Option<Sight>,
        trust: Trust,
        drift: Drift,
        planted: Planted,
    ) -> Instant {
        let from = if planted.has(Plant::SilenceFromSend) { look.sent } else { look.received };
        match pulse.age {
            Age::Unknown => from + pulse.ttl,
            // Even an exact age waits out a full ttl after first contact: a store that was rolled
            // back just now shows old pulses, and its true leader needs that long to notice.
            Age::Exact(age) => {
                let trusted = trust.since + pulse.ttl;
                let lapses = from + pulse.ttl - age;
                if planted.has(Plant::FirstSightTrusted) { lapses } else { lapses.max(trusted) }
            }
            Age::Told { age, .. } => {
                let credit = match previous {
                    _ if planted.has(Plant::StoreClockDecides) => age,
                    None if planted.has(Plant::FirstSightTrusted) => age,
                    Some(sight) => Self::credit(pulse, &sight, look, drift, planted),
                    None => Duration::ZERO,
                };
                from + pulse.ttl.saturating_sub(credit)
            }
        }
    }

    /// How much of a told age is certain.
    ///
    /// Let the pulse be applied at real time `a`, the earlier look be answered by the store at `p` and this one at
    /// `c`, and let all clock rates lie within 1 ± ρ. The holder acts on the pulse for at most `ttl·(1−ρ)/(1+ρ)` on
    /// its own clock, so until `a + ttl/(1+ρ)`. We wait for `ttl − credit` on our clock, so at least until
    /// `c + (ttl − credit)/(1+ρ)`. That is no earlier if
    ///
    /// ```text
    /// credit ≤ (1+ρ)·(c − a)                                                  (1)
    /// ```
    ///
    /// An age by a clock that was not stepped since `a` is `r·(c − a)` with `r ≤ 1+ρ`, and satisfies (1). A step of
    /// `s` between `a` and `c` makes it `r·(c − a) + s`, so we must know a bound of `s`.
    ///
    /// 1. If the earlier look showed *this very session* with a lower sequence, then `p < a`: a step after `a` is a
    ///    step between the two looks. If it showed another session (or a later pulse, on a store that went back),
    ///    `a` may lie before `p`; of a step between `a` and `p` nothing is known, and nothing is credited.
    /// 2. Between the looks the store's clock advances by `clock − before = r·(c − p) + s`. Our own clock shows that
    ///    at least `sent − received` (sent now, received then) has passed, so `c − p ≥ (sent − received)/(1+ρ)`,
    ///    and `r·(c − p) ≥ (sent − received)·(1−ρ)/(1+ρ)`, which is `slow(sent − received)`.
    ///    So `gained = (clock − before) − slow(sent − received) ≥ s`, and `age − gained ≤ r·(c − a)`: (1) holds.
    /// 3. A step back between `a` and `c` makes the age smaller, which is safe. One between `p` and `a` leaves it
    ///    right. Two opposite steps between two looks are beyond what can be seen, except if the store claims an age
    ///    that reaches back beyond the earlier look, or if its clock shows less than then: nothing is credited.
    fn credit(pulse: &Pulse, previous: &Sight, look: Look, drift: Drift, planted: Planted) -> Duration {
        let (Age::Told { age, clock }, Some(before)) = (pulse.age, previous.clock) else {
            return Duration::ZERO;
        };
        let Stamp { session, sequence } = previous.stamp;
        let newer = session == pulse.stamp.session && sequence < pulse.stamp.sequence;
        if !newer && !planted.has(Plant::CreditAcrossSessions) {
            return Duration::ZERO;
        }
        let Some(advanced) = clock.checked_sub(before).filter(|advanced| age <= *advanced || !newer) else {
            return Duration::ZERO;
        };
        let elapsed = drift.slow(look.sent.since(previous.look.received));
        let gained = advanced.saturating_sub(elapsed);
        age.saturating_sub(gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SessionId;

    const TTL: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn look(sent: u64, received: u64) -> Look {
        Look { sent: at(sent), received: at(received) }
    }

    fn pulse(sequence: u64, age: Age) -> Pulse {
        Pulse { stamp: Stamp { session: SessionId::from_u128(7), sequence }, ttl: TTL, age }
    }

    fn told(age: u64, clock: u64) -> Age {
        Age::Told { age: Duration::from_millis(age), clock: Duration::from_millis(clock) }
    }

    fn observe(silence: &mut Silence, pulse: Pulse, look: Look) -> Instant {
        let trust = Trust { epoch: 0, since: Instant::ZERO };
        silence.observe(&pulse, look, trust, Drift::DEFAULT, Planted::default())
    }

    #[test]
    fn silence_counts_from_the_first_answer_that_showed_the_pulse() {
        let mut silence = Silence::default();
        assert_eq!(observe(&mut silence, pulse(1, Age::Unknown), look(0, 20)), at(10_020));
        assert_eq!(observe(&mut silence, pulse(1, Age::Unknown), look(5000, 5020)), at(10_020));
        assert_eq!(observe(&mut silence, pulse(2, Age::Unknown), look(9000, 9020)), at(19_020));
    }

    #[test]
    fn an_age_that_the_store_tells_is_not_believed_at_first_sight() {
        let mut silence = Silence::default();
        assert_eq!(observe(&mut silence, pulse(1, told(9000, 500_000)), look(0, 20)), at(10_020));
    }

    #[test]
    fn an_age_is_believed_as_far_as_the_stores_clock_kept_step() {
        let mut silence = Silence::default();
        observe(&mut silence, pulse(1, told(0, 100_000)), look(0, 0));
        // One second later by both clocks: the store's may have gained what slow counting hides.
        let lapses = observe(&mut silence, pulse(2, told(600, 101_000)), look(1000, 1000));
        let gained = Duration::from_secs(1) - Drift::DEFAULT.slow(Duration::from_secs(1));
        assert_eq!(lapses, at(1000) + TTL - (Duration::from_millis(600) - gained));
    }

    #[test]
    fn an_age_is_not_believed_when_the_stores_clock_was_stepped() {
        for clock in [90_000, 160_000] {
            let mut silence = Silence::default();
            observe(&mut silence, pulse(1, told(0, 100_000)), look(0, 0));
            let lapses = observe(&mut silence, pulse(2, told(900, clock)), look(1000, 1000));
            assert_eq!(lapses, at(11_000), "the store's clock shows {clock}");
        }
    }

    #[test]
    fn an_age_is_not_believed_when_the_look_before_showed_another_session() {
        let other = |sequence| Stamp { session: SessionId::from_u128(8), sequence };
        let mut silence = Silence::default();
        observe(&mut silence, Pulse { stamp: other(1), ..pulse(1, told(0, 100_000)) }, look(0, 0));
        // This one was renewed long before that look, and the store's clock was stepped in between: 3.7 s of this age
        // are the step. The two looks agree with both clocks.
        let lapses = observe(&mut silence, pulse(9, told(4000, 103_300)), look(3300, 3300));
        assert_eq!(lapses, at(13_300), "its silence counts from this look");
        let lapses = observe(&mut silence, pulse(10, told(100, 106_300)), look(6300, 6300));
        let gained = ms(3000) - Drift::DEFAULT.slow(ms(3000));
        assert_eq!(lapses, at(6300) + TTL - ms(100).saturating_sub(gained), "from then on its ages count");
    }

    #[test]
    fn an_age_is_not_believed_when_the_store_shows_an_older_renewal_than_before() {
        let mut silence = Silence::default();
        observe(&mut silence, pulse(5, told(0, 100_000)), look(0, 0));
        let lapses = observe(&mut silence, pulse(3, told(900, 101_000)), look(1000, 1000));
        assert_eq!(lapses, at(11_000));
    }

    #[test]
    fn an_age_that_reaches_back_beyond_the_look_before_is_not_believed() {
        let mut silence = Silence::default();
        observe(&mut silence, pulse(1, told(0, 100_000)), look(0, 0));
        let lapses = observe(&mut silence, pulse(2, told(1100, 101_000)), look(1000, 1000));
        assert_eq!(lapses, at(11_000));
    }

    /// The arithmetic of [`Silence::credit`], on a grid: rates at their extremes, every order of renewal, step and
    /// looks, and looks that take their time.
    #[test]
    fn whatever_the_rates_and_wherever_a_step_falls_nobody_is_taken_for_dead_before_its_lease_is_over() {
        let rho = Drift::DEFAULT;
        let rates = [900, 1000, 1100];
        let scaled = |real: u64, rate: u64| real * rate / 1000;
        let steps = [0u64, 300, 600, 900, 1200, 4000];
        let (looked, looks_again, trip) = (2000, 5200, 40);
        let mut tried = 0;
        for case in 0..rates.len() * rates.len() * steps.len() * 18 * 18 * 2 {
            let mut rest = case;
            let mut one_of = |many: usize| {
                let one = rest % many;
                rest /= many;
                one
            };
            let (own, store, step) = (rates[one_of(3)], rates[one_of(3)], steps[one_of(steps.len())]);
            let (stepped, applied) = (100 + one_of(18) as u64 * 300, one_of(18) as u64 * 300);
            let other = one_of(2) == 1;
            // If the earlier look showed this session, it would have shown this renewal too.
            if applied > looks_again || (!other && applied <= looked) {
                continue;
            }
            let shows = |real: u64| 50_000 + scaled(real, store) + if real >= stepped { step } else { 0 };
            let taken = |real: u64| look(scaled(real - trip, own), scaled(real + trip, own));
            let session = SessionId::from_u128(if other { 8 } else { 7 });
            let mut silence = Silence::default();
            let first = Pulse { stamp: Stamp { session, sequence: 1 }, ..pulse(1, told(10, shows(looked))) };
            observe(&mut silence, first, taken(looked));
            let age = shows(looks_again) - shows(applied);
            let lapses = observe(&mut silence, pulse(2, told(age, shows(looks_again))), taken(looks_again));
            let dead = lapses.as_nanos() / 1_000_000 * 1000 / own;
            let leads = applied + u64::try_from(rho.slow(TTL).as_millis()).unwrap() * 1000 / 900;
            assert!(
                dead + 2 >= leads,
                "taken for dead at {dead}, leads until {leads}: own rate {own}, store's {store}, a step of {step} at \
                 {stepped}, renewed at {applied}, another session before: {other}"
            );
            tried += 1;
        }
        assert!(tried > 2000, "{tried}");
    }

    #[test]
    fn an_exact_age_gives_the_very_instant_but_not_within_a_ttl_of_first_contact() {
        let mut silence = Silence::default();
        let age = Age::Exact(Duration::from_secs(3));
        let early = observe(&mut silence, pulse(1, age), look(2000, 2010));
        assert_eq!(early, at(10_000), "first contact was at zero");
        assert_eq!(observe(&mut silence, pulse(2, age), look(60_000, 60_010)), at(67_010));
    }

    #[test]
    fn a_new_epoch_of_trust_voids_what_was_seen() {
        let mut silence = Silence::default();
        observe(&mut silence, pulse(1, Age::Unknown), look(0, 0));
        let trust = Trust { epoch: 1, since: at(9000) };
        let seen = pulse(1, Age::Unknown);
        let lapses = silence.observe(&seen, look(9000, 9000), trust, Drift::DEFAULT, Planted::default());
        assert_eq!(lapses, at(19_000));
    }

    #[test]
    fn a_rival_is_looked_at_a_moment_after_its_next_pulse_and_then_ever_more_seldom() {
        let mut silence = Silence::default();
        let trust = Trust { epoch: 0, since: at(0) };
        let mut observe = |sequence, age, clock, now: u64| {
            silence.observe(
                &pulse(sequence, told(age, clock)),
                look(now, now),
                trust,
                Drift::from_thousandths(100).unwrap(),
                Planted::default(),
            );
            let wait = silence.look_at(TTL, at(now)).unwrap().since(at(now));
            wait.as_millis()
        };
        assert_eq!(
            observe(1, 1000, 1000, 1000),
            3333 - 1000 + 2,
            "a third of the ttl, until it is known better"
        );
        assert_eq!(observe(2, 2, 4002, 4002), 4000, "it renews every 4 s");
        assert_eq!(observe(2, 4002, 8002, 8002), 2, "late: soon again");
        assert_eq!(observe(2, 4102, 8102, 8102), 100, "the later, the more seldom");
    }
}
