//! `tenure top` in a terminal, which `script` gives it.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::encryption;
use super::stage::{Stage, TTL, until};

struct Terminal {
    child: Child,
    keys: ChildStdin,
    painted: Arc<Mutex<String>>,
}

impl Terminal {
    fn run(stage: &Stage, line: &str) -> Self {
        Self::run_with(stage, line, |_| {})
    }

    fn run_with(stage: &Stage, line: &str, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new("script");
        command.args(["-qefc", &format!("{} {line}", env!("CARGO_BIN_EXE_tenure")), "/dev/null"]);
        command.env("TENURE_STORE", stage.place().url()).env("NO_COLOR", "1").env("TERM", "xterm");
        change(&mut command);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let painted = Arc::new(Mutex::new(String::new()));
        let paints = Arc::clone(&painted);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                paints.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, painted }
    }

    /// Waits until the picture that is painted has all of these in it.
    fn shows(&self, parts: &[&str]) {
        until(&format!("it shows {parts:?}"), || self.has_shown(parts));
    }

    fn has_shown(&self, parts: &[&str]) -> bool {
        let painted = self.painted.lock().unwrap();
        // Every picture begins where the screen does.
        let mut pictures = painted.split("\x1b[H");
        pictures.any(|picture| parts.iter().all(|part| picture.contains(part)))
    }

    fn quit(mut self) {
        self.keys.write_all(b"q").unwrap();
        let status = until("it ends", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn top_reads_a_node_and_another_one_when_that_dies() {
    let stage = Stage::new();
    let mut nodes =
        stage.cluster(&["alpha", "beta", "gamma"], &["--ttl", TTL, "--task-list", "billing/invoices=8"]);
    let top = Terminal::run(&stage, &format!("top --api http://{}", nodes[0].address));
    let pages = nodes[1].address.to_string();
    top.shows(&[
        "coordinator · 3 live nodes",
        "alpha leads under term",
        "left unless it renews",
        &pages,
        "node_joined",
    ]);
    top.shows(&["8 partitions: 0 owned, 0 being given up, 8 vacant"]);
    nodes[0].child.kill().unwrap();
    top.shows(&["stale: http://127.0.0.1:", "gives no answer"]);
    until("another one leads", || {
        let shown = |next: &str| top.has_shown(&[&format!("{next} leads under term"), "leader_lost"]);
        shown("beta") || shown("gamma")
    });
    top.quit();
}

#[test]
fn top_reads_a_store_and_shows_the_same() {
    let stage = Stage::new();
    let _nodes = stage.cluster(&["alpha", "beta"], &["--task-list", "billing/invoices=8"]);
    let top = Terminal::run(&stage, "top");
    top.shows(&[
        "coordinator · 2 live nodes",
        "alpha leads under term 1",
        "left unless it renews",
        "node_joined",
    ]);
    top.shows(&["8 partitions: 0 owned, 0 being given up, 8 vacant"]);
    top.quit();
    let other = Terminal::run(&stage, "top nightli");
    other.shows(&["no election `nightli`"]);
}

#[test]
fn top_shows_an_unhealthy_node_with_its_problem() {
    let stage = Stage::new();
    let node = stage.node("alpha", &[]);
    node.until_ok("/leader");
    let _other = stage.node("beta", &["--ttl", "3s", "--health-cmd", "exit 7"]);
    for line in [String::from("top"), format!("top --api http://{}", node.address)] {
        let top = Terminal::run(&stage, &line);
        top.shows(&["alpha leads", " unhealthy ", "`exit 7` ended with exit status: 7", "node_unhealthy"]);
        top.quit();
    }
}

#[test]
fn top_reads_a_node_over_https_if_the_system_trusts_it() {
    let stage = Stage::new();
    let node = encryption::secured(&stage, &encryption::papers(), false);
    let line = format!("top --api https://localhost:{}", node.address.port());
    let top = Terminal::run_with(&stage, &line, |command| {
        command.env("SSL_CERT_FILE", stage.path("authority.pem"));
    });
    top.shows(&["a leads under term 1", "node_joined"]);
    top.quit();
    let stranger = Terminal::run(&stage, &line);
    stranger.shows(&["gives no answer"]);
}

#[test]
fn top_says_what_is_wrong_with_an_address_and_with_an_election() {
    let stage = Stage::new();
    let node = stage.node("alpha", &[]);
    node.until_ok("/leader");
    let wrong = Terminal::run(&stage, "top --api 127.0.0.1:8001");
    wrong.shows(&["is no address of a node", "http://127.0.0.1:8001"]);
    let other = Terminal::run(&stage, &format!("top nightly --api http://{}", node.address));
    other.shows(&["that node stands for `coordinator`, not for `nightly`"]);
}
