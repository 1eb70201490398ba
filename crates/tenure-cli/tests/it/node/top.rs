//! `tenure top` in a terminal.

use std::process::Command;

use super::encryption;
use super::stage::{Stage, until};
use crate::terminal::Terminal;

/// The command in a terminal, on the stage's store.
fn terminal(stage: &Stage, line: &str) -> Terminal {
    terminal_with(stage, line, |_| {})
}

fn terminal_with(stage: &Stage, line: &str, change: impl FnOnce(&mut Command)) -> Terminal {
    Terminal::run(line, |command| {
        change(command.env("TENURE_STORE", stage.place().url()));
    })
}

/// A picture of what a node tells, with all of these in it. Without an answer within seconds, which a busy machine may not
/// give, the command ends, and is started again.
fn shown(stage: &Stage, line: &str, change: impl Fn(&mut Command), parts: &[&str]) -> Terminal {
    until(&format!("a node is asked, and `{line}` shows {parts:?}"), || {
        let top = terminal_with(stage, line, &change);
        until(&format!("`{line}` shows {parts:?}"), || {
            top.has_shown(parts) || top.has_shown(&["gives no answer"])
        });
        top.has_shown(parts).then_some(top)
    })
}

#[test]
fn top_reads_a_node_and_another_one_when_that_dies() {
    let stage = Stage::new();
    // Long enough for a terminal to start on a busy machine without costing anybody the lease.
    let mut nodes =
        stage.cluster(&["alpha", "beta", "gamma"], &["--ttl", "6s", "--task-list", "billing/invoices=8"]);
    let pages = nodes[1].address.to_string();
    let parts = [
        "coordinator · 3 live nodes",
        "alpha leads under term",
        "left unless it renews",
        &pages,
        "node_joined",
    ];
    let top = shown(&stage, &format!("top --api http://{}", nodes[0].address), |_| {}, &parts);
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
    let top = terminal(&stage, "top");
    top.shows(&[
        "coordinator · 2 live nodes",
        "alpha leads under term 1",
        "left unless it renews",
        "node_joined",
    ]);
    top.shows(&["8 partitions: 0 owned, 0 being given up, 8 vacant"]);
    top.quit();
    let other = terminal(&stage, "top nightli");
    other.shows(&["no election `nightli`"]);
}

#[test]
fn top_shows_an_unhealthy_node_with_its_problem() {
    let stage = Stage::new();
    let node = stage.node("alpha", &[]);
    node.until_ok("/leader");
    let _other = stage.node("beta", &["--health-cmd", "exit 7"]);
    for line in [String::from("top"), format!("top --api http://{}", node.address)] {
        let parts = ["alpha leads", " unhealthy ", "`exit 7` ended with exit status: 7", "node_unhealthy"];
        shown(&stage, &line, |_| {}, &parts).quit();
    }
}

#[test]
fn top_reads_a_node_over_https_if_the_system_trusts_it() {
    let stage = Stage::new();
    let node = encryption::secured(&stage, &encryption::papers(), false);
    let line = format!("top --api https://localhost:{}", node.address.port());
    let trusts = |command: &mut Command| {
        command.env("SSL_CERT_FILE", stage.path("authority.pem"));
    };
    shown(&stage, &line, trusts, &["a leads under term 1", "node_joined"]).quit();
    let stranger = terminal(&stage, &line);
    stranger.shows(&["gives no answer"]);
}

#[test]
fn top_says_what_is_wrong_with_an_address_and_with_an_election() {
    let stage = Stage::new();
    let node = stage.node("alpha", &[]);
    node.until_ok("/leader");
    let wrong = terminal(&stage, "top --api 127.0.0.1:8001");
    wrong.shows(&["is no address of a node", "http://127.0.0.1:8001"]);
    let other = format!("top nightly --api http://{}", node.address);
    shown(&stage, &other, |_| {}, &["that node stands for `coordinator`, not for `nightly`"]);
}
