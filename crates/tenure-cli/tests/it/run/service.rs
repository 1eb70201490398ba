//! Under a service manager: ready, what goes on, still alive, on the way out.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;
use tenure_testkit::patience::HANG;

use super::stage::{NEVER, Stage, until};
use super::witness;

/// What a service manager hears.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn listen(stage: &Stage) -> Self {
        let socket = UnixDatagram::bind(stage.path("notify")).unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        Self { socket }
    }

    /// Hears messages until one has these words.
    fn hear(&self, words: &str) {
        let mut heard = Vec::new();
        until(words, || {
            let mut message = [0; 4096];
            let length = self.socket.recv(&mut message).unwrap_or_else(|error| {
                panic!("nobody says `{words}`, but {heard:?}: {error}");
            });
            let message = String::from_utf8_lossy(&message[..length]).into_owned();
            let found = message.contains(words);
            heard.push(message);
            found.then_some(())
        });
    }
}

#[test]
fn a_service_manager_is_told_of_everything_it_wants_to_know() {
    let stage = Stage::new();
    let manager = Manager::listen(&stage);
    let first = stage.witness("alpha", &["--ttl", NEVER]);
    let mut second = stage.run_with("beta", &["--ttl", NEVER], &witness::command(), |command| {
        command.env("NOTIFY_SOCKET", stage.path("notify")).env("WATCHDOG_USEC", "60000");
    });
    manager.hear("READY=1");
    manager.hear("STATUS=waiting: `alpha` leads `nightly` under term 1");
    manager.hear("WATCHDOG=1");
    drop(first);
    manager.hear("STATUS=leading `nightly` under term 2");
    // More than once: it goes on while the program runs.
    manager.hear("WATCHDOG=1");
    manager.hear("WATCHDOG=1");
    second.signal(Signal::TERM);
    manager.hear("STOPPING=1");
    second.end();
}

#[test]
fn a_supervisor_that_hangs_is_not_called_alive() {
    let stage = Stage::new();
    let manager = Manager::listen(&stage);
    let run = stage.run_with("alpha", &["--ttl", NEVER], &witness::command(), |command| {
        command.env("NOTIFY_SOCKET", stage.path("notify")).env("WATCHDOG_USEC", "60000");
    });
    manager.hear("WATCHDOG=1");
    run.signal(Signal::STOP);
    // Whatever was on its way arrives; then there is silence for many times its interval.
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut message = [0; 4096];
    while manager.socket.recv(&mut message).is_ok() {}
    run.signal(Signal::CONT);
    manager.socket.set_read_timeout(Some(HANG)).unwrap();
    manager.hear("WATCHDOG=1");
}

#[test]
fn the_unit_in_the_repository_says_what_the_command_understands() {
    let unit = include_str!("../../../../../deploy/systemd/tenure-run@.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let stage = Stage::new();
    let words = start.replace("%i", "nightly").replace("$PROGRAM", "true");
    let mut words = words.split(' ').skip(1);
    let output = stage.tenure().args(words.by_ref()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for wanted in [
        "Type=notify",
        "EnvironmentFile=/etc/tenure/%i.env",
        "WatchdogSec=",
        "Restart=",
        "KillMode=mixed",
        "Delegate=yes",
    ] {
        assert!(unit.contains(wanted), "{wanted}");
    }
}
