//! What a leader does, and when it stops: the exact requests and events.

use std::time::Duration;

use crate::stage::{ANYWHERE, LEASE, Stage, TTL, free, led, ms};
use tenure_core::{
    Age, Answer, Event, Failure, NodeId, Petition, Reason, Record, Refusal, Renewal, Settings, Standing,
    StoreIdentity, Term, Verb,
};

#[test]
fn a_lease_counts_from_before_the_request_left() {
    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    stage.machine.start(stage.now);
    let (sent, open) = (stage.now, stage.request());
    stage.pass(ms(900));
    stage.answer(open.id, Answer::Open(tenure_core::Opening::Opened { ttl: TTL }));
    assert_eq!(stage.machine.deadline(), sent + LEASE);

    stage.wake();
    let (sent, renewal) = (stage.now, stage.request());
    stage.pass(ms(700));
    stage.renewed(&renewal);
    assert_eq!(stage.machine.deadline(), sent + LEASE);
}

#[test]
fn a_renewal_starts_at_a_third_of_the_ttl_and_is_one_request_however_much_is_held() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let began = stage.now;
    for _ in 0..999 {
        let key = stage.machine.add();
        stage.machine.stand(key, stage.now).unwrap();
        let claim = stage.request();
        let grant = tenure_core::Standing::Leading { term: Term::new(1) };
        stage.answer(claim.id, Answer::Claim(grant));
    }
    assert_eq!(stage.wake(), began + TTL / 3);
    assert!(matches!(stage.verbs()[..], [Verb::Renew { sequence: 2, attempt: 1, .. }]));
}

#[test]
fn a_leader_stops_at_its_deadline_when_renewals_go_unanswered() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let deadline = stage.machine.deadline();
    let mut attempts = Vec::new();
    while stage.check().is_some() {
        stage.wake();
        attempts.extend(stage.verbs());
    }
    assert_eq!(stage.now, deadline, "not a moment later");
    assert!(attempts.len() >= 3, "at least three attempts fit: {attempts:?}");
    assert!(matches!(attempts[1], Verb::Renew { attempt: 2, .. }), "the second asks for a fresh connection");
    let (election, term) = (stage.key, Term::new(1));
    assert_eq!(
        stage.events().into_iter().filter(|e| !matches!(e, Event::LeaderChanged { .. })).collect::<Vec<_>>(),
        [
            Event::InJeopardy { deadline },
            Event::SessionLost { reason: Reason::Lapsed },
            Event::Deposed { election, term, reason: Reason::Lapsed },
        ]
    );
}

#[test]
fn with_a_ttl_of_hours_a_renewal_that_hangs_is_repeated_after_half_a_minute() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(Duration::from_secs(3600)));
    stage.wake();
    let renewal = stage.request();
    assert!(matches!(renewal.verb, Verb::Renew { attempt: 1, .. }), "{renewal:?}");
    assert_eq!(renewal.give_up, stage.now + Duration::from_secs(30));
    assert_eq!(stage.wake(), renewal.give_up);
    let again = stage.request();
    assert!(
        matches!(again.verb, Verb::Renew { attempt: 2, .. }),
        "at once, over a fresh connection: {again:?}"
    );
}

#[test]
fn the_timeout_of_a_renewal_is_a_sixth_of_the_ttl_and_at_most_half_of_what_is_left() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.wake();
    let renewal = stage.request();
    assert_eq!(renewal.give_up, stage.now + TTL / 6);
    let left = ms(1000);
    stage.now = stage.machine.deadline() - left;
    stage.machine.handle_timeout(stage.now);
    assert_eq!(stage.request().give_up, stage.now + left / 2);
}

#[test]
fn a_reply_that_arrives_at_the_deadline_moves_nothing() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.wake();
    let renewal = stage.request();
    // The driver was asleep all the time: neither the time-out nor the deadline was dealt with.
    stage.now = stage.machine.deadline();
    let answer = Answer::Renew(Renewal { previous: 1, notices: 0, grants: 1, waits_for: Vec::new() });
    stage.answer(renewal.id, answer);
    assert_eq!(stage.check(), None);
    assert!(stage.events().contains(&Event::SessionLost { reason: Reason::Lapsed }));
}

#[test]
fn refusals_of_the_store_leave_the_deadline_where_it_is_and_are_said() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let deadline = stage.machine.deadline();
    stage.wake();
    let renewal = stage.request();
    stage.events();
    stage.fail(renewal.id, Failure::Unavailable);
    assert_eq!(stage.machine.deadline(), deadline);
    assert_eq!(stage.events(), [Event::InJeopardy { deadline }]);
    assert_eq!(stage.check(), Some(Term::new(1)), "carries on to the deadline");
    let again = stage.next_request();
    stage.renewed(&again);
    assert_eq!(stage.events(), [Event::Recovered]);
    assert!(stage.machine.deadline() > deadline);
}

#[test]
fn a_session_that_the_store_calls_over_ends_leadership_at_once() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.wake();
    let renewal = stage.request();
    stage.fail(renewal.id, Failure::SessionLost);
    assert_eq!(stage.check(), None);
    assert!(stage.verbs().is_empty(), "no new session while the work still runs");
    stage.machine.stopped(stage.key, stage.now);
    let verbs = stage.verbs();
    assert!(matches!(verbs[..], [Verb::Open { supersedes: Some(_), .. }]), "{verbs:?}");
}

#[test]
fn another_store_that_answers_ends_leadership_at_once() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.wake();
    let renewal = stage.request();
    stage.store = StoreIdentity(2);
    stage.renewed(&renewal);
    assert_eq!(stage.check(), None);
    assert!(stage.events().contains(&Event::SessionLost { reason: Reason::StoreChanged }));
}

#[test]
fn a_store_that_went_back_in_time_ends_leadership_at_once() {
    // It has forgotten a renewal; or the grant; or shows a lower term.
    for renewal in [
        Renewal { previous: 0, notices: 0, grants: 1, waits_for: Vec::new() },
        Renewal { previous: 1, notices: 0, grants: 0, waits_for: Vec::new() },
    ] {
        let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
        stage.wake();
        let request = stage.request();
        stage.answer(request.id, Answer::Renew(renewal.clone()));
        assert_eq!(stage.check(), None, "{renewal:?}");
        assert!(stage.events().contains(&Event::SessionLost { reason: Reason::StoreRolledBack }));
    }
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.hint(stage.key, stage.now);
    let read = stage.request();
    stage.answer(read.id, Answer::Read(free(0)));
    assert_eq!(stage.check(), None);
}

#[test]
fn a_look_that_was_under_way_when_a_node_was_elected_is_old_and_not_a_store_that_went_back() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.observe(stage.key, true, stage.now);
    let look = stage.request();
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
    stage.answer(look.id, Answer::Read(free(0)));
    assert_eq!(stage.check(), Some(Term::new(1)));

    // What it may have missed is looked at again; and that answer counts.
    let again = stage.request();
    assert!(matches!(again.verb, Verb::Read { .. }), "{again:?}");
    stage.answer(again.id, Answer::Read(free(0)));
    assert_eq!(stage.check(), None);
    assert!(stage.events().contains(&Event::SessionLost { reason: Reason::StoreRolledBack }));
}

#[test]
fn a_leader_that_sees_another_holder_steps_down_at_once() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.hint(stage.key, stage.now);
    let read = stage.request();
    assert!(matches!(read.verb, Verb::Read { .. }));
    stage.answer(read.id, Answer::Read(led(2, 1, Age::Unknown)));
    assert_eq!(stage.check(), None);
    let deposed = Event::Deposed { election: stage.key, term: Term::new(1), reason: Reason::Superseded };
    assert!(stage.events().contains(&deposed));
}

#[test]
fn a_leap_of_the_wall_clock_ends_leadership_and_slewing_does_not() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    stage.pass(ms(3000));
    stage.machine.clock(wall + ms(3250), stage.now);
    assert!(stage.check().is_some(), "chrony slews by 8.3 %");
    stage.pass(ms(100));
    stage.machine.clock(wall + ms(3350) + ms(1001), stage.now);
    assert_eq!(stage.check(), None);
    assert!(stage.events().contains(&Event::SessionLost { reason: Reason::ClockJumped }));
}

#[test]
fn a_pause_that_is_too_short_to_step_down_for_shortens_the_lease() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    let deadline = stage.machine.deadline();
    stage.pass(ms(100));
    stage.machine.clock(wall + ms(100 + 900), stage.now);
    assert_eq!(stage.machine.deadline(), deadline - ms(900), "the others have counted the pause");
    stage.machine.clock(wall + ms(100 + 910), stage.now);
    assert_eq!(stage.machine.deadline(), deadline - ms(900), "two clocks are never read at the same instant");
    let renewal = stage.next_request();
    let sent = stage.now;
    stage.renewed(&renewal);
    assert_eq!(
        stage.machine.deadline(),
        sent + LEASE,
        "a renewal that was sent afterwards is worth a whole lease"
    );
}

#[test]
fn several_short_pauses_within_one_lease_count_together() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let mut wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    let pause = |stage: &mut Stage, wall: &mut Duration, of: u64| {
        stage.pass(ms(100));
        *wall += ms(100 + of);
        stage.machine.clock(*wall, stage.now);
    };
    pause(&mut stage, &mut wall, 600);
    assert!(stage.check().is_some(), "one short pause is no reason");
    pause(&mut stage, &mut wall, 600);
    assert_eq!(stage.check(), None, "two are more than a tenth of the ttl");
    assert!(stage.events().contains(&Event::SessionLost { reason: Reason::ClockJumped }));
}

#[test]
fn a_pause_before_the_confirmed_renewal_was_sent_does_not_count_any_more() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let mut wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    for _ in 0..5 {
        let before = stage.now;
        let renewal = stage.next_request();
        wall += stage.now.since(before);
        stage.renewed(&renewal);
        stage.pass(ms(100));
        wall += ms(100 + 600);
        stage.machine.clock(wall, stage.now);
        assert!(stage.check().is_some(), "each lease has one short pause");
    }
}

#[test]
fn a_step_back_of_the_wall_clock_hides_no_pause() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    stage.machine.clock(wall - ms(900), stage.now);
    assert!(stage.check().is_some());
    stage.machine.clock(wall + ms(200), stage.now);
    assert_eq!(stage.check(), None, "a pause of 1.1 s");
}

#[test]
fn an_opening_that_was_answered_while_the_machine_was_frozen_is_asked_again() {
    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    let wall = Duration::from_secs(1_000_000);
    stage.machine.clock(wall, stage.now);
    stage.machine.start(stage.now);
    let open = stage.request();
    // A minute passes for everybody else: by now the session that was opened may be over.
    stage.pass(ms(1));
    stage.machine.clock(wall + Duration::from_secs(60), stage.now);
    stage.answer(open.id, Answer::Open(tenure_core::Opening::Opened { ttl: TTL }));
    assert_eq!(stage.events(), [], "the answer is as old as the pause, and is worth nothing");
    let again = stage.next_request();
    let (Verb::Open { session: first, .. }, Verb::Open { session: second, sequence: 2, .. }) =
        (open.verb, &again.verb)
    else {
        panic!("{again:?}")
    };
    assert_eq!(first, *second, "if it lives on, it is the same");
    let sent = stage.now;
    stage.answer(again.id, Answer::Open(tenure_core::Opening::Opened { ttl: TTL }));
    assert_eq!(stage.machine.deadline(), sent + LEASE);
}

#[test]
fn a_renewal_that_was_applied_but_not_answered_is_told_to_whoever_depends_on_it() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    assert_eq!(stage.machine.renewals().unheard, 0);
    let lost = stage.next_request();
    stage.fail(lost.id, Failure::Indeterminate);
    let next = stage.next_request();
    stage.renewed(&next);
    let renewed = stage.machine.renewals();
    assert_eq!((renewed.sequence, renewed.unheard), (3, 3), "the store had the second before");
    let next = stage.next_request();
    stage.renewed(&next);
    assert_eq!(stage.machine.renewals().unheard, 3, "and then it is as it should be");
}

#[test]
fn a_lease_is_given_back_only_after_the_work_has_stopped() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let to = NodeId::new("successor").unwrap();
    stage.machine.resign(stage.key, Some(to.clone()), stage.now).unwrap();
    assert_eq!(stage.check(), None, "the guard closes first");
    assert!(stage.verbs().is_empty(), "nothing is given back yet");
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    let Verb::Resign { term, to: successor, .. } = &resign.verb else { panic!("{resign:?}") };
    assert_eq!((*term, successor.as_ref()), (Some(Term::new(1)), Some(&to)));
    stage.events();
    stage.answer(resign.id, Answer::Resign);
    assert_eq!(stage.events(), [Event::Resigned { election: stage.key, term: Term::new(1) }]);
    assert_eq!(stage.machine.resign(stage.key, None, stage.now), Err(Refusal::NotLeading), "twice");
}

#[test]
fn a_resignation_is_repeated_until_it_is_answered() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let first = stage.request();
    stage.fail(first.id, Failure::Indeterminate);
    let again = stage.next_deed();
    assert_eq!(again.verb, first.verb, "the same words");
}

#[test]
fn an_unwell_node_leads_nothing_and_lets_its_session_lapse_while_work_runs_on() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let deadline = stage.machine.deadline();
    stage.machine.health(false, stage.now);
    assert_eq!(stage.check(), None);
    assert_eq!(stage.machine.poll_timeout(), Some(deadline), "no renewal for work that does not stop");
    // The work does stop: the lease is given back, and the node stays registered.
    stage.machine.stopped(stage.key, stage.now);
    assert!(matches!(stage.verbs()[..], [Verb::Resign { .. }]));
    assert!(stage.machine.poll_timeout() < Some(deadline), "renewals go on");
}

#[test]
fn closing_waits_for_the_work_and_then_frees_everything_with_one_request() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.close(stage.now);
    assert!(stage.verbs().is_empty());
    stage.machine.stopped(stage.key, stage.now);
    let close = stage.request();
    assert!(matches!(close.verb, Verb::Close { .. }));
    stage.events();
    stage.answer(close.id, Answer::Close);
    assert_eq!(stage.events(), [Event::Closed]);
    assert_eq!(stage.machine.stand(stage.key, stage.now), Err(Refusal::Closed));
}

#[test]
fn a_closing_node_whose_resignation_is_under_way_comes_to_its_end() {
    // Found by the simulation: the resignation was asked for again and again, in no time.
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    stage.machine.close(stage.now);
    stage.fail(resign.id, Failure::Unavailable);
    for _ in 0..100 {
        if stage.machine.poll_timeout().is_none() {
            break;
        }
        stage.wake();
    }
    assert!(stage.events().contains(&Event::Closed));
}

#[test]
fn a_leader_that_is_asked_stops_its_work_and_hands_over_to_whom_it_is_told() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let to = NodeId::new("successor").unwrap();
    stage.machine.hint(stage.key, stage.now);
    let look = stage.request();
    let mut seen = ours(&stage);
    seen.petition = Some(Petition { term: Term::new(1), to: Some(to.clone()) });
    stage.answer(look.id, Answer::Read(seen));
    assert_eq!(stage.check(), None);
    assert!(stage.events().contains(&Event::Deposed {
        election: stage.key,
        term: Term::new(1),
        reason: Reason::Asked
    }));
    assert!(stage.verbs().is_empty(), "nothing is freed under running work");
    stage.machine.stopped(stage.key, stage.now);
    let Verb::Resign { to: successor, term, .. } = stage.request().verb else { panic!() };
    assert_eq!((successor, term), (Some(to), Some(Term::new(1))));
}

#[test]
fn a_petition_about_an_earlier_term_is_an_old_story() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.hint(stage.key, stage.now);
    let look = stage.request();
    let mut seen = ours(&stage);
    seen.petition = Some(Petition { term: Term::NONE, to: None });
    stage.answer(look.id, Answer::Read(seen));
    assert_eq!(stage.check(), Some(Term::new(1)));
}

/// The record as the store has it while we lead.
fn ours(stage: &Stage) -> Record {
    let mut seen = led(1, 1, Age::Exact(ms(0)));
    if let (Some(holder), Some(session)) = (&mut seen.holder, stage.machine.session()) {
        holder.pulse.stamp.session = session;
    }
    seen
}
