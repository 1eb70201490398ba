//! A connection to the store hangs: it is open, and no answer comes.

use rustix::process::Signal;

use super::stage::{NEVER, Stage};
use super::witness;

#[test]
fn a_guardian_whose_connection_hangs_closes_the_session_over_another_one() {
    let stage = Stage::new();
    let (proxy, url) = stage.place().by_proxy();
    let first = stage.run_with("alpha", &["--ttl", NEVER], &witness::command(), |command| {
        command.env("TENURE_STORE", url);
    });
    stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    // Never released.
    proxy.hold_at(stage.place().is_closing());
    first.signal(Signal::KILL);
    stage.beat_of("beta", 0);
    assert!(proxy.has_held(), "the first attempt was not answered");
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
}
