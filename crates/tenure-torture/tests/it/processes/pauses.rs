//! SIGSTOP and SIGCONT: what a debugger, a freezer or a starved machine does to a process.

use std::time::Duration;

use tenure::sqlite::rusqlite::{Connection, OptionalExtension};
use tenure_testkit::checker::{LeadershipViolation, Write, check_leaderships, check_writes};

use super::crew::Crew;
use tenure_torture::journal::Event;

const TTL: Duration = Duration::from_secs(3);

/// Starts a leader with these flags, and two who would like to be. It renews often, so that much of its lease is left
/// whenever the machine is busy with other things.
fn led_by_anna(ttl: Duration, flags: &[&str]) -> (Crew, Event) {
    let mut crew = Crew::new(ttl);
    crew.start_with("anna", &[flags, &["--renew-every-ms", "200"]].concat());
    let leader = crew.leader();
    crew.start("ben");
    crew.start_with("clara", &["--lead"]);
    (crew, leader)
}

/// How many rows the ledger has under a term.
fn rows(file: &Connection, term: u64) -> i64 {
    file.query_row("SELECT count(*) FROM ledger WHERE term = ?1", [term.cast_signed()], |row| row.get(0))
        .unwrap()
}

fn was_written_under(crew: &Crew, term: u64) {
    crew.until("the successor writes", |file| (rows(file, term) > 0).then_some(()));
    let register = Connection::open(crew.place("register.db")).unwrap();
    crew.until("the successor writes to the register", |_| {
        let written = "SELECT 1 FROM fence WHERE term >= ?1";
        register.query_row(written, [term.cast_signed()], |_| Ok(())).optional().unwrap_or(None)
    });
}

#[test]
fn a_leader_stopped_for_longer_than_its_ttl_is_succeeded_and_its_late_writes_are_refused() {
    let (mut crew, old) = led_by_anna(TTL, &["--stubborn"]);
    was_written_under(&crew, old.term());
    crew.stop("anna");
    let written = rows(&crew.look(), old.term());
    let next = crew.leader_above(old.term());
    was_written_under(&crew, next.term());

    crew.go_on("anna");
    assert_eq!(crew.hear(old.pid, "lost").text("reason"), "lapsed");
    crew.order("anna", "late reports");
    let late = crew.hear(old.pid, "late");
    assert_eq!(late.term(), old.term());
    assert_eq!(late.text("guarded"), "not_leader", "its own check");
    assert_eq!(late.text("fenced"), "not_held", "the store, which nobody asked about the clock");
    assert_eq!(late.text("register"), "refused", "the resource that compares terms");
    assert_eq!(rows(&crew.look(), old.term()), written, "nothing changed");

    // Its stubborn work has gone on meanwhile, and the register has refused all of it.
    let evidence = crew.verdict();
    let refused = |write: &Write| !write.accepted && write.term == old.term();
    assert!(evidence.register.iter().any(refused));
}

#[test]
fn a_leader_stopped_for_less_than_its_deadline_leads_on() {
    // Its deadline is 0.77 ttl after a renewal: much more than the pause is left.
    let ttl = Duration::from_secs(12);
    let (mut crew, leader) = led_by_anna(ttl, &[]);
    crew.stop("anna");
    std::thread::sleep(ttl / 6);
    crew.go_on("anna");
    crew.renews(leader.pid, 2);
    crew.verdict_of_one_leadership(&leader);
}

/// What SQLite cannot help: whoever stands still inside a transaction keeps everybody else from
/// writing, so nobody can be elected until it goes on, or is killed. Nobody leads twice for it.
#[test]
fn a_leader_stopped_inside_its_transaction_writes_nothing_when_it_wakes() {
    let (mut crew, old) = led_by_anna(TTL, &[]);
    crew.order("anna", "dwell reports");
    crew.hear(old.pid, "inside");
    crew.stop_anywhere("anna");
    std::thread::sleep(crew.ttl() * 2);
    let elected = crew.said().into_iter().filter(|event| event.kind == "elected").count();
    assert_eq!(elected, 1, "nobody can have been elected meanwhile");

    crew.go_on("anna");
    crew.order("anna", "leave");
    let dwelt = crew.hear(old.pid, "dwelt");
    assert!(dwelt.text("outcome").contains("not held any more"), "{dwelt:?}");
    crew.leader_above(old.term());
    let dwelt = "SELECT count(*) FROM ledger WHERE note = 'dwelt'";
    assert_eq!(crew.look().query_row(dwelt, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    crew.verdict();
}

#[test]
fn a_leader_killed_inside_its_transaction_leaves_nothing_of_it_behind() {
    let (mut crew, old) = led_by_anna(TTL, &[]);
    crew.order("anna", "dwell reports");
    crew.hear(old.pid, "inside");
    crew.kill("anna");
    crew.leader_above(old.term());
    let dwelt = "SELECT count(*) FROM ledger WHERE note = 'dwelt'";
    assert_eq!(crew.look().query_row(dwelt, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    crew.verdict();
}

/// The judge itself is judged: it must not be blind to what it is there for.
#[test]
fn the_judge_finds_a_leader_that_does_not_ask_its_check() {
    let (mut crew, old) = led_by_anna(TTL, &["--blind"]);
    crew.stop("anna");
    let next = crew.leader_above(old.term());
    was_written_under(&crew, next.term());
    crew.go_on("anna");
    crew.hear(old.pid, "lost");
    crew.looks("anna");

    let mut evidence = crew.evidence();
    let found = check_leaderships(&evidence.leaderships);
    let overlaps = |found: &LeadershipViolation| match found {
        LeadershipViolation::Overlap { first, second } => {
            first.term == old.term() && second.term == next.term()
        }
        _ => false,
    };
    assert!(found.iter().any(overlaps), "{found:?}");

    // The same for the writes: a row of the old term after one of the new.
    evidence.assert_writes();
    let stale = evidence.ledger.iter().find(|write| write.term == old.term()).unwrap().clone();
    evidence.ledger.push(stale);
    assert_eq!(check_writes(&evidence.ledger).len(), 1);
}
