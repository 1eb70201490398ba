//! Signals to a child, by its own number, and only while it is ours to reap.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Its number.
#[must_use]
pub fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Kills a child, and reaps it.
///
/// # Panics
/// If it was reaped already.
pub fn kill(child: &mut Child) {
    kill_process(pid(child), Signal::KILL).expect("it is ours to kill");
    child.wait().expect("it is ours to reap");
}

/// Stops a process. When this returns, all its threads stand still.
///
/// # Panics
/// If it has ended.
pub fn stop(child: &Child) {
    kill_process(pid(child), Signal::STOP).expect("it is ours to stop");
    let stopped = waitid(WaitId::Pid(pid(child)), WaitIdOptions::STOPPED).expect("it is ours");
    assert!(stopped.is_some_and(|status| status.stopped()), "a child that was stopped has stopped");
}

/// Lets it go on.
///
/// # Panics
/// If it was reaped already.
pub fn go_on(child: &Child) {
    kill_process(pid(child), Signal::CONT).expect("it is ours to wake");
}
