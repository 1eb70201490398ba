//! Supervised work: orders as they are given, by a clock that the test turns.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use tenure_core::Order::{Abort, GiveUp, Start, Stop};
use tenure_core::{ChildRules, ChildState, Dice, Instant, Order, Pace, Supervision, SupervisionRules};

const STOP: Duration = Duration::from_secs(5);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Children that are up as soon as they are started.
fn prompt(children: usize) -> SupervisionRules {
    let child = ChildRules { start_within: None, stop_within: STOP };
    SupervisionRules { children: vec![child; children], ..SupervisionRules::new() }
}

/// Children that say when they are up.
fn slow(children: usize) -> SupervisionRules {
    let child = ChildRules { start_within: Some(ms(1000)), stop_within: STOP };
    SupervisionRules { children: vec![child; children], ..SupervisionRules::new() }
}

struct Stage {
    supervision: Supervision,
    now: Instant,
}

impl Stage {
    fn begin(rules: SupervisionRules) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        rules.validate().unwrap();
        Self { supervision: Supervision::begin(rules, now), now }
    }

    fn orders(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.supervision.poll_order()).collect()
    }

    fn ended(&mut self, child: usize) -> Vec<Order> {
        self.supervision.ended(child, self.now);
        self.orders()
    }

    fn ready(&mut self, child: usize) -> Vec<Order> {
        self.supervision.ready(child, self.now);
        self.orders()
    }

    fn stop(&mut self, pace: Pace) -> Vec<Order> {
        self.supervision.stop(pace, self.now);
        self.orders()
    }

    /// Goes on to when something is due; how long that was.
    fn wake(&mut self) -> (Duration, Vec<Order>) {
        let at = self.supervision.poll_timeout().expect("something is due");
        let waited = at.since(self.now);
        self.now = at;
        self.supervision.handle_timeout(at);
        (waited, self.orders())
    }
}

#[test]
fn children_are_started_in_order() {
    let mut stage = Stage::begin(prompt(3));
    assert_eq!(stage.orders(), [Start(0), Start(1), Start(2)]);
    assert_eq!(stage.supervision.poll_timeout(), None, "nothing is due while all is well");
}

#[test]
fn a_child_is_started_only_after_the_one_before_has_come_up() {
    let mut stage = Stage::begin(slow(2));
    assert_eq!(stage.orders(), [Start(0)]);
    assert_eq!(stage.ended(0), [], "its first start failed");
    assert_eq!(stage.wake(), (ms(100), vec![Start(0)]), "the second still waits");
    assert_eq!(stage.ready(0), [Start(1)]);
    assert_eq!(stage.ready(0), [], "said twice, it counts once");
    assert_eq!(stage.ready(1), []);
}

#[test]
fn a_child_that_does_not_come_up_in_time_is_aborted_and_started_again_after_its_end() {
    let mut stage = Stage::begin(slow(1));
    assert_eq!(stage.orders(), [Start(0)]);
    assert_eq!(stage.wake(), (ms(1000), vec![Abort(0)]));
    assert_eq!(stage.supervision.poll_timeout(), None, "its end is waited for");
    assert_eq!(stage.ready(0), [], "too late");
    assert_eq!(stage.ended(0), []);
    assert_eq!(stage.wake(), (ms(100), vec![Start(0)]));
}

#[test]
fn a_child_that_ends_is_started_again_alone_and_each_time_later() {
    let mut stage = Stage::begin(prompt(3));
    stage.orders();
    for pause in [100, 200, 400, 800] {
        assert_eq!(stage.ended(1), []);
        assert!(matches!(stage.supervision.state(1), ChildState::BackingOff { .. }));
        assert_eq!(stage.wake(), (ms(pause), vec![Start(1)]), "and no other child is touched");
    }
    assert_eq!(stage.ended(2), []);
    assert_eq!(stage.wake(), (ms(100), vec![Start(2)]), "every child has a pause of its own");
}

#[test]
fn pauses_do_not_grow_beyond_the_longest() {
    let rules = SupervisionRules { longest_pause: ms(300), ..prompt(1) };
    let mut stage = Stage::begin(rules);
    let pauses: Vec<Duration> = (0..5)
        .map(|_| {
            stage.ended(0);
            stage.wake().0
        })
        .collect();
    assert_eq!(pauses, [100, 200, 300, 300, 300].map(ms));
}

#[test]
fn a_child_that_has_run_for_the_whole_window_begins_anew() {
    let mut stage = Stage::begin(prompt(1));
    for _ in 0..3 {
        stage.ended(0);
        stage.wake();
    }
    stage.now = stage.now + ms(60_000);
    stage.ended(0);
    assert_eq!(stage.wake().0, ms(100));
}

#[test]
fn one_restart_more_than_the_budget_has_and_all_is_given_up() {
    let mut stage = Stage::begin(prompt(2));
    stage.orders();
    for child in [0, 1, 0, 1, 0] {
        assert_eq!(stage.ended(child), []);
        assert_eq!(stage.wake().1, [Start(child)]);
    }
    assert_eq!(stage.ended(1), [GiveUp(1), Stop(0)], "the sixth within a minute");
    assert!(!stage.supervision.is_over());
    assert_eq!(stage.ended(0), []);
    assert!(stage.supervision.is_over());
}

#[test]
fn without_a_budget_the_first_end_is_the_last() {
    let mut stage = Stage::begin(SupervisionRules { restarts: 0, ..prompt(1) });
    stage.orders();
    assert_eq!(stage.ended(0), [GiveUp(0)]);
    assert!(stage.supervision.is_over());
}

#[test]
fn a_restart_does_not_count_for_ever() {
    let mut stage = Stage::begin(prompt(1));
    for _ in 0..50 {
        stage.orders();
        assert_eq!(stage.ended(0), []);
        stage.wake();
        stage.now = stage.now + ms(13_000); // not more than five in any minute
    }
}

#[test]
fn children_that_never_start_use_up_the_budget_and_those_behind_are_never_started() {
    let mut stage = Stage::begin(slow(2));
    let mut starts = 0;
    let mut orders = stage.orders();
    loop {
        starts += orders.iter().filter(|order| matches!(order, Start(0))).count();
        assert!(!orders.contains(&Start(1)));
        if orders.contains(&GiveUp(0)) {
            break;
        }
        orders = match stage.supervision.state(0) {
            ChildState::Aborted => stage.ended(0),
            _ => stage.wake().1,
        };
    }
    assert_eq!(starts, 6, "once, and five restarts");
    assert!(stage.supervision.is_over());
}

#[test]
fn children_are_stopped_in_reverse_each_after_the_end_of_the_one_behind() {
    let mut stage = Stage::begin(prompt(3));
    stage.orders();
    assert_eq!(stage.stop(Pace::InOrder), [Stop(2)]);
    assert_eq!(stage.stop(Pace::InOrder), [], "said twice, it counts once");
    assert_eq!(stage.ended(2), [Stop(1)]);
    assert_eq!(stage.ended(1), [Stop(0)]);
    assert_eq!(stage.ended(0), []);
    assert!(stage.supervision.is_over());
    assert_eq!(stage.supervision.poll_timeout(), None);
}

#[test]
fn a_child_that_does_not_stop_in_time_is_aborted_and_its_end_is_waited_for() {
    let mut stage = Stage::begin(prompt(2));
    stage.orders();
    stage.stop(Pace::InOrder);
    assert_eq!(stage.wake(), (STOP, vec![Abort(1), Stop(0)]), "the next is told at once");
    assert_eq!(stage.ended(0), []);
    assert!(!stage.supervision.is_over(), "the aborted one has not ended");
    assert_eq!(stage.ended(1), []);
    assert!(stage.supervision.is_over());
}

#[test]
fn when_there_is_no_time_all_are_told_at_once() {
    let mut stage = Stage::begin(prompt(3));
    stage.orders();
    assert_eq!(stage.stop(Pace::InOrder), [Stop(2)]);
    assert_eq!(stage.stop(Pace::AtOnce), [Stop(1), Stop(0)]);
    assert_eq!(stage.stop(Pace::InOrder), [], "it does not slow down again");
    for child in [1, 0, 2] {
        assert_eq!(stage.ended(child), []);
    }
    assert!(stage.supervision.is_over());
}

#[test]
fn nothing_is_started_after_a_stop() {
    let mut stage = Stage::begin(slow(3));
    stage.orders();
    stage.ready(0);
    stage.ended(0); // backs off; the second is starting, the third waits
    assert_eq!(stage.stop(Pace::InOrder), [Stop(1)]);
    assert_eq!(stage.ready(1), []);
    assert_eq!(stage.ended(1), []);
    assert!(stage.supervision.is_over());
}

#[test]
fn rules_whose_budget_can_never_be_used_up_are_refused() {
    let problem = |rules: SupervisionRules| rules.validate().unwrap_err().to_string();
    let lazy = SupervisionRules { first_pause: ms(60_000), longest_pause: ms(60_000), ..prompt(1) };
    let told = problem(lazy);
    assert!(
        told.starts_with("`restarts × start_within + their pauses` is 5m, but must be at most 1m"),
        "{told}"
    );
    let child = ChildRules { start_within: Some(ms(30_000)), stop_within: STOP };
    let late = SupervisionRules { children: vec![child], ..SupervisionRules::new() };
    assert!(problem(late).contains("is 153.1s, but must be at most 1m"));
    assert!(problem(SupervisionRules { within: Duration::ZERO, ..prompt(1) }).contains("raise `within`"));
    SupervisionRules { restarts: 0, within: Duration::ZERO, ..prompt(1) }.validate().unwrap();
}

/// Over random ends, starts that hang and stops: no child is started while it lives, none before the ones
/// ahead of it have come up, none after the stop; and the stop comes to its end, in reverse.
#[test]
fn whatever_happens_no_child_is_started_twice_and_every_stop_comes_to_its_end() {
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let count = 1 + usize::try_from(dice.below(4)).unwrap();
        let mut rules = prompt(count);
        for child in &mut rules.children {
            child.start_within = (dice.below(2) == 0).then_some(ms(500));
        }
        let mut stage = Stage::begin(rules);
        let (mut alive, mut been_up) = (vec![false; count], vec![false; count]);
        let (mut stopped, mut steps) = (false, 0);
        while !stage.supervision.is_over() {
            steps += 1;
            assert!(steps < 10_000, "seed {seed}: it does not end");
            for (child, up) in been_up.iter_mut().enumerate() {
                *up |= matches!(stage.supervision.state(child), ChildState::Running { .. });
            }
            for order in stage.orders() {
                match order {
                    Start(child) => {
                        assert!(!stopped, "seed {seed}: started after the stop");
                        assert!(!alive[child], "seed {seed}: child {child} is started twice");
                        assert!(
                            been_up[..child].iter().all(|up| *up),
                            "seed {seed}: {child} before its turn"
                        );
                        alive[child] = true;
                    }
                    Stop(child) | Abort(child) => assert!(alive[child], "seed {seed}: {child} does not live"),
                    GiveUp(_) => stopped = true,
                }
            }
            let child = usize::try_from(dice.below(count as u64)).unwrap();
            match dice.below(if steps > 200 { 6 } else { 40 }) {
                0 if !stopped => {
                    stopped = true;
                    stage.supervision.stop(Pace::InOrder, stage.now);
                }
                1 if stopped => stage.supervision.stop(Pace::AtOnce, stage.now),
                2..=4 if alive[child] => {
                    alive[child] = false;
                    stage.supervision.ended(child, stage.now);
                }
                5..=12 if alive[child] => stage.supervision.ready(child, stage.now),
                _ => {
                    let due = stage.supervision.poll_timeout();
                    stage.now = due.map_or(stage.now + ms(50), |at| at.min(stage.now + ms(50)));
                    stage.supervision.handle_timeout(stage.now);
                }
            }
        }
        assert!(!alive.contains(&true), "seed {seed}: over, and somebody lives");
    }
}
