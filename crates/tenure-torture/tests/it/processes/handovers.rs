//! Leadership that is given up on purpose. It costs no ttl (L2): in all of these that is far longer than any test
//! waits.

use std::time::Duration;

use super::crew::Crew;

/// A ttl that no test waits for, nor for the sixth of it after which a candidate looks again.
const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn a_leader_that_resigns_is_succeeded_at_once() {
    let mut crew = Crew::new(NEVER);
    crew.start("anna");
    let old = crew.leader();
    crew.start("ben");
    crew.is_registered("ben");
    crew.order("anna", "resign reports");
    let next = crew.leader_above(old.term());
    assert_eq!((next.node().as_str(), next.term()), ("ben", old.term() + 1));

    crew.order("anna", "stand reports");
    crew.is_registered("anna");
    assert_eq!(crew.leader().term(), next.term(), "who stands again pushes nobody out");
    crew.verdict();
}

#[test]
fn leadership_is_handed_over_to_the_process_that_was_named() {
    let mut crew = Crew::new(NEVER);
    crew.start_with("anna", &["--lead"]);
    let old = crew.leader();
    for node in ["ben", "clara"] {
        crew.start(node);
        crew.is_registered(node);
    }
    crew.order("anna", "transfer reports dora");
    assert!(crew.hear(old.pid, "kept").text("message").contains("candidates are: ben, clara"));
    assert_eq!(crew.leader().term(), old.term(), "to nobody it is not handed over");

    crew.order("anna", "transfer reports clara");
    let successor = crew.leader_above(old.term());
    assert_eq!((successor.node().as_str(), successor.term()), ("clara", old.term() + 1));
    crew.is_registered("anna");
    crew.order("clara", "transfer reports anna");
    let back = crew.leader_above(successor.term());
    assert_eq!((back.node().as_str(), back.pid), ("anna", old.pid));

    crew.verdict();
}

#[test]
fn a_process_that_is_told_to_end_hands_over_first() {
    let mut crew = Crew::new(NEVER);
    crew.start("anna");
    let old = crew.leader();
    crew.start("ben");
    crew.is_registered("ben");
    crew.quit("anna");
    assert_eq!(crew.leader_above(old.term()).term(), old.term() + 1);
    crew.verdict();
}
