//! What `top` makes of a terminal and of a crowd.

use super::stage::{Stage, until};
use crate::terminal::Terminal;

fn top(stage: &Stage, columns: u32) -> Terminal {
    Terminal::sized(columns, 24, "top nightly", |command| {
        command.env("TENURE_STORE", &stage.url);
    })
}

#[test]
fn the_bar_is_as_wide_as_the_terminal() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    // A lease of a minute that is renewed every twenty seconds is at least half full: that is more than the narrow one.
    top(&stage, 160).shows(&[&"█".repeat(64), "left unless it renews"]);
    let narrow = top(&stage, 60);
    narrow.shows(&["█", "left unless it renews"]);
    assert!(!narrow.has_shown(&[&"█".repeat(29)]), "60 columns less what stands beside it");
}

#[test]
fn a_crowd_of_dead_nodes_hides_no_live_one() {
    let stage = Stage::new();
    for number in 0..13 {
        stage.stands(&format!("a-former-one-{number:02}")).leaves();
    }
    let _zeta = stage.leads("zeta");
    top(&stage, 120).shows(&[
        "nightly · 1 live node",
        "zeta            leader",
        "a-former-one-00 left",
        "and 2 more",
    ]);
}

#[test]
fn a_node_that_stands_for_another_election_is_no_follower() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let _beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    let words =
        ["node", "--election", "other", "--node", "elsewhere", "--ttl", "1m", "--listen", "127.0.0.1:0"];
    let _elsewhere = stage.spawn(&words);
    until("it is registered", || stage.tenure(&["nodes"]).done().out.contains("elsewhere"));
    top(&stage, 80).shows(&["beta           follower", "elsewhere      live"]);
}
