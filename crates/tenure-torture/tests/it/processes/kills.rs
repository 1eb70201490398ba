//! `kill -9`.

use std::time::Duration;

use super::crew::Crew;

#[test]
fn when_the_leader_is_killed_another_leads_after_a_full_ttl() {
    let mut crew = Crew::new(Duration::from_secs(3));
    for node in ["anna", "ben", "clara"] {
        crew.start(node);
    }
    let (old, renewed) = crew.kill_the_leader();
    let next = crew.leader_above(old.term());

    let ttl = crew.ttl();
    let evidence = crew.verdict();
    let waited = Duration::from_nanos(evidence.under(next.term()).from - renewed);
    // All of them read one clock here, so that a ttl is a ttl, however slowly it may be counted.
    assert!(waited >= ttl, "S3: taken over {waited:?} after the last renewal");
}

#[test]
fn a_killed_follower_changes_nothing() {
    let mut crew = Crew::new(Duration::from_secs(600));
    for node in ["anna", "ben", "clara"] {
        crew.start_with(node, &["--renew-every-ms", "200"]);
    }
    let leader = crew.leader();
    let follower = crew.living().into_iter().find(|node| *node != leader.node()).unwrap();
    crew.is_registered(&follower);
    crew.kill(&follower);
    crew.renews(leader.pid, 3);
    crew.verdict_of_one_leadership(&leader);
}
