//! What is done to the crew and to the store: in random order, and several things at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Dice, Instant};
use tenure_store::clock;
use tenure_testkit::proxy::{Direction, Proxy};

use super::crew::Crew;
use super::place::{Blow, Place};
use crate::Outcome;

/// Two steps of a store's clock that undo each other between two looks cannot be noticed (docs/safety.md): they are
/// kept so many of the longest ttl apart.
const STEPS_APART: u32 = 6;

/// A leader that does not begin its transaction within so long is left alone: its way to the store may be cut.
const INSIDE_WITHIN: Duration = Duration::from_millis(500);

/// What happens to the way of one node to the store.
type Trouble = (&'static str, fn(&Proxy));

const TROUBLES: [Trouble; 7] = [
    ("cut off silently", Proxy::drop_everything),
    ("cut off one way", |way| way.cut(Direction::ToServer)),
    ("replies lost", Proxy::lose_replies),
    ("everything held", Proxy::hold),
    ("slow network", |way| way.delay(Duration::from_millis(60), Duration::from_millis(90))),
    ("new connections refused", Proxy::refuse),
    ("connections refused and reset", |way| {
        way.refuse();
        way.reset();
    }),
];

/// All that was done, and what of it is going on.
pub struct Faults {
    dice: Dice,
    ongoing: Vec<(Instant, Undo)>,
    stepped: Option<Instant>,
    /// Who is next, while everybody is restarted.
    rolling: Option<usize>,
    /// How often what was done.
    pub tally: BTreeMap<&'static str, u32>,
    /// What was done when, for who has to find out what went wrong.
    pub story: Vec<(u64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    /// This member is back by itself.
    Return(usize),
    Wake(usize),
    Heal(usize),
    Relieve,
}

impl Undo {
    const fn member(self) -> Option<usize> {
        match self {
            Self::Return(number) | Self::Wake(number) | Self::Heal(number) => Some(number),
            Self::Relieve => None,
        }
    }
}

impl Faults {
    pub fn new(dice: Dice) -> Self {
        Self {
            dice,
            ongoing: Vec::new(),
            stepped: None,
            rolling: None,
            tally: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    pub fn total(&self) -> u32 {
        self.tally.values().sum()
    }

    /// How long until the next one.
    pub fn pause(&mut self, crew: &Crew) -> Duration {
        self.dice.jitter(crew.cast.pause)
    }

    /// Ends what has lasted for long enough, and does one thing more.
    pub fn go_on(&mut self, crew: &mut Crew, place: &mut Place) -> Outcome<()> {
        self.undo(crew, place, clock::now())?;
        self.roll(crew);
        let election = crew.cast.election;
        let number = usize::try_from(self.dice.below(crew.members.len() as u64))?;
        let lasts = Duration::from_millis(100 + self.dice.below(3 * millis(crew.cast.roles[number].ttl)));
        match self.dice.below(12) {
            0..=1 => self.kill(crew, number, lasts / 4),
            2 if place.has_transactions() => self.stop_inside(crew, lasts),
            2..=4 => self.stop(crew, number, lasts),
            5..=8 => self.trouble(crew, place, number, lasts)?,
            9 if crew.cast.blows => self.strike(crew, place)?,
            9 => self.begin_to_roll(),
            10 => self.order(
                crew,
                &[&format!("resign {election}"), &format!("stand {election}")],
                "resignation",
            ),
            _ => {
                let candidates = crew.cast.candidates();
                let to = candidates[usize::try_from(self.dice.below(candidates.len() as u64))?];
                let order = format!("transfer {election} {to}");
                self.order(crew, &[&order], "transfer");
            }
        }
        Ok(())
    }

    /// Ends everything that goes on.
    pub fn end(&mut self, crew: &mut Crew, place: &mut Place) -> Outcome<()> {
        self.rolling = None;
        self.undo(crew, place, clock::now() + Duration::from_secs(3600))
    }

    fn undo(&mut self, crew: &mut Crew, place: &mut Place, now: Instant) -> Outcome<()> {
        let (due, later) = self.ongoing.drain(..).partition(|(until, _)| *until <= now);
        self.ongoing = later;
        let due: Vec<(Instant, Undo)> = due;
        for (_, undo) in due {
            match undo {
                Undo::Return(_) => {}
                Undo::Wake(number) => {
                    crew.members[number].go_on();
                    self.tell(format!("{} goes on", crew.members[number].name));
                }
                Undo::Heal(number) => {
                    place.ways(number).iter().for_each(Proxy::pass);
                    self.tell(format!("{} reaches the store again", crew.members[number].name));
                }
                Undo::Relieve => {
                    place.relieve()?;
                    self.tell(String::from("the store is itself again"));
                }
            }
        }
        Ok(())
    }

    /// Whether something may be done to this one: half of them are left alone at any time, so that somebody can lead.
    fn may(&self, crew: &Crew, number: usize) -> bool {
        let troubled: Vec<usize> = self.ongoing.iter().filter_map(|(_, undo)| undo.member()).collect();
        let all = crew.members.len();
        !troubled.contains(&number) && troubled.len() + all / 2 < all
    }

    /// Everybody is restarted, one after the other.
    pub fn begin_to_roll(&mut self) {
        if self.rolling.is_none() {
            self.rolling = Some(0);
            *self.tally.entry("rolling restart").or_default() += 1;
            self.tell(String::from("a rolling restart begins"));
        }
    }

    /// The next one is restarted in good order, once the one before is back.
    fn roll(&mut self, crew: &mut Crew) {
        let Some(next) = self.rolling.filter(|&next| next == 0 || crew.is_back(next - 1)) else { return };
        self.rolling = (next < crew.members.len()).then_some(next + 1);
        if let Some(member) = crew.members.get_mut(next) {
            member.leave();
            *self.tally.entry("restarted in good order").or_default() += 1;
            self.tell(format!("{}: restarted in good order", member.name));
        }
    }

    fn kill(&mut self, crew: &mut Crew, number: usize, rest: Duration) {
        // The first is never killed: what it takes of the machine is watched from beginning to end.
        if number != 0 && self.may(crew, number) && crew.members[number].kill(rest) {
            self.did("killed (-9)", crew.name(number), Undo::Return(number), rest);
        }
    }

    fn stop(&mut self, crew: &mut Crew, number: usize, lasts: Duration) {
        if self.may(crew, number) && crew.members[number].stop() {
            self.did("stopped (SIGSTOP)", crew.name(number), Undo::Wake(number), lasts);
        }
    }

    /// Stops the leader between two statements of a fenced transaction, which holds its lease's row.
    fn stop_inside(&mut self, crew: &mut Crew, lasts: Duration) {
        let Some(pid) = crew.leader().map(|leader| leader.pid) else { return };
        let number = crew.members.iter().position(|member| member.pid() == Some(pid));
        let Some(number) = number.filter(|&number| self.may(crew, number)) else { return };
        let before = crew.journal.count("inside", pid);
        crew.order_leader(&[&format!("dwell {}", crew.cast.election)]);
        let end = clock::now() + INSIDE_WITHIN;
        while crew.journal.count("inside", pid) == before {
            if clock::now() > end {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if crew.members[number].stop() {
            self.did("stopped inside a fenced transaction", crew.name(number), Undo::Wake(number), lasts);
        }
    }

    fn trouble(&mut self, crew: &Crew, place: &Place, number: usize, lasts: Duration) -> Outcome<()> {
        let (name, act) = TROUBLES[usize::try_from(self.dice.below(TROUBLES.len() as u64))?];
        if self.may(crew, number) && !place.ways(number).is_empty() {
            place.ways(number).iter().for_each(act);
            self.did(name, crew.name(number), Undo::Heal(number), lasts);
        }
        Ok(())
    }

    fn strike(&mut self, crew: &Crew, place: &mut Place) -> Outcome<()> {
        let blows = place.blows();
        let blow = blows[usize::try_from(self.dice.below(blows.len() as u64))?];
        let (now, longest) = (clock::now(), crew.cast.longest());
        let too_soon = self.stepped.is_some_and(|last| now.since(last) < STEPS_APART * longest);
        if place.is_struck() || (blow == Blow::ClockStepped && too_soon) {
            return Ok(());
        }
        if blow == Blow::ClockStepped {
            self.stepped = Some(now);
        }
        let lasts = Duration::from_millis(200 + self.dice.below(millis(longest) * 3 / 2));
        place.strike(blow, lasts, &mut self.dice)?;
        self.did(blow.name(), "the store", Undo::Relieve, lasts);
        Ok(())
    }

    fn order(&mut self, crew: &mut Crew, orders: &[&str], name: &'static str) {
        if let Some(leader) = crew.order_leader(orders) {
            *self.tally.entry(name).or_default() += 1;
            self.tell(format!("{leader} was told: {}", orders[0]));
        }
    }

    fn did(&mut self, name: &'static str, whom: &str, undo: Undo, lasts: Duration) {
        *self.tally.entry(name).or_default() += 1;
        self.ongoing.push((clock::now() + lasts, undo));
        self.tell(format!("{whom}: {name}, for {} ms", lasts.as_millis()));
    }

    fn tell(&mut self, what: String) {
        self.story.push((clock::now().as_nanos(), what));
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
