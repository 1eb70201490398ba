//! The unit of the repository, started by systemd.
//!
//! It is a manager of a user, in namespaces and a control group of its own: the machine's own manager, if it has one,
//! hears nothing of it. Of the unit, only the two paths are replaced that belong to the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::fs::Mode;

use super::stage::{Stage, children, until};

const UNIT: &str = include_str!("../../../../../deploy/systemd/tenure-run@.service");
const NAME: &str = "tenure-run@scheduler";

/// What the manager needs: to be told that the machine runs systemd, and control groups whose root is its own.
const BOOT: &str = r#"
set -e
mkdir "$1"
echo 0 > "$1/cgroup.procs"
exec unshare --mount --pid --cgroup --fork --kill-child sh -ec '
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /run
    mkdir -p /run/systemd/system
    umount --lazy --recursive /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    /lib/systemd/systemd --user --unit=basic.target &
    wait $!
'
"#;

/// A program that tells what it was given, and how it ended.
const PROGRAM: &str = r#"#!/bin/sh
trap 'echo stopped > "$OUT.ended"; exit 0' TERM
printf '%s\n' "$@" > "$OUT.new"
sed -n 's/^0:://p' /proc/self/cgroup > "$OUT.cgroup"
mv "$OUT.new" "$OUT"
while :; do sleep 0.1; done
"#;

/// A systemd. Whatever it has started is ended with it.
struct Manager {
    /// `unshare`; its child is the first process of the namespaces.
    process: Child,
    runtime: PathBuf,
    cgroup: PathBuf,
}

impl Manager {
    fn start(stage: &Stage) -> Self {
        let cgroup = unified().join(format!("tenure-test-{}", std::process::id()));
        let runtime = stage.path("runtime");
        rustix::fs::mkdir(&runtime, Mode::RWXU).unwrap();
        let log = std::fs::File::create(stage.path("systemd.log")).unwrap();
        let process = Command::new("sh")
            .args(["-c", BOOT, "sh"])
            .arg(&cgroup)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", stage.path("home"))
            .env("XDG_CONFIG_HOME", stage.path("config"))
            .env("XDG_RUNTIME_DIR", &runtime)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let manager = Self { process, runtime, cgroup };
        until("systemd answers", || manager.systemctl(&["show-environment"]).status.success().then_some(()));
        manager
    }

    /// Within its namespaces: it answers to nobody else.
    fn systemctl(&self, words: &[&str]) -> Output {
        let first = until("the namespaces are there", || children(self.process.id()).first().copied());
        Command::new("nsenter")
            .args(["--mount", "--pid", "--cgroup", "--target", &first.to_string()])
            .args(["systemctl", "--user", "--no-pager"])
            .args(words)
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .output()
            .unwrap()
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> String {
        let output = self.systemctl(words);
        assert!(output.status.success(), "{words:?}: {output:?}\n{}", self.systemctl_status());
        String::from_utf8(output.stdout).unwrap()
    }

    fn systemctl_status(&self) -> String {
        String::from_utf8_lossy(&self.systemctl(&["status", NAME]).stdout).into_owned()
    }

    fn property(&self, name: &str) -> String {
        self.done(&["show", NAME, "--value", "--property", name]).trim().to_owned()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // The kernel ends everything in the namespace with its first process.
        let _ = self.process.kill();
        let _ = self.process.wait();
        until("its control groups are empty", || removed(&self.cgroup).then_some(()));
    }
}

/// Where control groups of version 2 are.
fn unified() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut kinds = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    kinds.find(|words| words[2] == "cgroup2").expect("there are control groups of version 2")[1].into()
}

/// Removes a control group with those in it, which must be empty.
fn removed(group: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(group) else { return true };
    let mut groups = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    groups.all(|group| removed(&group)) && std::fs::remove_dir(group).is_ok()
}

/// The unit, and what belongs to it on a machine.
fn install(stage: &Stage) {
    let units = stage.path("config/systemd/user");
    std::fs::create_dir_all(&units).unwrap();
    std::fs::create_dir(stage.path("home")).unwrap();
    let unit = UNIT
        .replace("/usr/local/bin/tenure", env!("CARGO_BIN_EXE_tenure"))
        .replace("/etc/tenure", stage.path("").to_str().unwrap().trim_end_matches('/'));
    std::fs::write(units.join("tenure-run@.service"), unit).unwrap();
    let program = stage.path("program");
    std::fs::write(&program, PROGRAM).unwrap();
    rustix::fs::chmod(&program, Mode::RWXU).unwrap();
    let settings = format!(
        "PROGRAM={} --queue \"night shift\" '$HOME' %i\nOUT={}\nTENURE_STORE={}\nTENURE_NODE=alpha\nTENURE_TTL=1h\n",
        program.display(),
        stage.path("out").display(),
        stage.place().url(),
    );
    std::fs::write(stage.path("scheduler.env"), settings).unwrap();
}

#[test]
fn systemd_starts_the_unit_with_arguments_shows_who_leads_and_stops_it_in_order() {
    let stage = Stage::new();
    install(&stage);
    let manager = Manager::start(&stage);
    manager.done(&["start", NAME]); // returns when the unit has said that it is ready
    until("the program runs", || stage.path("out").exists().then_some(()));
    let arguments = std::fs::read_to_string(stage.path("out")).unwrap();
    assert_eq!(arguments, "--queue\nnight shift\n$HOME\n%i\n");
    until("it is said who leads", || {
        manager.property("StatusText").starts_with("leading `scheduler` under term 1").then_some(())
    });
    assert_eq!(manager.property("ActiveState"), "active");
    let group = std::fs::read_to_string(stage.path("out.cgroup")).unwrap();
    assert!(group.contains("/tenure-run@scheduler.service/"), "a group of the program's own: {group}");

    manager.done(&["stop", NAME]);
    assert_eq!(std::fs::read_to_string(stage.path("out.ended")).unwrap(), "stopped\n");
    assert_eq!(
        (manager.property("ActiveState"), manager.property("Result")),
        ("inactive".into(), "success".into())
    );
    let leader = stage.tenure().args(["leader", "scheduler"]).output().unwrap();
    assert!(String::from_utf8_lossy(&leader.stderr).contains("nobody leads"), "{leader:?}");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let stage = Stage::new();
    for (name, unit) in [
        ("tenure-run@scheduler.service", UNIT),
        ("tenure-node.service", include_str!("../../../../../deploy/systemd/tenure-node.service")),
    ] {
        let file = stage.path(name);
        // The manual is not installed here, nor is the binary in its place.
        let unit = unit.replace("/usr/local/bin/tenure", env!("CARGO_BIN_EXE_tenure"));
        let unit =
            unit.lines().filter(|line| !line.starts_with("Documentation=")).collect::<Vec<_>>().join("\n");
        std::fs::write(&file, unit).unwrap();
        let verified = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains("tenure-"), "{name}: {said}");
    }
}
