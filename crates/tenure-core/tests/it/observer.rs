//! What an observer tells: who leads, and that nobody does only if the store says so.

use crate::stage::{ANYWHERE, Stage, TTL, led, ms};
use tenure_core::{Age, Answer, Event, Failure, NodeId, Request, Settings, Term, Verb};

/// An observer that has just seen the rival lead under term 1.
fn observing() -> Stage {
    let mut stage = Stage::open(ANYWHERE, Settings::new(TTL));
    stage.pass(ms(1));
    stage.machine.observe(stage.key, true, stage.now);
    let look = stage.request();
    stage.answer(look.id, Answer::Read(led(1, 5, Age::Exact(ms(0)))));
    let leader = Some((NodeId::new("rival").unwrap(), Term::new(1)));
    assert_eq!(stage.events(), [Event::LeaderChanged { election: stage.key, leader }]);
    stage
}

fn next_look(stage: &mut Stage) -> Request {
    let look = stage.next_deed();
    assert!(matches!(look.verb, Verb::Read { .. }), "{look:?}");
    look
}

#[test]
fn an_observer_says_nothing_while_its_leader_renews() {
    let mut stage = observing();
    for sequence in 6..20 {
        let look = next_look(&mut stage);
        stage.answer(look.id, Answer::Read(led(1, sequence, Age::Exact(ms(0)))));
        assert_eq!(stage.events(), []);
    }
}

#[test]
fn an_observer_that_cannot_look_does_not_say_that_nobody_leads() {
    let mut stage = observing();
    for _ in 0..20 {
        let look = next_look(&mut stage);
        stage.fail(look.id, Failure::Unavailable);
        assert_eq!(stage.events(), []);
    }
}

#[test]
fn an_observer_says_that_nobody_leads_once_the_leader_was_silent_for_its_ttl() {
    let mut stage = observing();
    let seen = stage.now;
    let look = next_look(&mut stage);
    assert!(stage.now >= seen + TTL);
    stage.answer(look.id, Answer::Read(led(1, 5, Age::Exact(TTL))));
    assert_eq!(stage.events(), [Event::LeaderChanged { election: stage.key, leader: None }]);
}
