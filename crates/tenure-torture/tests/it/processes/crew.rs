//! A crew of candidates: processes on one file, watched by what they say, ended with the test.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::sqlite::rusqlite::{Connection, OptionalExtension};
use tenure_store::clock;
use tenure_torture::journal::{Event, Journal, incumbent};
use tenure_torture::{evidence, signals};

use super::floor::Floor;
use super::{ELECTION, HANG};

pub struct Crew {
    floor: Floor,
    journal: Arc<Journal>,
    /// The living, by node.
    members: HashMap<String, Member>,
    elections: Vec<String>,
    ttl: Duration,
    started: u32,
    /// Who was stopped by a test: their pauses are no fault of the machine.
    interrupted: HashSet<u32>,
    directory: TempDir,
}

struct Member {
    child: Child,
    mouthpiece: Option<ChildStdin>,
    stopped: bool,
}

impl Crew {
    pub fn new(ttl: Duration) -> Self {
        Self::of(ttl, &[ELECTION])
    }

    pub fn of(ttl: Duration, elections: &[&str]) -> Self {
        let directory = evidence::workplace();
        // The store has a directory of its own, so that it can be moved with all that belongs to it.
        std::fs::create_dir(directory.path().join("store")).unwrap();
        std::fs::create_dir(directory.path().join("logs")).unwrap();
        evidence::make_register(&directory.path().join("register.db"));
        Self {
            floor: Floor::start(directory.path()),
            journal: Arc::default(),
            members: HashMap::new(),
            elections: elections.iter().map(|&name| name.to_owned()).collect(),
            ttl,
            started: 0,
            interrupted: HashSet::new(),
            directory,
        }
    }

    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn database(&self) -> PathBuf {
        self.place("store/tenure.db")
    }

    /// A connection to the store's file, as a person would have one.
    pub fn look(&self) -> Connection {
        let connection = Connection::open(self.database()).unwrap();
        connection.busy_timeout(HANG).unwrap();
        connection
    }

    // ----- starting and ending ------------------------------------------------------------------

    /// Starts a candidate; what it comes to is to be heard of it.
    pub fn spawn(&mut self, node: &str, flags: &[&str]) -> u32 {
        self.started += 1;
        let log = |what: &str| self.place(&format!("logs/{}-{node}.{what}", self.started));
        let mut command = Command::new(env!("CARGO_BIN_EXE_candidate"));
        command.arg("--store").arg(format!("sqlite:{}", self.database().display()));
        command.args(["--node", node, "--ttl-ms", &self.ttl.as_millis().to_string()]);
        command.arg("--log").arg(log("log")).arg("--register").arg(self.place("register.db"));
        for election in &self.elections {
            command.args(["--election", election]);
        }
        command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(log("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        self.journal.listen(pid, child.stdout.take().unwrap());
        let mouthpiece = child.stdin.take();
        let before = self.members.insert(node.to_owned(), Member { child, mouthpiece, stopped: false });
        // Two at once have one id only where that is the very question; the first one lives on.
        if let Some(before) = before {
            self.members.insert(format!("{node} (first)"), before);
        }
        pid
    }

    /// Starts a candidate, and waits until it stands for every election.
    pub fn start(&mut self, node: &str) -> u32 {
        self.start_with(node, &[])
    }

    pub fn start_with(&mut self, node: &str, flags: &[&str]) -> u32 {
        let pid = self.spawn(node, flags);
        self.stands(pid);
        pid
    }

    /// Waits until a process stands.
    pub fn stands(&self, pid: u32) {
        let expected = self.elections.len();
        self.wait("it stands", |events| {
            let stood = events.iter().filter(|event| event.is("stands", pid)).count();
            (stood >= expected).then_some(())
        });
    }

    pub fn kill(&mut self, node: &str) {
        let mut member = self.members.remove(node).unwrap();
        signals::kill(&mut member.child);
    }

    /// Asks a candidate to close its node, and waits until it has.
    pub fn quit(&mut self, node: &str) {
        let mut member = self.members.remove(node).unwrap();
        drop(member.mouthpiece.take());
        let end = clock::now() + HANG;
        while member.child.try_wait().unwrap().is_none() {
            assert!(clock::now() < end, "{node} does not quit");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    // ----- stopping and going on ----------------------------------------------------------------

    /// Stops a process wherever it is.
    pub fn stop_anywhere(&mut self, node: &str) {
        let member = self.members.get_mut(node).unwrap();
        signals::stop(&member.child);
        member.stopped = true;
        self.interrupted.insert(member.child.id());
    }

    /// Stops a process that is in no transaction: one that stands still inside of it keeps the
    /// file from everybody, which is another test.
    pub fn stop(&mut self, node: &str) {
        let member = self.members.get_mut(node).unwrap();
        tenure_testkit::freeze(member.child.id());
        member.stopped = true;
        self.interrupted.insert(member.child.id());
    }

    pub fn go_on(&mut self, node: &str) {
        let member = self.members.get_mut(node).unwrap();
        signals::go_on(&member.child);
        member.stopped = false;
    }

    pub fn order(&mut self, node: &str, order: &str) {
        let member = self.members.get_mut(node).unwrap();
        writeln!(member.mouthpiece.as_mut().unwrap(), "{order}").unwrap();
    }

    pub fn pid(&self, node: &str) -> u32 {
        self.members[node].child.id()
    }

    pub fn living(&self) -> Vec<String> {
        let mut nodes: Vec<String> = self.members.keys().cloned().collect();
        nodes.sort();
        nodes
    }

    pub fn is_stopped(&self, node: &str) -> bool {
        self.members.get(node).is_some_and(|member| member.stopped)
    }

    // ----- watching -----------------------------------------------------------------------------

    pub fn wait<T>(&self, what: &str, find: impl FnMut(&[Event]) -> Option<T>) -> T {
        self.journal.wait(what, find)
    }

    pub fn said(&self) -> Vec<Event> {
        self.journal.all()
    }

    /// Waits until a process says this.
    pub fn hear(&self, pid: u32, kind: &str) -> Event {
        self.wait(kind, |events| events.iter().rev().find(|event| event.is(kind, pid)).cloned())
    }

    /// Waits for a leader that has not said that it is over, and that we have not ended ourselves.
    pub fn leader(&self) -> Event {
        self.leader_above(0)
    }

    /// The same, with a term above `term`.
    pub fn leader_above(&self, term: u64) -> Event {
        let up: Vec<u32> =
            self.members.values().filter(|member| !member.stopped).map(|member| member.child.id()).collect();
        self.wait("somebody leads", |events| {
            incumbent(events, ELECTION, &up).filter(|event| event.term() > term)
        })
    }

    /// Waits until the file shows what is looked for.
    pub fn until<T>(&self, what: &str, mut find: impl FnMut(&Connection) -> Option<T>) -> T {
        let (file, end) = (self.look(), clock::now() + HANG);
        loop {
            if let Some(found) = find(&file) {
                return found;
            }
            assert!(clock::now() < end, "the file does not show this: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// When a process has renewed last, in nanoseconds of the boot clock.
    pub fn renewed(&self, pid: u32) -> u64 {
        Session::last(&self.look(), pid).renewed
    }

    /// Which process holds the lease by what the file says, and when that has renewed last.
    pub fn holder(&self) -> Option<(u32, u64)> {
        let held = "SELECT s.pid, s.renewed_boot_ns FROM tenure_elections e JOIN tenure_sessions s
                    ON s.id = e.session WHERE e.election = ?1";
        let held = self.look().query_row(held, [ELECTION], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
        held.optional().unwrap().map(|(pid, renewed)| (pid, renewed.cast_unsigned()))
    }

    /// Kills a leader that held the lease until then: one that lost it just before is replaced, and another is
    /// killed. Gives it, and when it had renewed last.
    pub fn kill_the_leader(&mut self) -> (Event, u64) {
        loop {
            let leader = self.settled_leader();
            self.kill(&leader.node());
            match self.holder() {
                Some((pid, renewed)) if pid == leader.pid => return (leader, renewed),
                _ => self.start(&leader.node()),
            };
        }
    }

    /// Waits until a process has renewed so many times more, or has lost its session.
    pub fn renews(&self, pid: u32, times: i64) {
        let before = Session::last(&self.look(), pid);
        self.until("it renews", |file| {
            let now = Session::last(file, pid);
            (now.id != before.id || now.sequence >= before.sequence + times).then_some(())
        });
    }

    /// Waits until the leader has renewed after everybody else had seen the store: from then on, all
    /// know what there is to know of it.
    pub fn settled_leader(&self) -> Event {
        loop {
            let leader = self.leader();
            self.renews(leader.pid, 1);
            if self.leader().term() == leader.term() {
                return leader;
            }
        }
    }

    /// For how long the machine has let something stand still, here or in a candidate.
    fn worst(&mut self) -> Duration {
        for node in self.living() {
            let pid = self.pid(&node);
            let runs = !self.is_stopped(&node) && self.said().iter().any(|event| event.is("stands", pid));
            if runs {
                self.looks(&node);
            }
        }
        let said = self.said();
        let paused = said.iter().filter(|event| event.kind == "paused");
        let paused = paused.filter(|event| !self.interrupted.contains(&event.pid));
        let longest = paused.filter_map(|event| event.value["nanos"].as_u64()).max();
        self.floor.worst().max(Duration::from_nanos(longest.unwrap_or(0)))
    }

    /// Has a candidate look at all that it holds, and waits until it has.
    pub fn looks(&mut self, node: &str) {
        let pid = self.pid(node);
        let pongs = |events: &[Event]| events.iter().filter(|event| event.is("pong", pid)).count();
        let before = pongs(&self.said());
        self.order(node, "ping");
        self.wait("it answers", |events| (pongs(events) > before).then_some(()));
    }

    /// Judges a test in which nothing was to happen: the one leader has led throughout.
    pub fn verdict_of_one_leadership(&mut self, leader: &Event) {
        // No leader outlives a machine that stands still, so then this says nothing.
        let (worst, most) = (self.worst(), self.ttl / 8);
        if worst > most {
            eprintln!("not judged: this machine stood still for {worst:?}");
            self.verdict();
            return;
        }
        assert_eq!(self.leader().term(), leader.term());
        let evidence = self.verdict();
        assert_eq!(evidence.leaderships.len(), 1, "{:?}", evidence.leaderships);
    }

    /// Waits until a node is registered as a candidate.
    pub fn is_registered(&self, node: &str) {
        self.until("it is registered", |file| {
            file.query_row(
                "SELECT 1 FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session
                 WHERE s.state = 'live' AND s.node = ?1 AND c.election = ?2",
                [node, ELECTION],
                |_| Ok(()),
            )
            .optional()
            .unwrap()
        });
    }

    /// Ends everybody, the stopped ones included, so that the evidence is complete.
    pub fn dismiss(&mut self) {
        for (_, mut member) in self.members.drain() {
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// The last session of a process, as the file has it.
struct Session {
    id: String,
    sequence: i64,
    renewed: u64,
}

impl Session {
    fn last(file: &Connection, pid: u32) -> Self {
        file.query_row(
            "SELECT id, sequence, renewed_boot_ns FROM tenure_sessions WHERE pid = ?1
             ORDER BY rowid DESC LIMIT 1",
            [pid],
            |row| {
                let renewed: i64 = row.get(2)?;
                Ok(Self { id: row.get(0)?, sequence: row.get(1)?, renewed: renewed.cast_unsigned() })
            },
        )
        .unwrap()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
        if std::thread::panicking() {
            for event in self.said() {
                eprintln!("said: {}", event.value);
            }
        }
    }
}
