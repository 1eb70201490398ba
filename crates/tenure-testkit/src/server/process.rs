//! What all servers share: a directory, a port, a process that ends with the test.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_store::clock;

/// Longer than any server takes to start, on any machine.
const PATIENCE: Duration = crate::patience::HANG;

/// Below what the system gives to connections that go out, so that none of those takes it before its server does.
const PORTS: Range<u16> = 10_240..32_768;

/// A port that nobody uses right now, and that nobody else is given who asks here as long as this process lives: between
/// the answer and a server that listens there, it may be any time. Each begins elsewhere.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    static KEPT: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = RandomState::new().hash_one((std::process::id(), kept.len()));
    let count = u64::from(PORTS.end - PORTS.start);
    let port =
        |offset: u64| PORTS.start + u16::try_from((begin.wrapping_add(offset)) % count).expect("it is below");
    let directory =
        std::env::temp_dir().join(format!("tenure-ports-{}", rustix::process::geteuid().as_raw()));
    std::fs::create_dir_all(&directory).expect("there is a place for temporary files");
    let free = |port: u16| {
        // Locked before anybody looks at the port: even a look takes it for a moment.
        let lock = File::create(directory.join(port.to_string())).ok()?;
        lock.try_lock().ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some((port, lock))
    };
    let (port, lock) = (0..count).map(port).find_map(free).expect("the loopback has a free port");
    kept.push(lock);
    port
}

/// Whether this process is root, which some servers refuse to be.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command as ourselves, that ends with the thread that starts it, however that ends.
pub(super) fn plain(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// A command as another user, executed in place, so that the process that we hold is its own. It ends
/// with the thread that starts it, however that ends.
pub(super) fn as_user(user: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.arg("--").arg(program).stdin(Stdio::null());
    command
}

/// Gives a file or a directory to another user, if we may.
pub(super) fn give(path: &Path, user: &str) {
    if is_root() {
        let given = Command::new("chown").arg(user).arg(path).status();
        assert!(given.is_ok_and(|status| status.success()), "{} cannot be given to {user}", path.display());
    }
}

/// Puts files beside a server's data, which nobody but the server may read.
pub(super) fn keep(directory: &Path, files: &[(&str, &str)], user: &str) {
    for (name, text) in files {
        let path = directory.join(name);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.as_mut().map(|file| file.write_all(text.as_bytes()));
        assert!(matches!(written, Ok(Ok(()))), "{} cannot be written", path.display());
        give(&path, user);
    }
}

/// A program of a Debian package, wherever its version puts it.
pub(super) fn installed(package: &str, places: &[&str], program: &str) -> PathBuf {
    let found = places.iter().map(|place| Path::new(place).join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("this test needs `{program}`: install {package} (`cargo xtask setup` does)");
    })
}

/// Runs to its end, and says what it said if it failed.
pub(crate) fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server's process. It is killed when it is dropped: its data goes with it.
pub(super) struct Running(Child);

impl Running {
    /// Starts it. What it says goes to a log, which goes on over starts.
    pub(super) fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("the log can be written");
        let errors = file.try_clone().expect("a file can be opened twice");
        Self(command.stdout(file).stderr(errors).spawn().expect("the server can be started"))
    }

    /// Waits until it answers, or says why it has ended.
    pub(super) fn until_ready(&mut self, log: &Path, mut ready: impl FnMut() -> bool) {
        let end = clock::now() + PATIENCE;
        while !ready() {
            let said = || std::fs::read_to_string(log).unwrap_or_default();
            if let Ok(Some(status)) = self.0.try_wait() {
                panic!("the server ended at once ({status}): {}", said());
            }
            assert!(clock::now() < end, "the server does not answer: {}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)))
    }

    /// It may have ended by itself, and then hears nothing.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a process has a number");
        let _ = kill_process(pid, signal);
    }

    /// Ends it with this signal, and waits until it has; but not for ever: then it is killed.
    pub(super) fn end(mut self, signal: Signal) {
        self.signal(signal);
        let end = clock::now() + PATIENCE;
        while !self.has_ended() && clock::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often a line of this kind stands in a log, which goes on over starts.
pub(super) fn said(log: &Path, words: &str) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().matches(words).count()
}

/// The processes that a process has started.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let all = std::fs::read_dir("/proc").expect("the system shows its processes");
    let all = all.filter_map(|entry| number(entry.ok()?.path()));
    let line = format!("PPid:\t{parent}");
    let ours = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| status.lines().any(|said| said == line))
    };
    all.filter(ours).collect()
}

/// Waits until processes have ended, whoever they belong to by now.
pub(super) fn until_gone(pids: &[u32]) {
    let end = clock::now() + PATIENCE;
    let runs = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| !status.lines().any(|said| said.starts_with("State:\tZ")))
    };
    while pids.iter().any(runs) {
        assert!(clock::now() < end, "{pids:?} do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}
