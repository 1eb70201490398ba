//! How the program ends, and what follows.

use super::stage::{NEVER, Stage, sh, until};

#[test]
fn the_code_of_the_program_is_the_code_of_run() {
    let stage = Stage::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
        assert_eq!(stage.run("alpha", &["--ttl", NEVER], &sh(script)).code(), code, "{script}");
    }
    let led = stage.tenure().args(["leader", "nightly"]).output().unwrap();
    assert_eq!(led.status.code(), Some(1), "the lease was given back each time");
}

#[test]
fn how_the_program_ended_and_who_runs_it_next_is_said() {
    let stage = Stage::new();
    let mut alone = stage.run("alpha", &["--ttl", NEVER], &sh("exit 3"));
    assert_eq!(alone.code(), 3);
    let words = "the program ended with code 3; the lease is free, and no other node stands";
    assert!(alone.said().contains(words), "{}", alone.said());
    let go = stage.path("go");
    let script = format!("while ! test -e {}; do sleep 0.05; done; kill -9 $$", go.display());
    let mut first = stage.run("alpha", &["--ttl", NEVER], &sh(&script));
    first.until_said("leading");
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    until("beta stands", || {
        let status = stage.tenure().args(["status", "nightly", "--json"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains(r#""node_id":"beta""#).then_some(())
    });
    std::fs::write(go, "").unwrap();
    assert_eq!(first.code(), 137);
    let words = "the program was ended by signal 9 (SIGKILL); the lease is free, and `beta` runs it next";
    assert!(first.said().contains(words), "{}", first.said());
}

#[test]
fn how_the_program_ended_is_in_the_history() {
    let stage = Stage::new();
    let failed = |words| ["leader_lost", "program_failed", words];
    for (term, (script, end)) in (1..).zip([
        ("exit 1", failed("its program exited with code 1")),
        ("kill -9 $$", failed("its program was killed by signal 9 (SIGKILL)")),
        ("exit 0", ["leader_resigned", "", "it resigned (its program exited with code 0)"]),
    ]) {
        stage.run("alpha", &["--ttl", NEVER], &sh(script)).code();
        assert_eq!(stage.end_of(term), end, "{script}");
    }
    // One that was told to stop has not failed, however it ended.
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh("sleep 1000"));
    run.until_said("leading");
    run.signal(rustix::process::Signal::TERM);
    run.end();
    assert_eq!(stage.end_of(4), ["leader_resigned", "", "it resigned"]);
}

#[test]
fn copies_that_fail_one_after_the_other_leave_a_line_that_says_so() {
    let stage = Stage::new();
    let go = stage.path("go");
    let script = format!("while ! test -e {}; do sleep 0.05; done; exit $1", go.display());
    let copy = |node: &str, code: &str| {
        let program = ["sh", "-c", &script, "job", code].map(str::to_owned);
        stage.run(node, &["--ttl", NEVER, "--restart", "never"], &program)
    };
    let mut first = copy("alpha", "3");
    first.until_said("leading");
    let mut second = copy("beta", "4");
    second.until_said("waiting:");
    std::fs::write(go, "").unwrap();
    assert_eq!((first.code(), second.code()), (3, 4));
    let words = "the program has failed on one copy after the other: on `alpha` (code 3) and here (code 4)";
    assert!(second.said().contains(words), "{}", second.said());
}

#[test]
fn with_once_no_copy_runs_a_program_that_has_succeeded() {
    let stage = Stage::new();
    let (go, count) = (stage.path("go"), stage.path("count"));
    let flags = ["--ttl", NEVER, "--once"];
    let script = format!(
        "echo x >> {1}; while ! test -e {0}; do sleep 0.05; done; test $(wc -l < {1}) -ge 2",
        go.display(),
        count.display()
    );
    let mut first = stage.run("alpha", &flags, &sh(&script));
    first.until_said("leading");
    let mut second = stage.run("beta", &flags, &sh(&script));
    second.until_said("waiting:");
    let mut third = stage.run("gamma", &flags, &sh(&script));
    third.until_said("waiting:");
    std::fs::write(go, "").unwrap();
    // A failure is no success: the next one tries.
    assert_eq!(first.code(), 1);
    assert_eq!((second.code(), third.code()), (0, 0));
    // Also whoever comes late.
    let mut late = stage.run("delta", &flags, &sh(&script));
    assert_eq!(late.code(), 0);
    let said = [&second, &third, &late].map(|run| run.said());
    assert!(said.iter().any(|said| said.contains("`nightly` is closed, and other copies end")), "{said:?}");
    assert!(said[2].contains("`nightly` is closed: its program has ended with code 0"), "{}", said[2]);
    assert_eq!(std::fs::read_to_string(count).unwrap().lines().count(), 2);
}

#[test]
fn a_program_that_cannot_be_run_is_found_out_before_anybody_stands() {
    let stage = Stage::new();
    let plain = stage.path("plain");
    std::fs::write(&plain, "no program").unwrap();
    for (program, code, why) in [
        (String::from("no-such-program"), 127, "is not on the PATH"),
        (stage.path("nowhere").display().to_string(), 127, "no such file"),
        (plain.display().to_string(), 126, "chmod +x"),
        (String::from("/"), 126, "cannot be executed"),
    ] {
        let mut run = stage.run("alpha", &[], &[&program]);
        assert_eq!(run.code(), code, "{program}");
        assert!(run.said().contains(why), "{}", run.said());
    }
    let known = stage.tenure().args(["elections", "--json"]).output().unwrap();
    assert!(known.stdout.is_empty(), "nobody has stood: {known:?}");
}

#[test]
fn a_program_that_vanishes_while_waiting_gives_the_lease_back() {
    let stage = Stage::new();
    let program = stage.path("job");
    std::fs::write(&program, "#!/bin/sh\nsleep 1000\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut first = stage.run("alpha", &["--ttl", NEVER], &sh("read line < ./nothing; sleep 1000"));
    first.until_said("leading");
    let mut second = stage.run("beta", &["--ttl", NEVER], &[&program]);
    second.until_said("waiting:");
    std::fs::remove_file(&program).unwrap();
    first.signal(rustix::process::Signal::TERM);
    first.end();
    assert_eq!(second.code(), 127);
    assert!(second.said().contains("the lease was given back"), "{}", second.said());
}

#[test]
fn a_program_that_fails_is_run_again_if_that_was_asked_for() {
    let stage = Stage::new();
    let count = stage.path("count");
    let script = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3", count.display());
    let mut run = stage.run("alpha", &["--ttl", NEVER, "--restart", "on-failure"], &sh(&script));
    assert_eq!(run.code(), 0, "it succeeded in the end");
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 3);
    assert!(run.said().contains("ended with code 1; standing again in 500ms"), "{}", run.said());
}

#[test]
fn a_program_that_ends_well_is_run_again_only_if_always_was_said() {
    let stage = Stage::new();
    assert_eq!(stage.run("alpha", &["--restart", "on-failure"], &["true"]).code(), 0);
    let count = stage.path("count");
    let run = stage.run("alpha", &["--restart", "always"], &sh(&format!("echo x >> {}", count.display())));
    until("it runs twice", || {
        std::fs::read_to_string(&count).is_ok_and(|text| text.lines().count() >= 2).then_some(())
    });
    run.until_said("standing again");
}

#[test]
fn while_it_pauses_before_the_next_run_somebody_else_leads() {
    let stage = Stage::new();
    let failing = stage.run("alpha", &["--ttl", NEVER, "--restart", "always"], &sh("exit 3"));
    failing.until_said("standing again");
    let _other = stage.witness("beta", &["--ttl", NEVER]);
    stage.beat_of("beta", 0);
    failing.until_said("waiting: `beta` leads");
}
