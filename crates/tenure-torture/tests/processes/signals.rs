//! Signals to a child, by its own number, and only while it is ours to reap.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

pub fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

pub fn kill(child: &mut Child) {
    kill_process(pid(child), Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// Stops a process. When this returns, all its threads stand still.
pub fn stop(child: &Child) {
    kill_process(pid(child), Signal::STOP).unwrap();
    let stopped = waitid(WaitId::Pid(pid(child)), WaitIdOptions::STOPPED).unwrap();
    assert!(stopped.is_some_and(|status| status.stopped()), "a child that was stopped has stopped");
}

pub fn go_on(child: &Child) {
    kill_process(pid(child), Signal::CONT).unwrap();
}
