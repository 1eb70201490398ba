//! What a candidate does, and at which instant: the exact requests and events.

use std::time::Duration;

use crate::stage::{ANYWHERE, Stage, TTL, free, led, ms, pulse};
use tenure_core::{
    Age, Answer, Capabilities, Event, ExpiryJudge, Failure, News, NodeId, Opening, Record, Refusal, Renewal,
    Sessions, Settings, Standing, StoreIdentity, Term, Verb,
};

const EXACT: fn(u64) -> Age = |millis| Age::Exact(ms(millis));

#[test]
fn a_candidate_claims_and_leads() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    let Verb::Claim { over: None, above: Term::NONE, since: None, .. } = claim.verb else {
        panic!("{claim:?}")
    };
    stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(4) }));
    assert_eq!(stage.check(), Some(Term::new(4)));
    assert_eq!(stage.machine.stand(stage.key, stage.now), Err(Refusal::AlreadyStanding));
}

#[test]
fn a_follower_takes_over_at_the_very_instant_and_not_a_poll_later() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    for _ in 0..10 {
        let renewal = stage.next_request();
        stage.renewed(&renewal);
    }
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    let received = stage.now;
    stage.refuse(claim.id, led(1, 5, EXACT(4000)));
    let take = stage.next_deed();
    assert_eq!(stage.now, received + TTL - ms(4000));
    let Verb::Claim { over: Some(stamp), above, .. } = take.verb else { panic!("{take:?}") };
    assert_eq!((stamp, above), (pulse(5, Age::Unknown).stamp, Term::new(1)));
}

#[test]
fn at_first_contact_even_an_exact_age_waits_for_a_full_ttl() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(9999)));
    let met = stage.now - Duration::from_millis(1);
    stage.next_deed();
    assert_eq!(stage.now, met + TTL);
}

#[test]
fn a_renewal_of_the_holder_starts_the_wait_anew() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    let take = stage.next_deed();
    stage.refuse(take.id, led(1, 8, EXACT(2000)));
    let received = stage.now;
    let Verb::Claim { over: Some(stamp), .. } = stage.next_deed().verb else { panic!() };
    assert_eq!(stamp.sequence, 8);
    assert_eq!(stage.now, received + TTL - ms(2000));
}

#[test]
fn a_hint_is_a_reason_to_ask_and_no_proof() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    stage.machine.hint(stage.key, stage.now);
    let Verb::Claim { over: None, .. } = stage.request().verb else { panic!("nobody is retired by a hint") };
}

#[test]
fn a_hint_that_crosses_an_answer_is_not_lost() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    stage.machine.hint(stage.key, stage.now);
    assert!(stage.verbs().is_empty(), "one question at a time");
    stage.refuse(claim.id, led(1, 5, EXACT(0)));
    assert!(matches!(stage.verbs()[..], [Verb::Claim { .. }]), "asked again at once");
}

/// The answer to the next renewal: so many terms were ever granted to the session.
fn renewed_with(stage: &mut Stage, grants: u64) {
    let renewal = stage.next_request();
    stage.renewed_telling(&renewal, grants, Vec::new());
}

#[test]
fn a_lease_that_was_passed_on_without_a_hint_is_found_by_the_next_renewal() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    renewed_with(&mut stage, 0);
    assert!(stage.verbs().is_empty());
    renewed_with(&mut stage, 1);
    let look = stage.request();
    let granted = stage.ours(2);
    stage.answer(look.id, Answer::Read(granted));
    assert_eq!(stage.check(), Some(Term::new(2)));
    renewed_with(&mut stage, 1);
    assert!(stage.verbs().is_empty(), "it knows");
}

#[test]
fn a_lease_that_is_passed_on_just_after_another_is_found_too() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    let other = stage.machine.add();
    stage.machine.stand(other, stage.now).unwrap();
    let claim = stage.request();
    stage.refuse(claim.id, led(1, 5, EXACT(0)));
    renewed_with(&mut stage, 1);
    for term in [Some(2), None] {
        let look = stage.request();
        let seen = term.map_or(led(1, 6, EXACT(0)), |term| stage.ours(term));
        stage.answer(look.id, Answer::Read(seen));
    }
    renewed_with(&mut stage, 2);
    assert!(matches!(stage.verbs()[..], [Verb::Read { election }] if election == other));
}

#[test]
fn a_grant_that_no_candidacy_answers_for_is_asked_for_once() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    renewed_with(&mut stage, 1);
    let look = stage.request();
    stage.answer(look.id, Answer::Read(led(1, 6, EXACT(0))));
    renewed_with(&mut stage, 1);
    assert!(stage.verbs().is_empty(), "it was asked for");
    renewed_with(&mut stage, 2);
    assert!(matches!(stage.verbs()[..], [Verb::Read { .. }]), "there is another");
}

#[test]
fn a_request_under_way_is_repeated_if_a_renewal_told_of_a_grant_meanwhile() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    let renewal = stage.next_request();
    stage.machine.hint(stage.key, stage.now);
    let claim = stage.request();
    stage.answer(
        renewal.id,
        Answer::Renew(Renewal { previous: 1, notices: 0, grants: 1, waits_for: Vec::new() }),
    );
    assert!(stage.verbs().is_empty(), "the answer may tell");
    stage.refuse(claim.id, led(1, 5, EXACT(0)));
    assert!(matches!(stage.verbs()[..], [Verb::Read { .. }]), "it was given before the lease was passed on");
}

/// Seed 7108 of the simulation: the claim under way was taken for the one that would be told of the grant.
#[test]
fn a_lease_that_was_passed_on_is_asked_for_although_a_claim_for_another_election_is_under_way() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    let (passed_on, other) = (stage.key, stage.machine.add());
    let renewal = stage.next_request();
    stage.machine.stand(other, stage.now).unwrap();
    assert!(matches!(stage.request().verb, Verb::Claim { election, .. } if election == other));
    stage.answer(
        renewal.id,
        Answer::Renew(Renewal { previous: 1, notices: 0, grants: 1, waits_for: Vec::new() }),
    );
    assert!(matches!(stage.verbs()[..], [Verb::Read { election }] if election == passed_on));
}

#[test]
fn an_uncertain_claim_is_asked_again_and_leads_if_it_was_granted() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let first = stage.request();
    let deadline = stage.machine.deadline();
    let again = stage.next_deed();
    assert!(stage.now >= first.give_up, "after the first was given up");
    assert_eq!(stage.check(), None, "not leader meanwhile");
    stage.answer(first.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
    assert_eq!(stage.check(), None, "a late answer is discarded");
    stage.answer(again.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
    assert_eq!(stage.check(), Some(Term::new(1)));
    assert!(stage.machine.deadline() <= deadline, "a claim is worth no more than its session");
}

#[test]
fn a_withdrawn_candidate_voids_the_claim_that_is_under_way() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let Verb::Claim { attempt: claimed, .. } = stage.request().verb else { panic!() };
    stage.machine.withdraw(stage.key, stage.now);
    let resign = stage.request();
    let Verb::Resign { attempt, term: None, .. } = resign.verb else { panic!("{resign:?}") };
    assert!(attempt > claimed);
    stage.answer(resign.id, Answer::Resign);
    assert_eq!(stage.events(), [Event::Withdrawn { election: stage.key }]);
}

#[test]
fn a_takeover_delay_is_kept_after_a_loss_and_not_for_a_fresh_election() {
    let settings = Settings { takeover_delay: ms(4000), ..Settings::new(TTL) };
    let mut fresh = Stage::open(ANYWHERE, settings);
    fresh.machine.stand(fresh.key, fresh.now).unwrap();
    let look = fresh.request();
    fresh.answer(look.id, Answer::Read(free(0)));
    assert!(matches!(fresh.verbs()[..], [Verb::Claim { .. }]), "nobody was lost");

    let mut stage = Stage::refused(ANYWHERE, settings, led(1, 5, EXACT(0)));
    stage.machine.hint(stage.key, stage.now);
    let look = stage.request();
    assert!(matches!(look.verb, Verb::Read { .. }), "a claim would be granted on the spot");
    stage.answer(look.id, Answer::Read(free(1)));
    let lost = stage.now;
    assert!(matches!(stage.next_deed().verb, Verb::Claim { .. }));
    assert_eq!(stage.now, lost + ms(4000));
}

#[test]
fn a_node_that_is_not_eligible_is_refused() {
    let settings = Settings { eligible: false, ..Settings::new(TTL) };
    let mut stage = Stage::open(ANYWHERE, settings);
    assert_eq!(stage.machine.stand(stage.key, stage.now), Err(Refusal::NotEligible));
}

#[test]
fn after_another_store_answered_nothing_is_claimed_for_a_full_ttl() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(7, 5, EXACT(0)));
    stage.machine.hint(stage.key, stage.now);
    let claim = stage.request();
    stage.store = StoreIdentity(2);
    stage.refuse(claim.id, free(3));
    let noticed = stage.now;
    let (mut claimed, mut told) = (None, None);
    while claimed.is_none() {
        let request = stage.next_request();
        match request.verb {
            Verb::Open { .. } => stage.answer(request.id, Answer::Open(Opening::Opened { ttl: TTL })),
            Verb::Renew { .. } => stage.renewed(&request),
            Verb::Read { .. } => {
                let term = if told.is_some() { 7 } else { 3 };
                stage.answer(request.id, Answer::Read(free(term)));
            }
            Verb::Claim { above, tell_only: true, .. } => {
                told = Some((above, stage.now));
                stage.refuse(request.id, free(7));
            }
            Verb::Claim { above, .. } => claimed = Some(above),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, Some((Term::new(7), noticed)), "the store is told at once of what it has forgotten");
    assert_eq!(claimed, Some(Term::new(7)), "above all that was ever seen");
    assert!(stage.now >= noticed + TTL, "a leader of the other history may still lead");
}

/// Found by a review: the claim that a hint had asked for before was made in the middle of the doubt.
#[test]
fn a_hint_from_before_a_doubt_makes_nobody_claim_during_it() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(7, 5, EXACT(0)));
    stage.machine.hint(stage.key, stage.now);
    stage.request();
    stage.machine.hint(stage.key, stage.now);
    stage.store = StoreIdentity(2);
    // Nothing is answered until the session has lapsed; then another store answers.
    let mut noticed = None;
    loop {
        let request = stage.next_request();
        match request.verb {
            Verb::Open { .. } => {
                noticed.get_or_insert(stage.now);
                stage.answer(request.id, Answer::Open(Opening::Opened { ttl: TTL }));
            }
            _ if noticed.is_none() => {}
            Verb::Renew { .. } => stage.renewed(&request),
            Verb::Read { .. } => stage.answer(request.id, Answer::Read(free(7))),
            Verb::Claim { tell_only: true, .. } => stage.refuse(request.id, free(7)),
            Verb::Claim { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        noticed.is_some_and(|noticed| stage.now >= noticed + TTL),
        "a leader of the other history may still lead"
    );
}

/// Found by a review: a store may carry out a resignation before claims that were sent earlier, and they are void then.
#[test]
fn a_claim_that_a_resignation_may_overtake_is_made_again() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let other = stage.machine.add();
    stage.machine.stand(other, stage.now).unwrap();
    let claim = stage.request();
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    stage.answer(resign.id, Answer::Resign);
    stage.refuse(claim.id, led(1, 5, EXACT(0)));
    assert!(matches!(stage.verbs()[..], [Verb::Claim { election, .. }] if election == other));
}

#[test]
fn the_end_of_an_election_is_told_to_its_candidate() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, EXACT(0)));
    stage.machine.hint(stage.key, stage.now);
    let claim = stage.request();
    let seen = Record { term: Term::new(2), ended: Term::new(2), ..Record::default() };
    stage.refuse(claim.id, seen);
    assert!(stage.events().contains(&Event::Ended { election: stage.key }));
    assert!(matches!(stage.verbs()[..], [Verb::Resign { .. }]), "no claim of it is left behind");
}

#[test]
fn where_nobody_tells_a_candidate_looks_every_poll() {
    let polls = Capabilities { news: News::Poll, ..ANYWHERE };
    let mut stage = Stage::refused(polls, Settings::new(TTL), led(1, 5, EXACT(0)));
    let seen = stage.now;
    assert!(matches!(stage.next_deed().verb, Verb::Read { .. }));
    assert_eq!(stage.now, seen + TTL / 6);
}

#[test]
fn where_the_store_judges_a_claim_retires_nobody() {
    let judged = Capabilities { expiry: ExpiryJudge::Store, ..ANYWHERE };
    let mut stage = Stage::refused(judged, Settings::new(TTL), led(1, 5, Age::Unknown));
    let Verb::Claim { over: None, .. } = stage.next_deed().verb else { panic!() };
}

#[test]
fn a_session_in_the_way_is_looked_at_soon_and_then_ever_more_seldom() {
    let occupied = Answer::Open(Opening::Occupied { pulse: pulse(5, EXACT(0)) });
    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    stage.machine.start(stage.now);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let open = stage.next_request();
        let asked = stage.now;
        stage.answer(open.id, occupied.clone());
        stage.wake();
        pauses.push(stage.now.since(asked));
    }
    assert!(pauses[0] <= ms(50), "its session may be closed this very moment: {pauses:?}");
    assert!(pauses.is_sorted() && pauses[7] <= TTL / 6, "{pauses:?}");
}

#[test]
fn a_former_life_is_outlasted_and_a_second_process_is_told_apart() {
    let occupied = |sequence| Answer::Open(Opening::Occupied { pulse: pulse(sequence, EXACT(0)) });
    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    stage.machine.start(stage.now);
    let began = stage.now;
    let taken = loop {
        let open = stage.next_request();
        let Verb::Open { over, .. } = open.verb else { panic!("{open:?}") };
        if over.is_some() {
            break over;
        }
        stage.answer(open.id, occupied(5));
    };
    assert_eq!(taken, Some(pulse(5, Age::Unknown).stamp), "silent for its whole life");
    assert_eq!(stage.now, began + TTL);

    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    stage.machine.start(stage.now);
    for sequence in [5, 6, 7] {
        let open = stage.next_request();
        stage.answer(open.id, occupied(sequence));
    }
    assert!(stage.events().contains(&Event::NodeIdTaken), "two renewals are no last breath");
}

#[test]
fn a_store_that_is_away_is_asked_again_with_pauses() {
    let mut stage = Stage::new(ANYWHERE, Settings::new(TTL));
    stage.machine.start(stage.now);
    let began = stage.now;
    for _ in 0..10 {
        let open = stage.next_request();
        stage.fail(open.id, Failure::Unavailable);
    }
    assert!(stage.now > began + TTL / 2, "ten tries took {:?}", stage.now.since(began));
}

const OWN_CONNECTION: Capabilities = Capabilities { sessions: Sessions::OwnConnection, ..ANYWHERE };

/// A candidate that waits behind the rival.
fn in_line(capabilities: Capabilities) -> Stage {
    Stage::refused(capabilities, Settings::new(TTL), led(1, 5, EXACT(0)))
}

#[test]
fn an_unhealthy_candidate_leaves_the_line_and_returns_when_it_is_healthy() {
    for capabilities in [OWN_CONNECTION, ANYWHERE] {
        let mut stage = in_line(capabilities);
        stage.machine.health(false, stage.now);
        let resign = stage.request();
        let Verb::Resign { term: None, to: None, .. } = resign.verb else { panic!("{resign:?}") };
        stage.answer(resign.id, Answer::Resign);
        for _ in 0..20 {
            let look = stage.next_deed();
            assert!(matches!(look.verb, Verb::Read { .. }), "it claims nothing: {look:?}");
            stage.answer(look.id, Answer::Read(free(1)));
        }
        assert!(!stage.events().contains(&Event::Withdrawn { election: stage.key }), "it still stands");
        stage.machine.health(true, stage.now);
        let claim = loop {
            let request = stage.next_deed();
            match request.verb {
                Verb::Read { .. } => stage.answer(request.id, Answer::Read(free(1))),
                _ => break request,
            }
        };
        assert!(matches!(claim.verb, Verb::Claim { .. }), "{claim:?}");
        stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(2) }));
        assert_eq!(stage.check(), Some(Term::new(2)));
    }
}

#[test]
fn a_claim_that_is_under_way_when_its_node_becomes_unhealthy_is_voided() {
    let mut stage = Stage::open(OWN_CONNECTION, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    let Verb::Claim { attempt: claimed, .. } = claim.verb else { panic!("{claim:?}") };
    stage.machine.health(false, stage.now);
    let Verb::Resign { attempt, term: None, .. } = stage.request().verb else { panic!() };
    assert!(attempt > claimed);
    stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
    assert_eq!(stage.check(), None, "the answer to the claim is not awaited any more");
}

#[test]
fn a_node_that_stands_while_it_is_unhealthy_enters_no_line() {
    let mut stage = Stage::open(OWN_CONNECTION, Settings::new(TTL));
    stage.machine.health(false, stage.now);
    stage.machine.stand(stage.key, stage.now).unwrap();
    let look = stage.next_deed();
    assert!(matches!(look.verb, Verb::Read { .. }), "{look:?}");
    stage.answer(look.id, Answer::Read(led(1, 5, EXACT(0))));
    let leader = Some((NodeId::new("rival").unwrap(), Term::new(1)));
    assert!(stage.events().contains(&Event::LeaderChanged { election: stage.key, leader }));
}

#[test]
fn an_unhealthy_candidate_gives_back_a_lease_that_the_store_still_shows_as_its_own() {
    let mut stage = in_line(OWN_CONNECTION);
    stage.machine.health(false, stage.now);
    let resign = stage.request();
    stage.answer(resign.id, Answer::Resign);
    let look = stage.next_deed();
    let mut seen = led(2, 5, EXACT(0));
    if let Some(holder) = &mut seen.holder {
        holder.pulse.stamp.session = stage.machine.session().unwrap();
    }
    stage.answer(look.id, Answer::Read(seen));
    assert!(matches!(stage.next_deed().verb, Verb::Resign { term: None, .. }));
}

#[test]
fn an_unhealthy_candidate_hears_of_the_end_of_its_election() {
    let mut stage = in_line(OWN_CONNECTION);
    stage.machine.health(false, stage.now);
    let resign = stage.request();
    stage.answer(resign.id, Answer::Resign);
    let look = stage.next_deed();
    let seen = Record { term: Term::new(2), ended: Term::new(2), ..Record::default() };
    stage.answer(look.id, Answer::Read(seen));
    assert!(stage.events().contains(&Event::Ended { election: stage.key }));
}

#[test]
fn a_candidate_that_was_unhealthy_when_its_election_ended_is_told_when_it_claims_again() {
    let mut stage = in_line(OWN_CONNECTION);
    stage.machine.health(false, stage.now);
    let resign = stage.request();
    stage.machine.health(true, stage.now);
    stage.answer(resign.id, Answer::Resign);
    let claim = stage.request();
    let Verb::Claim { since, .. } = claim.verb else { panic!("{claim:?}") };
    assert_eq!(since, Some(Term::new(1)), "the store compares it with the term at which the election ended");
}

/// An hour, as in tests of the command that must not wait for it.
const HOUR: Duration = Duration::from_secs(3600);
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[test]
fn with_a_ttl_of_hours_an_opening_that_hangs_is_given_up_after_half_a_minute() {
    let mut stage = Stage::new(ANYWHERE, Settings::new(HOUR));
    stage.machine.start(stage.now);
    let open = stage.request();
    assert!(matches!(open.verb, Verb::Open { .. }), "{open:?}");
    assert_eq!(open.give_up, stage.now + HALF_A_MINUTE);
}

#[test]
fn with_a_ttl_of_hours_a_claim_that_hangs_is_repeated_within_a_minute() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(HOUR));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    assert_eq!(claim.give_up, stage.now + HALF_A_MINUTE);
    let asked = stage.now;
    let again = stage.next_deed();
    assert!(matches!(again.verb, Verb::Claim { .. }), "{again:?}");
    assert!(stage.now <= asked + 2 * HALF_A_MINUTE, "{:?}", stage.now.since(asked));
}

#[test]
fn with_a_ttl_of_hours_a_resignation_and_a_closing_that_hang_are_given_up_after_half_a_minute() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(HOUR));
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    assert!(matches!(resign.verb, Verb::Resign { .. }), "{resign:?}");
    assert_eq!(resign.give_up, stage.now + HALF_A_MINUTE);
    stage.machine.close(stage.now);
    let close = stage.request();
    assert!(matches!(close.verb, Verb::Close { .. }), "{close:?}");
    assert_eq!(close.give_up, stage.now + HALF_A_MINUTE);
}

#[test]
fn with_a_ttl_of_hours_a_failed_request_is_repeated_within_a_minute() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(Duration::from_secs(4 * 3600)));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let mut claim = stage.request();
    for _ in 0..10 {
        let failed = stage.now;
        stage.fail(claim.id, Failure::Unavailable);
        claim = stage.next_deed();
        assert!(stage.now <= failed + Duration::from_secs(60), "{:?}", stage.now.since(failed));
    }
}
