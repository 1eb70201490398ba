//! Processes that come back, and processes that claim to be another.

use std::time::Duration;

use super::crew::Crew;

#[test]
fn after_all_were_killed_the_same_nodes_start_within_a_ttl_and_inherit_no_lease() {
    let mut crew = Crew::new(Duration::from_secs(3));
    crew.start("anna");
    crew.start("ben");
    let old = crew.settled_leader();
    crew.kill("anna");
    crew.kill("ben");
    // Nobody is left who could change it.
    let Some((_, renewed)) = crew.holder() else { panic!("nobody has given the lease back") };

    let (anna, ben) = (crew.spawn("anna", &[]), crew.spawn("ben", &["--lead"]));
    crew.stands(anna);
    crew.stands(ben);
    let next = crew.leader_above(old.term());

    let ttl = crew.ttl();
    let evidence = crew.verdict();
    let from = evidence.under(next.term()).from;
    assert!(from - renewed >= u64::try_from(ttl.as_nanos()).unwrap(), "S3: the old lease was waited for");
}

#[test]
fn a_second_process_with_a_node_id_that_is_alive_is_refused_and_the_first_leads_on() {
    let mut crew = Crew::new(Duration::from_secs(600));
    crew.start_with("anna", &["--renew-every-ms", "200"]);
    let first = crew.leader();
    let second = crew.spawn("anna", &[]);
    let refused = crew.hear(second, "failed");
    assert_eq!(
        refused.text("message"),
        "another live process uses the node id `anna`; choose another id for this one, or stop that one"
    );
    crew.renews(first.pid, 2);
    crew.verdict_of_one_leadership(&first);
}
