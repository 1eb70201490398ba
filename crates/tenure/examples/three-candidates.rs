//! Three processes stand for one election; watch leadership move from one to the next.
//!
//! `cargo run --example three-candidates`

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tenure::{Election, EventKind, EventQuery, Leadership, Node, Store};
use tenure_store::clock;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
Three processes on this machine stand for the election `demo`, in a SQLite file in a temporary
directory. The leader is asked to hand over, then a leader is killed with kill -9, and the time
until the next one leads is measured both times. Nothing is left behind.

usage: cargo run --example three-candidates [--help]";
const ELECTION: &str = "demo";
const NAMES: [&str; 3] = ["anna", "ben", "clara"];
const TTL: Duration = Duration::from_secs(3);
const WORK: Duration = Duration::from_millis(2500);
/// Far beyond everything that is promised: reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] => show(),
        ["candidate", name, path] => stand(name, path),
        ["-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("three-candidates: {error}");
            ExitCode::FAILURE
        }
    }
}

// ----- a candidate: one process ---------------------------------------------------------------

/// Stands until stdin is closed, which also happens when the parent dies. `resign` on stdin hands
/// leadership over; then it stands again.
#[tokio::main(flavor = "current_thread")]
async fn stand(name: &str, path: &str) -> Outcome<()> {
    let store = tenure::connect(format!("sqlite:{path}")).await?;
    // More often than by default, so that so short a lease is kept on a machine that is busy with other things.
    let node = Node::builder(name).ttl(TTL).renew_every(TTL / 10).start(store).await?;
    let election = node.election(ELECTION)?;
    say(name, "stands");
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    // A thread of its own: reading a pipe cannot be cancelled, so nothing may wait for it.
    std::thread::spawn(move || {
        for _line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = tell.blocking_send(());
        }
    });
    loop {
        tokio::select! {
            leadership = election.elected() => {
                if !work(name, &election, leadership?, &mut told).await {
                    break;
                }
            }
            asked = told.recv() => if asked.is_none() { break },
        }
    }
    node.close().await;
    Ok(())
}

/// Leads until told otherwise. False if that is the end.
async fn work(
    name: &str,
    election: &Election,
    leadership: Leadership,
    told: &mut tokio::sync::mpsc::Receiver<()>,
) -> bool {
    say(name, &format!("leads {}", leadership.term()));
    let go_on = tokio::select! {
        asked = told.recv() => asked.is_some(),
        _ = leadership.lost() => true,
    };
    // Nothing is at work any more here, so the lease may go to the next in line; without a name,
    // whoever comes first would have it, and that may be this process again.
    let next = election.candidates().await.ok().and_then(|standing| standing.into_iter().next());
    let resigned = match next {
        Some(next) => leadership.transfer(next.node).await.is_ok(),
        None => leadership.resign().await.is_ok(),
    };
    if resigned {
        say(name, &format!("resigned {}", leadership.term()));
    }
    go_on
}

/// A line for the parent. If that is gone, so is the reason to speak.
fn say(name: &str, what: &str) {
    let _ = writeln!(std::io::stdout(), "{name} {what}");
}

// ----- the parent: tells the story -------------------------------------------------------------

/// What a candidate said, and when that was read.
struct Said {
    name: String,
    what: String,
    at: tenure_core::Instant,
}

struct Play {
    path: PathBuf,
    candidates: BTreeMap<&'static str, (Child, ChildStdin)>,
    tell: Sender<Said>,
    told: Receiver<Said>,
    start: tenure_core::Instant,
}

fn show() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    clean_up_on_interrupt(directory.path().to_owned())?;
    let (tell, told) = channel();
    let path = directory.path().join("tenure.db");
    let mut play = Play { path, candidates: BTreeMap::new(), tell, told, start: clock::now() };
    println!(
        "three processes stand for the election `{ELECTION}`; a session lives {TTL:?} without renewal\n"
    );
    for name in NAMES {
        play.launch(name)?;
    }
    let (first, _) = play.next_leader()?;
    play.listen_for(WORK)?;

    play.log(&first, "is asked to hand over");
    let asked = clock::now();
    play.candidate(&first)?.1.write_all(b"resign\n")?;
    let (second, at) = play.next_leader()?;
    let handed_over = at.since(asked);
    play.log("", &format!("→ handed over in {}", milliseconds(handed_over)));
    play.listen_for(WORK)?;

    play.log(&second, "is killed with kill -9");
    let killed = clock::now();
    let name = play.kill(&second)?;
    let (third, at) = play.next_leader()?;
    let failed_over = at.since(killed);
    play.log("", &format!("→ failed over in {}: {}", milliseconds(failed_over), against_ttl(failed_over)));

    play.log(name, "is started again");
    play.launch(name)?;
    play.wait_for(name, "stands")?;
    play.listen_for(WORK)?;
    play.end(&third)?;
    summary(&play.path)?;
    let (planned, crash) = (milliseconds(handed_over), milliseconds(failed_over));
    println!(
        "\nplanned hand-over: {planned}; fail-over after a crash: {crash}, {}",
        against_ttl(failed_over)
    );
    Ok(())
}

/// On Ctrl-C, nothing is left behind either. The candidates notice that their stdin is closed.
fn clean_up_on_interrupt(directory: PathBuf) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            let _ = std::fs::remove_dir_all(directory);
            std::process::exit(130);
        }
    });
    Ok(())
}

impl Play {
    fn launch(&mut self, name: &'static str) -> Outcome<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("candidate")
            .arg(name)
            .arg(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a candidate has no pipes".into());
        };
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let (name, what) = line.split_once(' ').unwrap_or((&line, ""));
                let said = Said { name: name.to_owned(), what: what.to_owned(), at: clock::now() };
                let _ = tell.send(said);
            }
        });
        self.candidates.insert(name, (child, stdin));
        Ok(())
    }

    fn candidate(&mut self, name: &str) -> Outcome<&mut (Child, ChildStdin)> {
        Ok(self.candidates.get_mut(name).ok_or_else(|| format!("there is no candidate {name}"))?)
    }

    fn kill(&mut self, name: &str) -> Outcome<&'static str> {
        let (name, (mut child, _stdin)) =
            self.candidates.remove_entry(name).ok_or_else(|| format!("there is no candidate {name}"))?;
        child.kill()?;
        child.wait()?;
        Ok(name)
    }

    /// Closes every stdin, which is the sign to leave, and waits; the leader goes last.
    fn end(&mut self, leader: &str) -> Outcome<()> {
        let (last, first): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.candidates).into_iter().partition(|(name, _)| *name == leader);
        for (name, (mut child, stdin)) in first.into_iter().chain(last) {
            drop(stdin);
            let status = child.wait()?;
            self.listen_for(Duration::ZERO)?;
            self.log(name, if status.success() { "leaves" } else { "failed" });
        }
        Ok(())
    }

    fn log(&self, name: &str, what: &str) {
        self.log_at(clock::now(), name, what);
    }

    fn log_at(&self, at: tenure_core::Instant, name: &str, what: &str) {
        println!("{:>7.3} s   {name:<6} {what}", at.since(self.start).as_secs_f64());
    }

    /// Shows what candidates say until one says that it leads; who, and when.
    fn next_leader(&mut self) -> Outcome<(String, tenure_core::Instant)> {
        loop {
            let said = self.told.recv_timeout(PATIENCE)?;
            self.show(&said);
            if said.what.starts_with("leads") {
                return Ok((said.name, said.at));
            }
        }
    }

    fn wait_for(&mut self, name: &str, what: &str) -> Outcome<()> {
        loop {
            let said = self.told.recv_timeout(PATIENCE)?;
            self.show(&said);
            if said.name == name && said.what == what {
                return Ok(());
            }
        }
    }

    /// Shows what candidates say for a while.
    fn listen_for(&mut self, while_: Duration) -> Outcome<()> {
        let end = clock::now() + while_;
        loop {
            match self.told.recv_timeout(end.since(clock::now())) {
                Ok(said) => self.show(&said),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn show(&self, said: &Said) {
        let what = match said.what.split_once(' ') {
            Some(("leads", term)) => format!("leads under term {term}"),
            Some(("resigned", term)) => format!("has resigned term {term}"),
            _ => said.what.clone(),
        };
        self.log_at(said.at, &said.name, &what);
    }
}

/// What is promised: what was left of the session's life, and two round trips to the store.
fn against_ttl(failed_over: Duration) -> String {
    match failed_over.checked_sub(TTL) {
        None | Some(Duration::ZERO) => format!("within the ttl of {TTL:?}"),
        Some(more) => format!("the whole ttl of {TTL:?} and {} for the claim", milliseconds(more)),
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// The election's history, as the store recorded it.
#[tokio::main(flavor = "current_thread")]
async fn summary(path: &Path) -> Outcome<()> {
    let store = tenure::connect(format!("sqlite:{}", path.display())).await?;
    println!("\nthe history of `{ELECTION}`, as the store has it:\n");
    for event in history(&*store).await? {
        let node = event.node.as_ref().map_or("", |node| node.as_str());
        println!("   term {:<3} {:<18} {node}", event.term, event.kind);
    }
    Ok(())
}

async fn history(store: &dyn Store) -> Outcome<Vec<tenure::EventRecord>> {
    let query = EventQuery { election: Some(ELECTION.try_into()?), ..EventQuery::default() };
    let mut events = store.events(query).await?.value;
    events.retain(|event| event.kind != EventKind::LeaderChanged);
    Ok(events)
}
