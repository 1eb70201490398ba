//! The example in Python, beside a node.

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::stage::{Stage, until};
use super::work::{LIST, coordinator, worker};

/// Killed when dropped.
struct Python(Child);

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_in_python_works_and_stops_as_it_is_told() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let mut b = worker(&stage, "b", "20s");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/worker.py");
    let said = stage.path("python.said");
    let mut command = Command::new("python3");
    command.args([example, &format!("http://{}", b.address), LIST]).arg(stage.path("token"));
    command.stdin(Stdio::null()).stdout(std::fs::File::create(&said).unwrap());
    let _python = Python(command.spawn().unwrap());
    let says = |words: &str| {
        until(words, || std::fs::read_to_string(&said).unwrap().contains(words).then_some(()));
    };
    says("partition 0: a step under term");
    says("partition 1: a step under term");
    b.signal(Signal::TERM);
    assert_eq!(b.code(), Some(0));
    says("partition 0: stopped");
    says("partition 1: stopped");
}
