//! A stage for one machine: the test is the store, the clock and the user.

#![allow(dead_code, reason = "each test file uses its own part of the stage")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use tenure_core::{
    Age, Answer, Capabilities, ElectionKey, Event, ExpiryJudge, Failure, Holder, Instant, Machine, News,
    NodeId, Opening, Pulse, Record, Renewal, Request, RequestId, SessionId, Sessions, Settings, Stamp,
    Standing, StoreIdentity, Term, Verb,
};

pub const TTL: Duration = Duration::from_secs(10);
/// What a renewal is worth with the default settings: 10 s counted slowly, less the stop margin.
pub const LEASE: Duration = Duration::from_nanos(8_181_818_181 - 500_000_000);

pub const ANYWHERE: Capabilities =
    Capabilities { expiry: ExpiryJudge::Candidate, news: News::Push, sessions: Sessions::Anywhere };

pub struct Stage {
    pub machine: Machine,
    pub now: Instant,
    pub store: StoreIdentity,
    pub key: ElectionKey,
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Stage {
    /// A machine that has not been started, at one hour past boot.
    pub fn new(capabilities: Capabilities, settings: Settings) -> Self {
        let node = NodeId::new("me").unwrap();
        let mut machine = Machine::new(node, settings, capabilities, 7).unwrap();
        let key = machine.add();
        let now = Instant::ZERO + Duration::from_secs(3600);
        Self { machine, now, store: StoreIdentity(1), key }
    }

    /// A machine with an open session, opened just now and answered at once.
    pub fn open(capabilities: Capabilities, settings: Settings) -> Self {
        let mut stage = Self::new(capabilities, settings);
        stage.machine.start(stage.now);
        let open = stage.request();
        assert!(matches!(open.verb, Verb::Open { .. }), "{open:?}");
        stage.answer(open.id, Answer::Open(Opening::Opened { ttl: settings.ttl }));
        assert!(matches!(stage.events()[..], [Event::Opened { .. }]));
        stage
    }

    /// A leader under term 1, elected just now.
    pub fn leading(capabilities: Capabilities, settings: Settings) -> Self {
        let mut stage = Self::open(capabilities, settings);
        stage.machine.stand(stage.key, stage.now).unwrap();
        let claim = stage.request();
        stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
        let election = stage.key;
        assert_eq!(stage.events()[0], Event::Elected { election, term: Term::new(1) });
        stage
    }

    /// A candidate that was refused just now, with this record.
    pub fn refused(capabilities: Capabilities, settings: Settings, seen: Record) -> Self {
        let mut stage = Self::open(capabilities, settings);
        // So that the store has been known for long.
        stage.pass(Duration::from_millis(1));
        stage.machine.stand(stage.key, stage.now).unwrap();
        let first = stage.request();
        match first.verb {
            Verb::Claim { .. } => stage.refuse(first.id, seen),
            _ => stage.answer(first.id, Answer::Read(seen)),
        }
        stage.events();
        stage
    }

    /// Lets time pass without waking the machine.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Goes to the instant at which the machine wants to be woken, and wakes it.
    pub fn wake(&mut self) -> Instant {
        let at = self.machine.poll_timeout().expect("it wants to be woken");
        self.now = self.now.max(at);
        self.machine.handle_timeout(self.now);
        self.now
    }

    /// The next request, which must be there.
    pub fn request(&mut self) -> Request {
        self.machine.poll_request(true, self.now).expect("a request")
    }

    pub fn verbs(&mut self) -> Vec<Verb> {
        std::iter::from_fn(|| self.machine.poll_request(true, self.now)).map(|request| request.verb).collect()
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.machine.poll_event()).collect()
    }

    pub fn answer(&mut self, id: RequestId, answer: Answer) {
        self.machine.reply(id, Ok((self.store, answer)), self.now);
    }

    pub fn refuse(&mut self, id: RequestId, seen: Record) {
        self.answer(id, Answer::Claim(Standing::Waiting { seen }));
    }

    pub fn fail(&mut self, id: RequestId, failure: Failure) {
        self.machine.reply(id, Err(failure), self.now);
    }

    pub fn renewed(&mut self, request: &Request) {
        let grants = u64::from(self.check().is_some());
        self.renewed_telling(request, grants, Vec::new());
    }

    /// With so many terms ever granted, and how the elections are in whose line the session stands.
    pub fn renewed_telling(&mut self, request: &Request, grants: u64, waits_for: Vec<(ElectionKey, Record)>) {
        let Verb::Renew { sequence, .. } = request.verb else { panic!("{request:?}") };
        let renewal = Renewal { previous: sequence - 1, notices: 0, grants, waits_for };
        self.answer(request.id, Answer::Renew(renewal));
    }

    /// Wakes the machine until it asks something, and gives that.
    pub fn next_request(&mut self) -> Request {
        loop {
            if let Some(request) = self.machine.poll_request(true, self.now) {
                return request;
            }
            self.wake();
        }
    }

    /// The next request that is no renewal; renewals are answered at once.
    pub fn next_deed(&mut self) -> Request {
        for _ in 0..10_000 {
            let request = self.next_request();
            if !matches!(request.verb, Verb::Renew { .. }) {
                return request;
            }
            self.renewed(&request);
        }
        panic!("it only renews its session")
    }

    /// The election as it is while this node's session holds it under this term.
    pub fn ours(&self, term: u64) -> Record {
        let session = self.machine.session().unwrap();
        let mut record = led(term, 1, Age::Exact(ms(0)));
        if let Some(holder) = &mut record.holder {
            (holder.node, holder.pulse.stamp.session) = (NodeId::new("me").unwrap(), session);
        }
        record
    }

    pub fn check(&self) -> Option<Term> {
        self.machine.check(self.key, self.now)
    }
}

/// A rival's pulse.
pub fn pulse(sequence: u64, age: Age) -> Pulse {
    Pulse { stamp: Stamp { session: SessionId::from_u128(99), sequence }, ttl: TTL, age }
}

/// An election that the rival leads under this term.
pub fn led(term: u64, sequence: u64, age: Age) -> Record {
    let term = Term::new(term);
    let holder = Holder { node: NodeId::new("rival").unwrap(), term, pulse: pulse(sequence, age) };
    Record { term, holder: Some(holder), ..Record::default() }
}

/// An election that is free after this term.
pub fn free(term: u64) -> Record {
    Record { term: Term::new(term), ..Record::default() }
}
