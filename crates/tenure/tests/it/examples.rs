//! The examples that the documents have people start, started.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use tempfile::TempDir;
use tenure_testkit::patience::until;

/// An example at work. Killed when dropped.
struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    /// As people type it, with a state directory of our own.
    fn start(home: &TempDir, name: &str, words: &[&str]) -> Self {
        // Cargo builds examples beside the tests, and tells tests of programs only.
        let tests = std::env::current_exe().unwrap();
        let example = tests.ancestors().nth(2).unwrap().join("examples").join(name);
        assert!(example.is_file(), "{} is not built: cargo build --examples", example.display());
        let said = home.path().join(format!("{name}-{}", words.join("-")));
        let child = Command::new(example)
            .args(words)
            .env("XDG_STATE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        Self { child, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    fn until_said(&self, words: &str) {
        until(&format!("`{words}` in {}", name(&self.said)), || self.said().contains(words));
    }

    fn ends(&mut self) -> ExitStatus {
        until(&format!("{} ends", name(&self.said)), || self.child.try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn three_candidates_show_a_hand_over_and_a_fail_over() {
    let home = TempDir::new().unwrap();
    let mut play = Running::start(&home, "three-candidates", &[]);
    assert!(play.ends().success());
    for words in ["handed over in", "failed over in", "leads under term 3", "planned hand-over: "] {
        assert!(play.said().contains(words), "{}", play.said());
    }
}

#[test]
fn of_the_simple_example_the_second_takes_over_when_the_first_is_stopped() {
    let home = TempDir::new().unwrap();
    let first = Running::start(&home, "simple", &["worker-1"]);
    first.until_said("working under term 1");
    let second = Running::start(&home, "simple", &["worker-2"]);
    second.until_said("worker-2 stands for the election `reports`");
    drop(first);
    second.until_said("working under term 2");
}

#[test]
fn supervised_children_run_and_are_stopped_before_the_program_ends() {
    let home = TempDir::new().unwrap();
    let mut worker = Running::start(&home, "supervise", &["worker-1", "on"]);
    worker.until_said("under term 1: health running, poller running");
    let interrupt = format!("kill -INT {}", worker.child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert!(worker.ends().success());
}
