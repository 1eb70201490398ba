//! The store's file is moved away, replaced, or put back from an older copy.
//!
//! The whole directory is exchanged in one step, as a careful person would do it: a database and
//! the write-ahead log of another one do not go together.

use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, rename, renameat_with};
use tenure_testkit::checker::{check_leaderships, check_writes};

use super::crew::Crew;
use super::judge::ledger;
use tenure_torture::journal::Event;

const TTL: Duration = Duration::from_secs(3);
/// Whoever renews often has much of its lease left whenever the machine is busy with other things.
const OFTEN: [&str; 2] = ["--renew-every-ms", "200"];
/// So many renewals take longer than a ttl.
const A_TTL: i64 = 16;

fn crew_of_three() -> (Crew, Event) {
    crew_led_with(&[])
}

fn crew_led_with(flags: &[&str]) -> (Crew, Event) {
    let mut crew = Crew::new(TTL);
    crew.start_with("anna", &[flags, &OFTEN].concat());
    let leader = crew.leader();
    crew.start_with("ben", &[&OFTEN[..], &["--lead"]].concat());
    crew.start_with("clara", &OFTEN);
    crew.is_registered("ben");
    crew.is_registered("clara");
    (crew, leader)
}

/// Puts another directory in the place of the store's, which takes the other's name. Not before
/// there is evidence in the first.
fn exchange(crew: &Crew, other: &str) {
    let file = crew.place("store").join("tenure.db");
    crew.until("the leader writes", |_| (!ledger(&file).is_empty()).then_some(()));
    renameat_with(CWD, crew.place("store"), CWD, crew.place(other), RenameFlags::EXCHANGE).unwrap();
}

/// A copy as a backup makes it, while everybody works; how many rows its ledger has.
fn copy(crew: &Crew, to: &str) -> usize {
    std::fs::create_dir(crew.place(to)).unwrap();
    let target = crew.place(to).join("tenure.db");
    crew.look().execute("VACUUM INTO ?1", [target.to_str().unwrap()]).unwrap();
    ledger(&target).len()
}

fn hand_over(crew: &mut Crew, from: &Event, to: &str) -> Event {
    crew.is_registered(to);
    crew.order(&from.node(), &format!("transfer reports {to}"));
    let successor = crew.leader_above(from.term());
    assert_eq!(successor.node(), to);
    successor
}

/// Whoever is elected after the first leader, under whatever term.
fn second_elected(crew: &Crew) -> Event {
    crew.wait("somebody leads", |events| {
        events.iter().filter(|event| event.kind == "elected").nth(1).cloned()
    })
}

/// A directory with a store in it that nobody has used.
fn empty(crew: &Crew, at: &str) {
    std::fs::create_dir(crew.place(at)).unwrap();
    let url = format!("sqlite:{}", crew.place(at).join("tenure.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    drop(runtime.block_on(tenure::connect(url)).unwrap());
}

/// All that is promised over two files: leaderships and terms as ever, and one ledger after the
/// other. The second began with what it was a copy of.
fn judge(crew: &mut Crew, earlier: &str, copied: usize) {
    let evidence = crew.evidence();
    assert_eq!(check_leaderships(&evidence.leaderships), []);
    let mut both = ledger(&crew.place(earlier).join("tenure.db"));
    assert!(!both.is_empty());
    both.extend(evidence.ledger.iter().skip(copied).cloned());
    assert_eq!(check_writes(&both), []);
    assert_eq!(check_writes(&evidence.register), []);
}

/// The leader goes on until its deadline, since the file may come back; then nobody leads until it
/// has. A new file is never made in its place.
#[test]
fn while_the_file_is_gone_nobody_leads_and_when_it_is_back_terms_go_on() {
    let (mut crew, old) = crew_of_three();
    rename(crew.place("store"), crew.place("away")).unwrap();
    assert_eq!(crew.hear(old.pid, "lost").text("reason"), "lapsed");
    std::thread::sleep(TTL);
    assert!(!crew.place("store").exists());
    rename(crew.place("away"), crew.place("store")).unwrap();
    let next = crew.leader_above(old.term());
    assert_eq!(next.term(), old.term() + 1, "nobody was elected meanwhile");
    crew.verdict();
}

/// The leader is deposed at its next renewal at the latest; all others wait for a full ttl after
/// they saw the new file, and tell it the highest term that they remember.
#[test]
fn an_empty_file_in_its_place_deposes_the_leader_and_terms_go_on() {
    let (mut crew, old) = crew_of_three();
    empty(&crew, "other");
    exchange(&crew, "other");
    let lost = crew.hear(old.pid, "lost");
    // Or it had lapsed just before, on a machine that stood still.
    let reasons = ["store_changed", "session_lost", "lapsed"];
    assert!(reasons.contains(&lost.text("reason")), "{lost:?}");
    crew.leader_above(old.term());
    judge(&mut crew, "other", 0);
}

/// S2: not after a store restore that any live node remembers.
#[test]
fn an_older_copy_put_in_place_under_running_candidates_rewinds_no_term() {
    let (mut crew, first) = crew_of_three();
    let copied = copy(&crew, "copy");
    let second = hand_over(&mut crew, &first, "ben");
    let third = hand_over(&mut crew, &second, "clara");
    crew.renews(third.pid, A_TTL); // so everybody has looked, and has seen this term
    exchange(&crew, "copy");
    let lost = crew.hear(third.pid, "lost");
    assert!(
        ["store_changed", "session_lost", "store_rolled_back", "lapsed"].contains(&lost.text("reason")),
        "{lost:?}"
    );
    let next = crew.leader_above(third.term());
    assert!(next.term() > third.term());
    judge(&mut crew, "copy", copied);
}

/// With nobody left to remember, terms may start again from what the copy says: that is not
/// promised away. But no two lead at once, and a resource that compares terms refuses those who
/// come with an old one.
#[test]
fn after_an_older_copy_was_put_back_while_nobody_ran_no_two_lead_and_old_terms_write_nothing() {
    let (mut crew, first) = crew_of_three();
    copy(&crew, "copy");
    let second = hand_over(&mut crew, &first, "ben");
    let third = hand_over(&mut crew, &second, "clara");
    crew.until("it writes", |_| {
        let register = tenure::sqlite::rusqlite::Connection::open(crew.place("register.db")).unwrap();
        register
            .query_row("SELECT 1 FROM fence WHERE term = ?1", [third.term().cast_signed()], |_| Ok(()))
            .ok()
    });
    for node in crew.living() {
        crew.kill(&node);
    }
    exchange(&crew, "copy");
    let started: Vec<u32> = ["anna", "ben", "clara"].map(|node| crew.spawn(node, &[])).into();
    let next = crew.wait("somebody leads", |events| {
        events.iter().find(|event| event.kind == "elected" && started.contains(&event.pid)).cloned()
    });
    crew.until("it asks the register", |_| {
        let register = tenure::sqlite::rusqlite::Connection::open(crew.place("register.db")).unwrap();
        register.query_row("SELECT 1 FROM writes WHERE pid = ?1", [next.pid], |_| Ok(())).ok()
    });

    let evidence = crew.evidence();
    evidence.assert_no_overlap();
    evidence.assert_writes();
    if next.term() < third.term() {
        let mut late =
            evidence.register.iter().filter(|write| write.term == next.term() && write.pid == next.pid);
        assert!(late.all(|write| !write.accepted), "the register remembers term {}", third.term());
    }
}

/// S2 again, for an application that keeps no `Election`: `tenure::Node::election(…)` for every
/// candidacy.
#[test]
fn a_node_whose_handles_are_gone_remembers_the_terms_that_it_led_under() {
    let (mut crew, old) = crew_led_with(&["--new-handles"]);
    empty(&crew, "other");
    exchange(&crew, "other");
    crew.hear(old.pid, "lost");
    second_elected(&crew);
    judge(&mut crew, "other", 0);
}

/// After the directory was exchanged, the next leader is elected there as before. (That news is pushed from there
/// without a look is shown by `a_signal_file_that_was_deleted_or_replaced_is_watched_again` in tenure-sqlite.)
#[test]
fn after_the_file_was_replaced_leadership_is_handed_over_in_the_other_one() {
    let mut crew = Crew::new(TTL);
    crew.start("anna");
    crew.leader();
    crew.start("ben");
    crew.is_registered("ben");
    empty(&crew, "other");
    exchange(&crew, "other");
    let leader = crew.leader_above(1);
    let successor = if leader.node() == "anna" { "ben" } else { "anna" };
    crew.is_registered(successor);
    crew.order(&leader.node(), "resign reports");
    crew.leader_above(leader.term());
    judge(&mut crew, "other", 0);
}

/// S2 once more: one of two remembers, but the other one sees the copy first.
#[test]
fn a_term_that_one_live_node_remembers_is_not_granted_again_to_another() {
    // Whoever sees the other file is not elected there for a ttl: anna has so long to find out as well.
    let mut crew = Crew::new(TTL * 2);
    crew.start("anna");
    let first = crew.leader();
    let ben = crew.start("ben");
    crew.is_registered("ben");
    copy(&crew, "copy");
    crew.stop("ben");
    crew.order("anna", "resign reports");
    crew.hear(first.pid, "resigned");
    crew.order("anna", "stand reports");
    let second = crew.leader_above(first.term());

    crew.stop("anna");
    exchange(&crew, "copy");
    crew.go_on("ben");
    crew.renews(ben, 1); // and finds another file
    crew.go_on("anna");
    crew.hear(second.pid, "lost"); // she knows it too, long before anybody may be elected
    let third = crew.wait("somebody leads", |events| {
        events.iter().filter(|event| event.kind == "elected").nth(2).cloned()
    });
    assert!(third.term() > second.term(), "{third:?}");
}
