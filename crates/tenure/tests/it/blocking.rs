//! The library without `async`.

use std::time::Duration;

use crate::common::{calm, memory};
use tenure::blocking::Node;
use tenure::{LeadError, Reason, Term};

#[test]
fn work_on_a_thread_leads_and_its_value_is_returned() {
    let node = Node::start(calm("a"), memory()).unwrap();
    let election = node.election("reports").unwrap();
    let gate = election.gate();
    let term = election
        .lead(|leadership| {
            assert!(gate.is_leader());
            Ok::<_, String>(leadership.check().unwrap())
        })
        .unwrap();
    assert_eq!(term, Term::new(1));
    assert_eq!(election.leader().unwrap(), None, "given back before `lead` returned");
    assert!(!gate.is_leader());
    let failed = election.lead(|_| Err::<(), _>("no paper")).unwrap_err();
    assert!(matches!(failed, LeadError::Work("no paper")));
    node.close();
}

#[test]
fn a_second_thread_waits_and_is_elected_when_the_first_resigns() {
    let store = memory();
    let [first, second] = ["a", "b"].map(|id| Node::start(calm(id), store.clone()).unwrap());
    let [one, other] = [&first, &second].map(|node| node.election("reports").unwrap());
    let leadership = one.elected().unwrap();
    assert!(other.elected_within(Duration::from_millis(1)).unwrap().is_none());
    assert_eq!(leadership.lost_within(Duration::from_millis(1)), None);
    let waiting = std::thread::spawn(move || other.elected().unwrap().term());
    leadership.resign().unwrap();
    assert_eq!(leadership.lost(), Reason::Resigned);
    assert!(waiting.join().unwrap() > leadership.term());
}

#[test]
fn a_node_that_never_led_is_not_told_of_a_term() {
    let node = Node::start(calm("a"), memory()).unwrap();
    let error = node.election("reports").unwrap().gate().check().unwrap_err();
    assert_eq!(error.to_string(), "this node does not lead: it has not been elected");
}
