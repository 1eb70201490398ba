//! Leadership that is given up on purpose.

use std::time::Duration;

use super::crew::Crew;
use super::judge::Evidence;

fn assert_quick(evidence: &Evidence, term: u64, slack: Duration) {
    let gap = evidence.gaps().into_iter().find(|gap| gap.after.term == term).unwrap();
    assert!(gap.length <= slack, "L2: {gap:#?}, slack {slack:?}");
}

#[test]
fn a_leader_that_resigns_is_succeeded_at_once() {
    let mut crew = Crew::new(Duration::from_secs(6));
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
    let slack = crew.slack();
    assert_quick(&crew.verdict(), next.term(), slack);
}

#[test]
fn leadership_is_handed_over_to_the_process_that_was_named() {
    let mut crew = Crew::new(Duration::from_secs(6));
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
    let heir = crew.leader_above(old.term());
    assert_eq!((heir.node().as_str(), heir.term()), ("clara", old.term() + 1));
    crew.is_registered("anna");
    crew.order("clara", "transfer reports anna");
    let back = crew.leader_above(heir.term());
    assert_eq!((back.node().as_str(), back.pid), ("anna", old.pid));

    let slack = crew.slack();
    let evidence = crew.verdict();
    assert_quick(&evidence, heir.term(), slack);
    assert_quick(&evidence, back.term(), slack);
}

#[test]
fn a_process_that_is_told_to_end_hands_over_first() {
    let mut crew = Crew::new(Duration::from_secs(6));
    crew.start("anna");
    let old = crew.leader();
    crew.start("ben");
    crew.is_registered("ben");
    crew.quit("anna");
    let next = crew.leader_above(old.term());
    let slack = crew.slack();
    assert_quick(&crew.verdict(), next.term(), slack);
}
