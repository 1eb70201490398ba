//! What renewals and news tell a candidate, so that it need not ask.

use crate::stage::{ANYWHERE, Stage, TTL, free, led, ms, pulse};
use tenure_core::{
    Age, Answer, Capabilities, Event, NodeId, Record, SessionId, Sessions, Settings, Standing, Term, Verb,
};

/// Answers the next renewal with this word of the election.
fn renewed_telling(stage: &mut Stage, seen: Record) {
    let renewal = stage.next_request();
    assert!(matches!(renewal.verb, Verb::Renew { .. }), "{renewal:?}");
    let waits_for = vec![(stage.key, seen)];
    stage.renewed_telling(&renewal, 0, waits_for);
}

#[test]
fn a_candidate_that_its_renewals_tell_asks_nothing_itself() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    for sequence in 6..20 {
        renewed_telling(&mut stage, led(1, sequence, Age::Exact(ms(100))));
        assert!(stage.verbs().is_empty());
    }
}

#[test]
fn what_renewals_tell_times_the_holder_as_exactly_as_looks() {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    let began = stage.now;
    // The rival shows a pulse every three seconds, seven times in all; the ages are by the store's clock.
    let (every, last) = (3000, 6);
    let seen = |stage: &Stage| {
        let clock = u64::try_from(stage.now.since(began).as_millis()).unwrap();
        let sequence = (clock / every).min(last);
        led(1, sequence, Age::Told { age: ms(clock - sequence * every), clock: ms(clock) })
    };
    stage.machine.stand(stage.key, stage.now).unwrap();
    let mut looks = 0;
    let over = loop {
        let request = stage.next_request();
        let seen = seen(&stage);
        match request.verb {
            Verb::Renew { .. } => {
                let waits_for = vec![(stage.key, seen)];
                stage.renewed_telling(&request, 0, waits_for);
            }
            Verb::Read { .. } => {
                looks += 1;
                stage.answer(request.id, Answer::Read(seen));
            }
            Verb::Claim { over: None, .. } => stage.refuse(request.id, seen),
            Verb::Claim { over, .. } => break over,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(over, Some(pulse(last, Age::Unknown).stamp));
    assert!(looks <= 2, "it looks by itself until its first renewal only: {looks} times");
    let waited = stage.now.since(began + ms(every * last));
    assert!(waited >= TTL && waited < TTL + TTL / 20, "{waited:?}");
}

#[test]
fn a_renewal_that_no_longer_tells_of_an_election_makes_its_candidate_look() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    renewed_telling(&mut stage, led(1, 6, Age::Exact(ms(0))));
    let renewal = stage.next_request();
    stage.renewed(&renewal);
    assert!(matches!(stage.next_request().verb, Verb::Read { .. }));
}

#[test]
fn a_lease_that_a_renewal_shows_as_free_is_claimed() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    renewed_telling(&mut stage, free(1));
    assert!(matches!(stage.verbs()[..], [Verb::Claim { over: None, .. }]));
}

#[test]
fn the_end_of_an_election_is_told_by_a_renewal() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    renewed_telling(&mut stage, Record { term: Term::new(2), ended: Term::new(2), ..Record::default() });
    assert!(stage.events().contains(&Event::Ended { election: stage.key }));
}

#[test]
fn a_look_that_was_answered_while_a_renewal_was_under_way_is_newer_than_what_it_tells() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    let renewal = stage.next_request();
    stage.machine.hint_named(stage.key, stage.now);
    let look = stage.request();
    stage.answer(look.id, Answer::Read(led(2, 9, Age::Exact(ms(0)))));
    stage.renewed_telling(&renewal, 0, vec![(stage.key, led(1, 5, Age::Exact(ms(0))))]);
    assert_eq!(
        stage.events().last(),
        Some(&Event::LeaderChanged {
            election: stage.key,
            leader: Some((NodeId::new("rival").unwrap(), Term::new(2)))
        })
    );
}

#[test]
fn a_renewal_from_before_a_candidacy_tells_it_nothing() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    let held = stage.ours(1);
    let renewal = stage.next_request();
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    stage.answer(resign.id, Answer::Resign);
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    stage.refuse(claim.id, led(2, 5, Age::Exact(ms(0))));
    stage.renewed_telling(&renewal, 1, vec![(stage.key, held)]);
    assert_eq!(stage.check(), None, "that lease was given back");
    assert!(stage.machine.session().is_some(), "and the store has not gone back");
}

#[test]
fn whoever_is_named_reads_once_and_leads() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    stage.machine.hint_named(stage.key, stage.now);
    let look = stage.request();
    assert!(matches!(look.verb, Verb::Read { .. }), "{look:?}");
    let granted = stage.ours(2);
    stage.answer(look.id, Answer::Read(granted));
    assert_eq!(stage.check(), Some(Term::new(2)));
    assert!(stage.verbs().is_empty(), "there is nothing more to write");
    let (election, term) = (stage.key, Term::new(2));
    let leader = Some((NodeId::new("me").unwrap(), term));
    let told = [Event::Elected { election, term }, Event::LeaderChanged { election, leader }];
    assert_eq!(stage.events(), told, "it is told that it leads before it is told who does");
}

#[test]
fn a_lease_that_is_found_is_worth_no_more_than_the_session() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    let deadline = stage.machine.deadline();
    stage.machine.hint_named(stage.key, stage.now);
    let look = stage.request();
    let granted = stage.ours(2);
    stage.answer(look.id, Answer::Read(granted));
    assert_eq!(stage.machine.deadline(), deadline, "a read renews nothing");
    stage.now = deadline;
    assert_eq!(stage.check(), None);
}

#[test]
fn where_only_the_connection_speaks_for_a_session_whoever_is_named_claims() {
    let capabilities = Capabilities { sessions: Sessions::OwnConnection, ..ANYWHERE };
    let mut stage = Stage::refused(capabilities, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    stage.machine.hint_named(stage.key, stage.now);
    assert!(matches!(stage.verbs()[..], [Verb::Claim { over: None, .. }]));
}

#[test]
fn what_concerns_another_makes_no_candidate_ask() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    stage.machine.hint_other(stage.key, stage.now);
    assert!(stage.verbs().is_empty());
    stage.machine.observe(stage.key, true, stage.now);
    stage.verbs();
    stage.machine.hint_other(stage.key, stage.now);
    assert!(matches!(stage.verbs()[..], [Verb::Read { .. }]), "unless it wants to know who leads");
}

#[test]
fn a_term_that_was_led_before_is_not_taken_from_a_look() {
    let mut stage = Stage::leading(ANYWHERE, Settings::new(TTL));
    stage.machine.resign(stage.key, None, stage.now).unwrap();
    stage.machine.stopped(stage.key, stage.now);
    let resign = stage.request();
    stage.answer(resign.id, Answer::Resign);
    stage.machine.stand(stage.key, stage.now).unwrap();
    let claim = stage.request();
    let held = stage.ours(1);
    stage.answer(claim.id, Answer::Claim(Standing::Waiting { seen: held }));
    assert_eq!(stage.check(), None, "the store has forgotten the resignation");
    assert!(matches!(stage.next_deed().verb, Verb::Claim { .. }), "what that means is told by a claim");
}

#[test]
fn a_stranger_is_not_taken_for_this_node() {
    let mut stage = Stage::refused(ANYWHERE, Settings::new(TTL), led(1, 5, Age::Exact(ms(0))));
    stage.machine.hint_named(stage.key, stage.now);
    let look = stage.request();
    let mut seen = stage.ours(2);
    // The same node id, but another session: an earlier life, or a second process.
    if let Some(holder) = &mut seen.holder {
        (holder.node, holder.pulse.stamp.session) = (NodeId::new("me").unwrap(), SessionId::from_u128(98));
    }
    stage.answer(look.id, Answer::Read(seen));
    assert_eq!(stage.check(), None);
}
