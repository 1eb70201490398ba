//! Many elections at once: requests about them take turns, and nobody is impatient in the line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::stage::{ANYWHERE, Stage, TTL, led, ms};
use tenure_core::{Age, Answer, Failure, Renewal, Settings, Standing, Term, Verb};

#[test]
fn a_request_in_the_line_is_not_given_up_and_is_sent_when_there_is_room() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let mut renewals = 0;
    while renewals < 20 {
        if let Some(renewal) = stage.machine.poll_request(false, stage.now) {
            stage.renewed(&renewal);
            renewals += 1;
        }
        stage.wake();
    }
    let claim = stage.next_deed();
    assert!(matches!(claim.verb, Verb::Claim { .. }), "{claim:?}");
    assert_eq!(claim.give_up, stage.now + TTL / 6, "the patience begins now");
    stage.answer(claim.id, Answer::Claim(Standing::Leading { term: Term::new(1) }));
    assert_eq!(stage.check(), Some(Term::new(1)), "asked once");
}

#[test]
fn what_is_about_the_session_waits_for_no_turn() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    stage.wake();
    let first = stage.machine.poll_request(false, stage.now).unwrap();
    assert!(matches!(first.verb, Verb::Renew { .. }), "{first:?}");
    assert!(stage.machine.poll_request(false, stage.now).is_none());
}

#[test]
fn what_nobody_wants_to_know_any_more_is_not_asked() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    stage.machine.withdraw(stage.key, stage.now);
    assert!(matches!(stage.verbs()[..], [Verb::Resign { .. }]), "the claim has left the line");
}

#[test]
fn a_request_that_was_sent_and_not_answered_is_asked_again_in_its_turn() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.machine.stand(stage.key, stage.now).unwrap();
    let first = stage.request();
    stage.fail(first.id, Failure::Indeterminate);
    let again = stage.next_deed();
    assert!(matches!(again.verb, Verb::Claim { .. }));
    assert!(again.id.serial() > first.id.serial());
}

#[test]
fn a_leader_looks_at_no_lease_for_a_mere_maybe_but_hears_of_it_with_the_next_renewal() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.hint_all(stage.now);
    assert!(stage.verbs().is_empty());
    let renewal = stage.next_request();
    let Verb::Renew { sequence, .. } = renewal.verb else { panic!("{renewal:?}") };
    let told = Renewal { previous: sequence - 1, notices: 1, grants: 1, waits_for: Vec::new() };
    stage.answer(renewal.id, Answer::Renew(told));
    let look = stage.request();
    assert!(matches!(look.verb, Verb::Read { .. }), "{look:?}");
    stage.answer(look.id, Answer::Read(led(2, 1, Age::Exact(ms(0)))));
    assert_eq!(stage.check(), None, "another leads");
}
