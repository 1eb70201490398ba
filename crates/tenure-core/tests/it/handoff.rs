//! The hand-off of partitions, step by step: exactly what coordinator and worker ask and tell.

use std::time::Duration;

use tenure_core::partitions::{
    Ask, Change, Coordinator, CoordinatorEvent, Demand, Drain, Entry, Holding, Member, Pace, Page, Partition,
    Revision, Sighting, TaskList, Told, Worker, WorkerEvent,
};
use tenure_core::{Age, Drift, Failure, Instant, NodeId, Planted, Pulse, Renewed, SessionId, Stamp, Term};

const TTL: Duration = Duration::from_secs(10);
const P: Partition = Partition { list: 0, number: 0 };

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(1000) + Duration::from_millis(millis)
}

fn session(number: u128) -> SessionId {
    SessionId::from_u128(number << 96)
}

fn entry(number: u32, revision: Revision, holding: Holding) -> Entry {
    Entry { partition: Partition { list: 0, number }, revision, holding }
}

fn page(revision: Revision, entries: &[Entry]) -> Told {
    Told::Read(Page {
        revision,
        published: revision,
        notices: revision,
        entries: entries.to_vec(),
        more: false,
    })
}

// ----- the worker -----------------------------------------------------------------------------

const LATE: Instant = Instant::from_nanos(u64::MAX);

fn events(worker: &mut Worker) -> Vec<WorkerEvent> {
    std::iter::from_fn(|| worker.poll_event()).collect()
}

/// A worker that owns the partition since revision 1.
fn owner() -> Worker {
    let mut worker = Worker::new(Drain::new(TTL));
    worker.opened(session(1), at(0));
    worker.hint(at(0));
    let ask = worker.poll_ask().expect("it reads");
    assert_eq!(ask.demand, Demand::Read { since: 0, of: Some(session(1)) });
    worker.reply(
        ask.serial,
        Ok(page(1, &[entry(0, 1, Holding::Owned(session(1)))])),
        Some(session(1)),
        at(1),
    );
    assert_eq!(events(&mut worker), [WorkerEvent::Assigned { partition: P, revision: 1 }]);
    worker
}

fn revoked() -> Worker {
    let mut worker = owner();
    worker.hint(at(10));
    let ask = worker.poll_ask().expect("it reads");
    assert_eq!(ask.demand, Demand::Read { since: 1, of: Some(session(1)) });
    worker.reply(
        ask.serial,
        Ok(page(2, &[entry(0, 2, Holding::Revoking(session(1)))])),
        Some(session(1)),
        at(11),
    );
    worker
}

#[test]
fn a_worker_owns_what_it_has_read_until_its_sessions_deadline() {
    let worker = owner();
    assert_eq!(worker.check(P, at(500), at(499)), Some(1), "the revision is the fencing token");
    assert_eq!(worker.check(P, at(500), at(500)), None);
}

#[test]
fn a_revocation_is_acknowledged_only_once_the_work_has_stopped() {
    let mut worker = revoked();
    let until = Some(at(11) + Drain::new(TTL).finish);
    assert_eq!(events(&mut worker), [WorkerEvent::Stop { partition: P, until }]);
    assert_eq!(worker.check(P, LATE, at(11)), None, "from the revocation on it owns nothing");
    assert_eq!(worker.poll_ask(), None);
    worker.stopped(P, at(700));
    let ask = worker.poll_ask().unwrap();
    assert_eq!(ask.demand, Demand::Acknowledge { session: session(1), released: vec![(P, 2)] });
    worker.reply(ask.serial, Ok(Told::Acknowledged { notices: 3 }), Some(session(1)), at(701));
    assert_eq!((worker.poll_ask(), worker.poll_timeout()), (None, None), "and then nothing costs anything");
}

#[test]
fn an_acknowledgement_that_is_lost_is_sent_again() {
    let mut worker = revoked();
    worker.stopped(P, at(700));
    let lost = worker.poll_ask().unwrap();
    worker.handle_timeout(lost.give_up);
    worker.handle_timeout(worker.poll_timeout().unwrap());
    let again = worker.poll_ask().unwrap();
    assert_eq!(again.demand, lost.demand);
    worker.reply(lost.serial, Ok(Told::Acknowledged { notices: 3 }), Some(session(1)), again.give_up);
    assert!(worker.poll_timeout().is_some(), "the late answer to the first is not taken for the second's");
}

#[test]
fn with_a_ttl_of_hours_a_question_about_partitions_that_hangs_is_given_up_after_half_a_minute() {
    let (hour, half_a_minute) = (Duration::from_secs(3600), Duration::from_secs(30));
    let mut worker = Worker::new(Drain::new(hour));
    worker.opened(session(1), at(0));
    worker.hint(at(0));
    assert_eq!(worker.poll_ask().unwrap().give_up, at(0) + half_a_minute);
    let mut stage = Stage::new(1, Pace::new(hour));
    assert_eq!(stage.ask().give_up, at(0) + half_a_minute);
}

#[test]
fn a_partition_that_comes_back_while_its_release_is_unanswered_is_worked_on_again() {
    let mut worker = revoked();
    worker.stopped(P, at(700));
    let acknowledgement = worker.poll_ask().unwrap();
    worker.hint(at(800));
    let ask = worker.poll_ask().unwrap();
    worker.reply(
        ask.serial,
        Ok(page(4, &[entry(0, 4, Holding::Owned(session(1)))])),
        Some(session(1)),
        at(801),
    );
    worker.reply(acknowledgement.serial, Ok(Told::Acknowledged { notices: 3 }), Some(session(1)), at(900));
    assert_eq!(worker.check(P, LATE, at(901)), Some(4), "the old answer does not end the new ownership");
}

#[test]
fn what_was_given_and_taken_back_before_it_was_read_is_released_without_work() {
    let mut worker = Worker::new(Drain::new(TTL));
    worker.opened(session(1), at(0));
    worker.hint(at(0));
    let ask = worker.poll_ask().unwrap();
    worker.reply(
        ask.serial,
        Ok(page(2, &[entry(0, 2, Holding::Revoking(session(1)))])),
        Some(session(1)),
        at(1),
    );
    assert!(events(&mut worker).is_empty());
    let demand = Demand::Acknowledge { session: session(1), released: vec![(P, 2)] };
    assert_eq!(worker.poll_ask().unwrap().demand, demand);
}

#[test]
fn work_that_does_not_drain_is_aborted_and_then_the_session_is_given_up() {
    let mut worker = revoked();
    events(&mut worker);
    let drain = Drain::new(TTL);
    let finish = at(11) + drain.finish;
    assert_eq!(worker.poll_timeout(), Some(finish));
    worker.handle_timeout(finish);
    assert_eq!(events(&mut worker), [WorkerEvent::Abort { partition: P }]);
    assert_eq!(worker.poll_timeout(), Some(finish + drain.abort));
    worker.handle_timeout(finish + drain.abort);
    assert_eq!(events(&mut worker), [WorkerEvent::Surrender]);
}

#[test]
fn a_lost_session_stops_everything_and_acknowledges_nothing() {
    let mut worker = owner();
    worker.lost();
    assert_eq!(events(&mut worker), [WorkerEvent::Stop { partition: P, until: None }]);
    assert!(!worker.is_idle(), "its work may still run");
    worker.stopped(P, at(100));
    assert!(worker.is_idle());
    assert_eq!(worker.poll_ask(), None);
}

#[test]
fn an_answer_to_a_session_that_is_over_starts_no_work() {
    let mut worker = Worker::new(Drain::new(TTL));
    worker.opened(session(1), at(0));
    worker.hint(at(0));
    let ask = worker.poll_ask().unwrap();
    let told = page(1, &[entry(0, 1, Holding::Owned(session(1)))]);
    worker.reply(ask.serial, Ok(told), None, at(1));
    assert!(events(&mut worker).is_empty(), "although nobody has said yet that it is over");
}

/// A renewal after one that was answered, and how much word was left by then.
fn renewal(sequence: u64, notices: u64) -> Renewed {
    Renewed { sequence, unheard: 0, notices }
}

/// What the worker reads next, answered with this.
fn reads(worker: &mut Worker, since: Revision, told: Told, now: Instant) {
    let ask = worker.poll_ask().expect("it reads");
    assert_eq!(ask.demand, Demand::Read { since, of: Some(session(1)) });
    worker.reply(ask.serial, Ok(told), Some(session(1)), now);
}

/// A worker that has owned the partition since revision 1, and has found it in its place again.
fn reviewed() -> Worker {
    let mut worker = owner();
    for sequence in 2..4 {
        worker.renewed(renewal(sequence, 1), at(20));
        reads(&mut worker, 0, page(1, &[entry(0, 1, Holding::Owned(session(1)))]), at(21));
    }
    worker.renewed(renewal(4, 1), at(22));
    worker
}

#[test]
fn what_was_read_is_read_again_after_the_next_renewals_and_then_costs_nothing() {
    let mut worker = reviewed();
    assert_eq!((worker.poll_ask(), worker.poll_timeout()), (None, None), "all of it was in its place");
    assert_eq!((events(&mut worker), worker.check(P, LATE, at(23))), (vec![], Some(1)));
}

#[test]
fn a_renewal_tells_of_what_was_left_unread_and_of_nothing_else() {
    let mut worker = reviewed();
    worker.renewed(renewal(5, 1), at(30));
    assert_eq!(worker.poll_ask(), None, "that much was read");
    worker.renewed(renewal(6, 2), at(40));
    assert!(worker.poll_ask().is_some());
}

#[test]
fn an_answer_that_knows_of_less_word_than_was_read_tells_that_the_store_went_back() {
    let forgetful = |told: Told| match told {
        Told::Read(page) => Told::Read(Page { notices: page.notices - 1, ..page }),
        other => other,
    };
    let mut worker = owner();
    worker.hint(at(20));
    // Somebody else's acknowledgement has brought the ledger to the same revision again.
    reads(&mut worker, 1, forgetful(page(1, &[])), at(21));
    assert_eq!(events(&mut worker), [WorkerEvent::WentBack]);

    let mut worker = revoked();
    events(&mut worker);
    worker.stopped(P, at(700));
    let ask = worker.poll_ask().unwrap();
    worker.reply(ask.serial, Ok(Told::Acknowledged { notices: 1 }), Some(session(1)), at(701));
    assert_eq!(events(&mut worker), [WorkerEvent::WentBack]);
}

#[test]
fn a_store_that_went_back_by_a_moment_is_found_out_though_everything_counted_up_again() {
    let mut worker = owner();
    // What it owns was forgotten before it was renewed, and something else was given to it under the same revision.
    worker.renewed(renewal(2, 1), at(20));
    reads(&mut worker, 0, page(1, &[entry(1, 1, Holding::Owned(session(1)))]), at(21));
    assert!(events(&mut worker).contains(&WorkerEvent::WentBack));
}

#[test]
fn after_a_renewal_that_nobody_heard_of_everything_is_read_again() {
    let mut worker = reviewed();
    worker.renewed(Renewed { sequence: 6, unheard: 6, notices: 1 }, at(30));
    reads(&mut worker, 0, page(1, &[]), at(31));
    assert_eq!(events(&mut worker), [WorkerEvent::WentBack], "it may have hidden that the store went back");
}

#[test]
fn a_release_that_the_store_forgot_is_acknowledged_again() {
    let mut worker = revoked();
    worker.stopped(P, at(700));
    let ask = worker.poll_ask().unwrap();
    worker.reply(ask.serial, Ok(Told::Acknowledged { notices: 3 }), Some(session(1)), at(701));
    worker.renewed(renewal(2, 3), at(800));
    let told = Page { revision: 3, published: 2, notices: 3, more: false, entries: Vec::new() };
    let entries = vec![entry(0, 2, Holding::Revoking(session(1)))];
    reads(&mut worker, 0, Told::Read(Page { entries, ..told }), at(801));
    let again = worker.poll_ask().unwrap();
    assert_eq!(again.demand, Demand::Acknowledge { session: session(1), released: vec![(P, 2)] });
}

#[test]
fn a_worker_that_knows_that_the_store_went_back_takes_nothing_before_former_owners_must_have_stopped() {
    let mut worker = Worker::new(Drain::new(TTL));
    worker.opened(session(1), at(5000));
    worker.hint(at(0));
    assert_eq!((worker.poll_ask(), worker.poll_timeout()), (None, Some(at(5000))));
    worker.handle_timeout(at(5000));
    assert!(worker.poll_ask().is_some());
}

#[test]
fn a_ledger_that_went_back_is_told() {
    let mut worker = revoked();
    events(&mut worker);
    worker.hint(at(20));
    let ask = worker.poll_ask().unwrap();
    worker.reply(ask.serial, Ok(page(1, &[])), Some(session(1)), at(21));
    assert_eq!(events(&mut worker), [WorkerEvent::WentBack]);
}

// ----- the coordinator ------------------------------------------------------------------------

struct Stage {
    coordinator: Coordinator,
    sequence: u64,
}

fn sighting(number: u128, sequence: Option<u64>) -> Sighting {
    let stamp = |sequence| Stamp { session: session(number), sequence };
    Sighting {
        node: NodeId::new(format!("n{}", number % 100)).expect("a letter and a number are a name"),
        session: session(number),
        pulse: sequence.map(|sequence| Pulse { stamp: stamp(sequence), ttl: TTL, age: Age::Unknown }),
        member: Member::default(),
    }
}

impl Stage {
    /// A coordinator (session 9) with one task list and this pace, which has just been elected.
    fn new(partitions: u32, pace: Pace) -> Self {
        let mut coordinator =
            Coordinator::new(session(9), Term::new(3), pace, Drift::DEFAULT, Planted::default(), at(0));
        coordinator.declare(vec![TaskList::new(partitions).into()], at(0));
        Self { coordinator, sequence: 0 }
    }

    fn ask(&mut self) -> Ask {
        self.coordinator.poll_ask().expect("the coordinator asks")
    }

    fn load(&mut self, revision: Revision, entries: &[Entry]) {
        let ask = self.ask();
        assert_eq!(ask.demand, Demand::Read { since: 0, of: None });
        self.coordinator.reply(ask.serial, Ok(page(revision, entries)), at(1));
    }

    /// Answers the survey: these are live, those are over.
    fn survey(&mut self, revision: Revision, live: &[u128], over: &[u128], now: Instant) {
        let ask = self.ask();
        assert_eq!(ask.demand, Demand::Survey);
        self.sequence += 1;
        let live = live.iter().map(|number| sighting(*number, Some(self.sequence)));
        let seen = live.chain(over.iter().map(|number| sighting(*number, None))).collect();
        self.coordinator.reply(ask.serial, Ok(Told::Survey { revision, seen }), now);
    }

    fn publication(&mut self) -> (Vec<Change>, Ask) {
        let ask = self.ask();
        let Demand::Publish { session: by, term, changes, .. } = &ask.demand else { panic!("{ask:?}") };
        assert_eq!((*by, *term), (session(9), Term::new(3)));
        (changes.clone(), ask)
    }

    fn publish(&mut self, revision: Revision, now: Instant) -> Vec<Change> {
        let (changes, ask) = self.publication();
        self.coordinator.reply(ask.serial, Ok(Told::Published { revision, refused: Vec::new() }), now);
        changes
    }
}

fn pace() -> Pace {
    Pace { grace: Duration::ZERO, ..Pace::new(TTL) }
}

#[test]
fn a_new_coordinator_loads_the_ledger_and_looks_around_before_it_writes() {
    let mut stage = Stage::new(2, pace());
    stage.load(5, &[entry(0, 4, Holding::Owned(session(1))), entry(1, 5, Holding::Owned(session(2)))]);
    stage.survey(5, &[1, 2], &[], at(2));
    assert_eq!(stage.coordinator.poll_event(), Some(CoordinatorEvent::Ready));
    assert_eq!(stage.coordinator.poll_ask(), None, "all is as it should be: nothing is written");
    assert!(stage.coordinator.is_settled());
}

#[test]
fn what_has_no_owner_is_assigned_at_once() {
    let mut stage = Stage::new(2, pace());
    stage.load(0, &[]);
    stage.survey(0, &[1, 2], &[], at(2));
    let assign =
        |number, to| Change::Assign { partition: Partition { list: 0, number }, seen: 0, to: session(to) };
    assert_eq!(stage.publish(1, at(3)), [assign(0, 1), assign(1, 2)]);
    assert!(stage.coordinator.is_settled());
}

#[test]
fn a_move_is_a_revocation_first_and_an_assignment_only_after_the_release() {
    let mut stage = Stage::new(2, pace());
    stage.load(5, &[entry(0, 4, Holding::Owned(session(1))), entry(1, 5, Holding::Owned(session(1)))]);
    stage.survey(5, &[1, 2], &[], at(2));
    let changes = stage.publish(6, at(3));
    let [Change::Revoke { partition, .. }] = changes[..] else { panic!("{changes:?}") };
    assert_eq!(stage.coordinator.poll_ask(), None, "it waits for the owner");
    stage.coordinator.hint(at(50));
    let ask = stage.ask();
    let released = Entry { partition, revision: 7, holding: Holding::Vacant };
    stage.coordinator.reply(ask.serial, Ok(page(7, &[released])), at(51));
    let told = |stage: &mut Stage| std::iter::from_fn(|| stage.coordinator.poll_event()).collect::<Vec<_>>();
    let done = |event: &CoordinatorEvent| matches!(event, CoordinatorEvent::CarriedOut { .. });
    assert!(!told(&mut stage).iter().any(done), "the plan is not carried out yet");
    assert_eq!(stage.publish(8, at(52)), [Change::Assign { partition, seen: 7, to: session(2) }]);
    let took = Duration::from_millis(50);
    assert_eq!(told(&mut stage), [CoordinatorEvent::CarriedOut { took }], "since the first publication");
}

#[test]
fn no_more_are_moved_at_a_time_than_allowed() {
    let mut stage = Stage::new(12, Pace { moves: 2, ..pace() });
    let entries: Vec<Entry> = (0..12).map(|number| entry(number, 1, Holding::Owned(session(1)))).collect();
    stage.load(1, &entries);
    stage.survey(1, &[1, 2], &[], at(2));
    assert_eq!(stage.publish(2, at(3)).len(), 2, "six shall move, two at a time");
    assert_eq!(stage.coordinator.poll_ask(), None);
}

#[test]
fn a_session_that_is_over_needs_no_release() {
    let mut stage = Stage::new(1, pace());
    stage.load(5, &[entry(0, 5, Holding::Revoking(session(1)))]);
    stage.survey(5, &[2], &[1], at(2));
    assert_eq!(stage.publish(6, at(3)), [Change::Assign { partition: P, seen: 5, to: session(2) }]);
}

#[test]
fn a_node_that_returns_within_its_grace_gets_its_own_back_and_nothing_else_moves() {
    let mut stage = Stage::new(4, Pace { grace: TTL, ..Pace::new(TTL) });
    let owned: Vec<Entry> =
        (0..4).map(|number| entry(number, 1, Holding::Owned(session(1 + u128::from(number % 2))))).collect();
    stage.load(1, &owned);
    stage.survey(1, &[1, 2], &[], at(2));
    stage.coordinator.hint_members(at(1000));
    stage.survey(1, &[2], &[1], at(1001));
    assert_eq!(stage.coordinator.poll_ask(), None, "it is expected back");
    // Session 101 is the next one of the same node.
    stage.coordinator.hint_members(at(4000));
    stage.survey(1, &[2, 101], &[1], at(4001));
    let changes = stage.publish(2, at(4002));
    let back =
        |number| Change::Assign { partition: Partition { list: 0, number }, seen: 1, to: session(101) };
    assert_eq!(changes, [back(0), back(2)]);
}

#[test]
fn after_its_grace_a_nodes_partitions_are_given_to_others() {
    let mut stage = Stage::new(1, Pace { grace: TTL, survey_every: TTL * 9, ..Pace::new(TTL) });
    stage.load(1, &[entry(0, 1, Holding::Owned(session(1)))]);
    stage.survey(1, &[2], &[1], at(2));
    assert_eq!(stage.coordinator.poll_ask(), None);
    assert_eq!(
        stage.coordinator.poll_timeout(at(2)),
        Some(at(2) + TTL),
        "the grace, or the silence of another"
    );
    stage.coordinator.hint_members(at(5000));
    stage.survey(1, &[2], &[1], at(5001));
    stage.coordinator.handle_timeout(at(2) + TTL);
    assert_eq!(stage.publish(2, at(10_003)), [Change::Assign { partition: P, seen: 1, to: session(2) }]);
}

#[test]
fn a_silent_session_is_retired_in_the_write_that_gives_its_partitions_away() {
    let mut stage = Stage::new(1, Pace { survey_every: TTL * 9, ..pace() });
    stage.load(1, &[entry(0, 1, Holding::Owned(session(1)))]);
    stage.survey(1, &[1, 2], &[], at(2));
    stage.coordinator.hint_members(at(5000));
    let ask = stage.ask();
    let seen = vec![sighting(1, Some(1)), sighting(2, Some(2))];
    stage.coordinator.reply(ask.serial, Ok(Told::Survey { revision: 1, seen }), at(5001));
    stage.coordinator.handle_timeout(at(2) + TTL - Duration::from_millis(1));
    assert_eq!(stage.coordinator.poll_ask(), None, "not before it was silent for its whole life");
    stage.coordinator.handle_timeout(at(2) + TTL);
    let (changes, ask) = stage.publication();
    let Demand::Publish { retire, .. } = ask.demand else { panic!() };
    assert_eq!(retire, [Stamp { session: session(1), sequence: 1 }]);
    assert_eq!(changes, [Change::Assign { partition: P, seen: 1, to: session(2) }]);
}

#[test]
fn a_node_that_comes_and_goes_too_often_gets_nothing_until_it_is_steady() {
    let pace = Pace { forgiven: 1, survey_every: TTL * 99, ..pace() };
    let mut stage = Stage::new(2, pace);
    stage.load(0, &[]);
    stage.survey(0, &[2], &[], at(2));
    stage.publish(1, at(3));
    let mut now = 100;
    let mut gave = Vec::new();
    for life in [1, 101, 201] {
        stage.coordinator.hint_members(at(now));
        stage.survey(1, &[2, life], &[], at(now + 1));
        let ask = stage.coordinator.poll_ask();
        gave.push(ask.is_some());
        if let Some(ask) = ask {
            stage.coordinator.reply(ask.serial, Err(Failure::Unavailable), at(now + 2));
        }
        stage.coordinator.hint_members(at(now + 5000));
        stage.coordinator.handle_timeout(at(now + 5000));
        while let Some(ask) = stage.coordinator.poll_ask() {
            let told = match ask.demand {
                Demand::Survey => {
                    stage.sequence += 1;
                    let seen = vec![sighting(2, Some(stage.sequence)), sighting(life, None)];
                    Told::Survey { revision: 1, seen }
                }
                Demand::Read { .. } => page(1, &[]),
                other => panic!("{other:?}"),
            };
            stage.coordinator.reply(ask.serial, Ok(told), at(now + 5001));
        }
        now += 8000;
    }
    assert_eq!(gave, [true, true, false], "forgiven once, and then held");
}

#[test]
fn a_coordinator_whose_publications_the_store_forgot_writes_nothing_more() {
    let mut stage = Stage::new(1, pace());
    stage.load(0, &[]);
    stage.survey(0, &[1], &[], at(2));
    stage.publish(1, at(3));
    stage.coordinator.hint(at(4));
    let ask = stage.ask();
    // The revision is no lower: somebody acknowledged something since.
    let told = Page { revision: 2, published: 0, notices: 0, entries: Vec::new(), more: false };
    stage.coordinator.reply(ask.serial, Ok(Told::Read(told)), at(5));
    let events: Vec<_> = std::iter::from_fn(|| stage.coordinator.poll_event()).collect();
    assert_eq!(events.last(), Some(&CoordinatorEvent::WentBack));
    assert_eq!(stage.coordinator.poll_ask(), None);
}

#[test]
fn a_coordinator_reads_again_what_it_knows_and_finds_out_that_the_store_went_back_by_a_moment() {
    let mut stage = Stage::new(1, pace());
    stage.load(2, &[entry(0, 2, Holding::Vacant)]);
    stage.survey(2, &[1], &[], at(2));
    stage.publish(3, at(3));
    stage.coordinator.renewed(renewal(2, 0), at(4));
    // Its publication is there, and in it an owner that it did not choose.
    stage.load(3, &[entry(0, 3, Holding::Owned(session(2)))]);
    let events: Vec<_> = std::iter::from_fn(|| stage.coordinator.poll_event()).collect();
    assert_eq!(events.last(), Some(&CoordinatorEvent::WentBack));
}

#[test]
fn a_publication_under_a_revision_that_is_known_already_tells_that_the_store_went_back() {
    let mut stage = Stage::new(1, pace());
    stage.load(5, &[entry(0, 5, Holding::Vacant)]);
    stage.survey(5, &[1], &[], at(2));
    stage.publish(5, at(3));
    let events: Vec<_> = std::iter::from_fn(|| stage.coordinator.poll_event()).collect();
    assert_eq!(events.last(), Some(&CoordinatorEvent::WentBack));
}

#[test]
fn a_coordinator_whose_term_is_over_asks_nothing_more() {
    let mut stage = Stage::new(1, pace());
    stage.load(0, &[]);
    stage.survey(0, &[1], &[], at(2));
    let (_, ask) = stage.publication();
    stage.coordinator.reply(ask.serial, Ok(Told::TermOver), at(3));
    let events: Vec<_> = std::iter::from_fn(|| stage.coordinator.poll_event()).collect();
    assert_eq!(events.last(), Some(&CoordinatorEvent::TermOver));
    stage.coordinator.hint(at(4));
    assert_eq!((stage.coordinator.poll_ask(), stage.coordinator.poll_timeout(at(4))), (None, None));
}

#[test]
fn a_publication_without_an_answer_is_read_back_before_anything_else_is_written() {
    let mut stage = Stage::new(1, pace());
    stage.load(0, &[]);
    stage.survey(0, &[1], &[], at(2));
    let (_, ask) = stage.publication();
    stage.coordinator.handle_timeout(ask.give_up);
    stage.coordinator.handle_timeout(stage.coordinator.poll_timeout(ask.give_up).unwrap());
    assert_eq!(stage.ask().demand, Demand::Read { since: 0, of: None });
}
