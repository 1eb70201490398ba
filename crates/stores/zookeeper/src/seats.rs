//! What a session knows of its own requests, election by election; and what a store remembers of sessions that are
//! over. Both are bounded: a process may live for years, and stand for an election per job.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tenure_core::{ElectionName, Instant, SessionId};

/// What a session knows of its own requests for one election. All of them pass through here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seat {
    /// The highest attempt of a resignation: claims with a lower one were overtaken.
    pub barrier: u64,
    /// The highest attempt of a claim that was answered with a place or a lease. A resignation with a lower
    /// one was sent before that answer, so it is void.
    pub answered: u64,
    /// The name of our znode in line, once its owner was seen to be this session.
    pub place: Option<String>,
    /// Waits behind so many, the holder not counted.
    pub queued: Option<usize>,
    /// Something that it waits for has happened, and it has not asked since.
    pub woken: bool,
    /// Who held the lease when it asked last.
    pub holder: Option<SessionId>,
    /// In the layout of another library: the place whose lease was counted.
    pub counted: Option<String>,
}

impl Seat {
    /// It was resigned after its last claim: nothing is left of it but the number of the resignation.
    fn is_resigned(&self) -> bool {
        self.place.is_none() && self.queued.is_none() && self.barrier > self.answered
    }

    /// It holds the lease.
    pub(crate) fn lead(&mut self, attempt: u64) {
        self.answered = self.answered.max(attempt);
        self.queued = None;
    }

    /// It stands no longer.
    pub(crate) fn leave(&mut self) {
        (self.place, self.queued) = (None, None);
    }

    /// Asks again, although nothing that it waits for has happened as far as it knows.
    pub(crate) fn looks(&mut self) -> bool {
        !std::mem::take(&mut self.woken) && self.queued.is_some()
    }
}

/// How many are kept although they were resigned.
const MOST_SEATS: usize = 1_000;

/// The seats of a session.
#[derive(Debug)]
pub(crate) struct Seats {
    by_election: HashMap<ElectionName, Seat>,
    /// The highest barrier of all that were forgotten. Attempts count over all elections of a session, so it voids
    /// whatever was overtaken there; a claim for another election that it voids is sent again with a higher number.
    floor: u64,
    /// With so many, those that were resigned are forgotten.
    most: usize,
}

impl Default for Seats {
    fn default() -> Self {
        Self { by_election: HashMap::new(), floor: 0, most: MOST_SEATS }
    }
}

impl Seats {
    pub(crate) fn of(&mut self, election: &ElectionName) -> &mut Seat {
        if self.by_election.len() >= self.most && !self.by_election.contains_key(election) {
            self.forget_resigned();
        }
        let fresh = Seat { barrier: self.floor, ..Seat::default() };
        self.by_election.entry(election.clone()).or_insert(fresh)
    }

    fn forget_resigned(&mut self) {
        let floor = &mut self.floor;
        self.by_election.retain(|_, seat| {
            if seat.is_resigned() {
                *floor = seat.barrier.max(*floor);
            }
            !seat.is_resigned()
        });
        // If all of them are in use, it is not tried again with every other one.
        self.most = MOST_SEATS.max(2 * self.by_election.len());
    }

    /// Behind how many it waits, if it has to do with that election at all.
    pub(crate) fn queued(&self, election: &ElectionName) -> Option<Option<usize>> {
        self.by_election.get(election).map(|seat| seat.queued)
    }

    pub(crate) fn contains(&self, election: &ElectionName) -> bool {
        self.by_election.contains_key(election)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ElectionName, &Seat)> {
        self.by_election.iter()
    }
}

/// How many sessions are remembered that are over: by far more than requests for them can be late.
const MOST_FORMER: usize = 1_000;

/// Sessions that lived on connections of this store and are over, the oldest first. They are not opened again.
#[derive(Debug, Default)]
pub(crate) struct Former(VecDeque<(SessionId, Past)>);

/// What is known of a session that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// What it stood for.
    pub elections: Vec<ElectionName>,
    /// When the last renewal was asked for that was answered.
    pub renewed: Instant,
    /// The life that the servers had granted.
    pub ttl: Duration,
}

impl Former {
    pub(crate) fn add(&mut self, session: SessionId, past: Past) {
        if self.0.len() >= MOST_FORMER {
            self.0.pop_front();
        }
        self.0.push_back((session, past));
    }

    pub(crate) fn find(&self, session: SessionId) -> Option<&Past> {
        let mut newest_first = self.0.iter().rev();
        newest_first.find(|(former, _)| *former == session).map(|(_, past)| past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(number: usize) -> ElectionName {
        ElectionName::new(format!("job-{number}")).unwrap()
    }

    #[test]
    fn seats_that_were_resigned_are_forgotten_and_claims_that_they_overtook_stay_void() {
        let mut seats = Seats::default();
        seats.of(&election(0)).place = Some(String::from("c-1"));
        for number in 1..=10 * MOST_SEATS {
            let seat = seats.of(&election(number));
            (seat.answered, seat.barrier) = (2 * number as u64, 2 * number as u64 + 1);
            assert!(seats.by_election.len() <= MOST_SEATS);
        }
        assert!(seats.of(&election(0)).place.is_some(), "one that stands is kept");
        assert!(!seats.contains(&election(1)));
        assert!(seats.of(&election(1)).barrier >= 3, "a claim from before its resignation");
        let newest = 2 * 10 * MOST_SEATS as u64 + 1;
        assert!(seats.of(&election(1)).barrier <= newest, "and none from after it");
    }

    #[test]
    fn seats_in_use_are_kept_however_many() {
        let mut seats = Seats::default();
        for number in 0..3 * MOST_SEATS {
            seats.of(&election(number)).queued = Some(0);
        }
        assert_eq!(seats.iter().count(), 3 * MOST_SEATS);
        assert_eq!(seats.queued(&election(0)), Some(Some(0)));
    }

    #[test]
    fn the_oldest_sessions_that_are_over_are_forgotten() {
        let past = |number| Past {
            elections: vec![election(number)],
            renewed: Instant::ZERO,
            ttl: Duration::from_secs(10),
        };
        let mut former = Former::default();
        for number in 0..2 * MOST_FORMER {
            former.add(SessionId::from_u128(number as u128), past(number));
        }
        assert_eq!(former.0.len(), MOST_FORMER);
        assert_eq!(former.find(SessionId::from_u128(0)), None);
        let last = 2 * MOST_FORMER - 1;
        assert_eq!(former.find(SessionId::from_u128(last as u128)), Some(&past(last)));
    }
}
