//! Signals to `tenure run`: some end it, the others are the program's.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Stop the program, resign, and exit.
    End(i32),
    /// It is for the program.
    Pass(i32),
}

/// All signals that are dealt with.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Option<Signal>,
    user1: Signal,
    user2: Signal,
    window: Signal,
}

impl Signals {
    pub fn listen() -> io::Result<Self> {
        // Started by nohup: whoever did that wants no hang-up to be noticed, by anybody.
        let hang_up = (!ignores_hang_up()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            window: signal(SignalKind::window_change())?,
        })
    }

    /// The next one.
    ///
    /// # Cancel safety
    /// Safe: signals are kept until they are asked for.
    pub async fn next(&mut self) -> Wish {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => Wish::End(SIGTERM),
            _ = self.interrupt.recv() => Wish::End(SIGINT),
            _ = self.quit.recv() => Wish::End(SIGQUIT),
            _ = hang_up => Wish::Pass(SIGHUP),
            _ = self.user1.recv() => Wish::Pass(SIGUSR1),
            _ = self.user2.recv() => Wish::Pass(SIGUSR2),
            _ = self.window.recv() => Wish::Pass(SIGWINCH),
        }
    }
}

fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
