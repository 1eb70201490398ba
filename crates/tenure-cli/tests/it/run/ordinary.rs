//! The usual life: wait, run, end.

use rustix::process::Signal;

use super::stage::{NEVER, Stage, sh, until, written};

#[test]
fn the_program_runs_with_its_term_and_no_secret_of_ours() {
    let stage = Stage::new();
    let script = "env | grep -E '^(TENURE_|NOTIFY_|WATCHDOG_|HELLO)' | sort";
    let mut run = stage.run_with("alpha", &["--ttl", NEVER], &sh(script), |command| {
        command.env("TENURE_STORE_PASSWORD", "secret").env("NOTIFY_SOCKET", "/nowhere").env("HELLO", "world");
    });
    assert_eq!(run.code(), 0);
    let expected =
        "HELLO=world\nTENURE_ELECTION=nightly\nTENURE_NAMESPACE=default\nTENURE_NODE=alpha\nTENURE_TERM=1\n";
    assert_eq!(stage.printed("alpha"), expected);
}

#[test]
fn the_program_inherits_no_descriptor_of_ours() {
    let stage = Stage::new();
    let own = std::process::Command::new("sh").args(["-c", "ls /proc/self/fd"]).output().unwrap();
    let mut run = stage.run("alpha", &[], &sh("ls /proc/self/fd"));
    assert_eq!(run.code(), 0);
    assert_eq!(stage.printed("alpha"), String::from_utf8(own.stdout).unwrap());
}

#[test]
fn stdin_and_stdout_are_the_programs_own() {
    let stage = Stage::new();
    std::fs::write(stage.path("input"), "from outside\n").unwrap();
    let input = std::fs::File::open(stage.path("input")).unwrap();
    let mut run = stage.run_with("alpha", &[], &["cat"], |command| {
        command.stdin(input);
    });
    assert_eq!(run.code(), 0);
    assert_eq!(stage.printed("alpha"), "from outside\n");
}

#[test]
fn a_program_that_floods_its_output_is_not_slowed_by_us() {
    let stage = Stage::new();
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh("head -c 50000000 /dev/zero"));
    assert_eq!(run.code(), 0);
    assert_eq!(stage.printed("alpha").len(), 50_000_000);
}

#[test]
fn user_signals_reach_the_program() {
    let stage = Stage::new();
    let script = format!(
        "for s in HUP USR1 USR2 WINCH; do trap \"echo $s >> {0}\" $s; done; echo ready > {1}; while :; do sleep 0.05; done",
        stage.path("signals").display(),
        stage.path("ready").display()
    );
    let run = stage.run("alpha", &["--ttl", NEVER], &sh(&script));
    written(&stage.path("ready"));
    for (signal, name) in
        [(Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::USR2, "USR2"), (Signal::WINCH, "WINCH")]
    {
        run.signal(signal);
        until(name, || written(&stage.path("signals")).lines().any(|line| line == name).then_some(()));
    }
}

#[test]
fn whoever_waits_ends_at_once_when_told_to() {
    let stage = Stage::new();
    let _first = stage.witness("alpha", &["--ttl", NEVER]);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut second = stage.witness("beta", &["--ttl", NEVER]);
        second.signal(signal);
        assert_eq!(second.code(), code);
    }
    let nodes = stage.tenure().args(["nodes", "--json"]).output().unwrap();
    let nodes = String::from_utf8(nodes.stdout).unwrap();
    assert!(nodes.lines().any(|line| line.contains("\"beta\"") && line.contains("\"left\"")), "{nodes}");
}

#[test]
fn the_election_may_stand_in_the_file() {
    let stage = Stage::new();
    std::fs::write(stage.path("tenure.toml"), "election = \"hourly\"\nnode = \"alpha\"\n").unwrap();
    let run = |flags: &[&str]| {
        let mut command = stage.tenure();
        command.arg("run").args(flags).arg("--config").arg(stage.path("tenure.toml"));
        command.args(["--", "sh", "-c", "echo $TENURE_ELECTION $TENURE_NODE"]).output().unwrap()
    };
    assert_eq!(String::from_utf8(run(&[]).stdout).unwrap(), "hourly alpha\n");
    assert_eq!(String::from_utf8(run(&["--election", "nightly"]).stdout).unwrap(), "nightly alpha\n");
    std::fs::write(stage.path("tenure.toml"), "ttl = \"10s\"\n").unwrap();
    let missing = run(&[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("--election"), "{missing:?}");
}

#[test]
fn a_closed_stdin_is_no_trouble() {
    let stage = Stage::new();
    let script = format!(
        "exec {} run --election nightly -- sh -c 'read line; echo $?' <&-",
        env!("CARGO_BIN_EXE_tenure")
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("TENURE_STORE", stage.place().url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1\n", "end of input at once");
}
