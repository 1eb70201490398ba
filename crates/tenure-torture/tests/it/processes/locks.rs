//! A store that does not answer: somebody else holds the file's write lock.

use std::time::Duration;

use tenure::Drift;
use tenure_store::clock;

use super::crew::Crew;

#[test]
fn a_file_locked_for_less_than_the_deadline_changes_no_leader() {
    // L3: 0.77 ttl until the deadline. It renews often, and several times while the file is locked.
    let mut crew = Crew::new(Duration::from_secs(60));
    crew.start_with("anna", &["--renew-every-ms", "200"]);
    let leader = crew.leader();
    crew.start("ben");
    crew.is_registered("ben");
    let lock = crew.look();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    lock.execute_batch("COMMIT").unwrap();
    crew.renews(leader.pid, 2);
    crew.verdict_of_one_leadership(&leader);
}

#[test]
fn a_file_locked_for_longer_deposes_the_leader_by_its_own_clock_and_nobody_leads_meanwhile() {
    let ttl = Duration::from_secs(3);
    let mut crew = Crew::new(ttl);
    // They renew often, so that whoever leads does so until the file is locked, and after that, on a busy machine too.
    let often = ["--renew-every-ms", "200"];
    crew.start_with("anna", &often);
    crew.start_with("ben", &often);
    crew.start_with("clara", &[&often[..], &["--lead"]].concat());
    let old = crew.settled_leader();
    let lock = crew.look();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let renewed = crew.renewed(old.pid);
    let lost = crew.hear(old.pid, "lost");
    assert_eq!(lost.text("reason"), "lapsed");
    std::thread::sleep(ttl);
    let released = clock::now().as_nanos();
    lock.execute_batch("COMMIT").unwrap();
    let next = crew.leader_above(old.term());

    let evidence = crew.verdict();
    let deadline = Drift::DEFAULT.slow(ttl) - ttl / 20;
    let led = Duration::from_nanos(evidence.under(old.term()).until.saturating_sub(renewed));
    assert!(led <= deadline, "it led for {led:?} after its last renewal");
    assert!(evidence.under(next.term()).from >= released);
    assert_eq!(next.term(), old.term() + 1, "nobody was elected in between");
}
