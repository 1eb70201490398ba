//! What all servers share: a directory, a port, a process that ends with the test.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_store::clock;

/// Longer than any server takes to start, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nobody uses right now.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Whether this process is root, which some servers refuse to be.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
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

/// A program of a Debian package, wherever its version puts it.
pub(super) fn installed(package: &str, places: &[&str], program: &str) -> PathBuf {
    let found = places.iter().map(|place| Path::new(place).join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("this test needs `{program}`: install {package} (`cargo xtask setup` does)");
    })
}

/// Runs to its end, and says what it said if it failed.
pub(super) fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until a server answers, or says why it has ended.
pub(super) fn until_ready(server: &mut Child, log: &Path, mut ready: impl FnMut() -> bool) {
    let end = clock::now() + PATIENCE;
    while !ready() {
        let said = || std::fs::read_to_string(log).unwrap_or_default();
        if let Ok(Some(status)) = server.try_wait() {
            panic!("the server ended at once ({status}): {}", said());
        }
        assert!(clock::now() < end, "the server does not answer: {}", said());
        std::thread::sleep(Duration::from_millis(5));
    }
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
