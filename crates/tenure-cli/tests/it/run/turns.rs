//! Whose turn it is: waiting, taking over, making way, coming back.

use rustix::process::Signal;

use super::stage::{NEVER, Stage, lives, now, until};
use super::witness;

#[test]
fn the_second_waits_and_takes_over_when_the_first_is_told_to_end() {
    let stage = Stage::new();
    let mut first = stage.witness("alpha", &["--ttl", NEVER]);
    let beat = stage.beat_of("alpha", 0);
    let second = stage.witness("beta", &["--ttl", NEVER]);
    second.until_said("waiting: `alpha` leads `nightly` under term 1");
    first.signal(Signal::TERM);
    assert_eq!(first.code(), 128 + 15, "the program's own code");
    assert!(!lives(beat.pid));
    stage.beat_of("beta", 0);
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
}

#[test]
fn a_preferred_node_takes_leadership_back_if_it_was_told_to() {
    let stage = Stage::new();
    let lesser = stage.witness("alpha", &["--ttl", "3s"]);
    stage.beat_of("alpha", 0);
    let _preferred = stage.witness("beta", &["--ttl", "3s", "--priority", "5", "--failback"]);
    stage.beat_of("beta", 0);
    lesser.until_said("waiting: `beta` leads `nightly`");
    witness::no_overlap(&stage.log());
}

#[test]
fn a_resignation_from_outside_moves_leadership_and_the_first_stands_again() {
    let stage = Stage::new();
    let first = stage.witness("alpha", &["--ttl", NEVER]);
    stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    let asked = stage.tenure().args(["resign", "nightly"]).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let beat = stage.beat_of("beta", 0);
    first.until_said("the program was ended by signal 15 (SIGTERM)\n");
    first.until_said("waiting: `beta` leads `nightly` under term 2");
    // It is refused until the other stands again.
    until("leadership is transferred", || {
        let asked = stage.tenure().args(["transfer", "nightly", "--to", "alpha"]).output().unwrap();
        asked.status.success().then_some(())
    });
    stage.beat_of("alpha", beat.at);
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2, 3]);
}

#[test]
fn whoever_waits_for_a_node_id_says_which_process_has_it() {
    let stage = Stage::new();
    let first = stage.witness("alpha", &["--ttl", NEVER]);
    // It neither renews nor leaves, so nobody can know whether it lives.
    first.signal(Signal::STOP);
    let said = stage.path("second.said");
    let file = std::fs::File::create(&said).unwrap();
    let _second = stage.run_with("alpha", &["--ttl", NEVER], &["true"], |command| {
        command.stderr(file);
    });
    let words = format!("the node id `alpha` is in use by process {} on ", first.pid());
    until("it says for whom it waits", || {
        std::fs::read_to_string(&said).unwrap().contains(&words).then_some(())
    });
}

#[test]
fn two_processes_with_one_node_id_are_refused_with_what_to_do() {
    let stage = Stage::new();
    let _first = stage.witness("alpha", &["--ttl", NEVER, "--renew-every", "200ms"]);
    let said = stage.path("second.said");
    let file = std::fs::File::create(&said).unwrap();
    let mut second = stage.run_with("alpha", &["--ttl", NEVER], &["true"], |command| {
        command.stderr(file);
    });
    assert_eq!(second.code(), 1);
    let said = std::fs::read_to_string(said).unwrap();
    assert!(
        said.contains("another live process uses the node id `alpha`") && said.contains("--node"),
        "{said}"
    );
}

#[test]
fn a_restarted_node_need_not_wait_for_its_former_self() {
    let stage = Stage::new();
    let before = {
        let first = stage.witness("alpha", &["--ttl", NEVER]);
        let beat = stage.beat_of("alpha", 0);
        drop(first); // kill -9
        beat
    };
    let _second = stage.witness("alpha", &["--ttl", NEVER]);
    let after = stage.beat_of("alpha", before.at.max(now() - 1));
    assert!(after.term > before.term);
    witness::no_overlap(&stage.log());
}
