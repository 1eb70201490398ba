//! The guardian as the supervisor sees it: started once, given orders, listened to.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::orders::{Hello, Order, Report};
use super::tree::Snapshot;
use crate::failure::Failure;

/// The word on the command line that makes this program a guardian. It is not for people.
pub const WORD: &str = "__guardian";

/// A guardian process. Dropped, it is told to leave: it kills whatever it still guards.
pub struct Guard {
    process: Child,
    orders: OwnedWriteHalf,
    reports: tokio::io::Lines<BufReader<OwnedReadHalf>>,
}

impl Guard {
    /// Starts a guardian, which does nothing until it is told to.
    pub async fn start(hello: Hello) -> Result<Self, Failure> {
        // What the guardian guards becomes ours if it dies.
        rustix::process::set_child_subreaper(Some(getpid())).map_err(Failure::system)?;
        let (ours, theirs) = Pair::pair()?;
        // A copy that survives exec, and lives only until then.
        let passed = rustix::io::dup(&theirs).map_err(Failure::system)?;
        let process = Command::new("/proc/self/exe")
            .arg0("tenure")
            .args([WORD, &passed.as_raw_fd().to_string()])
            // A terminal that stops or ends the program must not reach the one who guards it.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                Failure::System(format!("the guardian process could not be started: {error}"))
            })?;
        drop((passed, theirs));
        ours.set_nonblocking(true)?;
        let (read, orders) = UnixStream::from_std(ours)?.into_split();
        let mut guard = Self { process, orders, reports: BufReader::new(read).lines() };
        guard.order(&Order::Hello(hello)).await?;
        Ok(guard)
    }

    pub async fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(order).map_err(Failure::system)?;
        line.push(b'\n');
        // A guardian that is gone says so by the end of its reports.
        let _ = self.orders.write_all(&line).await;
        Ok(())
    }

    /// Lets the guardian go: everything is given back.
    pub async fn dismiss(mut self) {
        // If it is gone already, so much the better.
        let _ = self.order(&Order::Dismissed).await;
        let _ = self.process.wait();
    }

    /// The next report; `None` if the guardian is gone.
    ///
    /// # Cancel safety
    /// Safe: half a line waits for its other half.
    pub async fn report(&mut self) -> Option<Report> {
        let line = self.reports.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Does the guardian's work for it, and starts another: it is dead, or does not answer. Returns
    /// when nothing is left of the tree, nor of the old guardian.
    pub async fn replace(&mut self, hello: Hello) -> Result<(), Failure> {
        loop {
            // The guardian last: as long as it lives, what it guards is found below it.
            if let Ok(all) = Snapshot::take() {
                all.signal(getpid(), self.pid(), Signal::KILL);
            }
            if self.alone() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        *self = Self::start(hello).await?;
        Ok(())
    }

    /// Whether nobody but the guardian is left below us; then the guardian is ended too.
    fn alone(&mut self) -> bool {
        if !Snapshot::take().is_ok_and(|all| all.is_empty(getpid(), self.pid())) {
            return false;
        }
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::KILL);
        }
        // Whatever lost its parent meanwhile is our child now: until the kernel knows of none.
        let _ = self.process.wait();
        loop {
            match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.process.id()).ok().and_then(Pid::from_raw)
    }
}
