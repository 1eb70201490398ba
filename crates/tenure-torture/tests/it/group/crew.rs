//! A crew: candidates that are the members of a group, each on a machine of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::raft::{MemberInfo, RaftStore};
use tenure::{Store as _, StoreUrl};
use tenure_store::{EventQuery, EventRecord, clock};
use tenure_testkit::checker::{Leadership, check_leaderships, check_writes};
use tenure_testkit::lan::{Lan, Machine};
use tenure_testkit::patience::{patiently, until};
use tenure_torture::journal::{Event, Journal};
use tenure_torture::{evidence, signals};

use super::ELECTION;

/// How often the member that leads the group shows that it is alive, in these tests.
const HEARTBEAT: &str = "50ms";

/// A ttl that no test waits for, but for the thirtieth of it after which a refused renewal is repeated. Nobody loses its lease
/// on a machine that is busy with other things.
const STEADY: Duration = Duration::from_secs(60);
/// Then renewals are frequent, so that a test can wait for a few of them.
const STEADY_RENEWALS: Duration = Duration::from_millis(200);

pub struct Crew {
    pub lan: Lan,
    ttl: Duration,
    journal: Arc<Journal>,
    /// The living, by the number of their machine.
    members: BTreeMap<usize, (Child, bool)>,
    started: u32,
    directory: TempDir,
}

impl Crew {
    /// Three members, all of them candidates, that have seen one of them lead.
    pub fn of_three(ttl: Duration) -> Self {
        let mut crew = Self::nobody(ttl);
        for machine in 0..3 {
            crew.start(machine);
        }
        crew.leader_above(0);
        (0..3).for_each(|machine| crew.stands(machine));
        crew
    }

    /// The same for tests in which no lease is to lapse.
    pub fn of_steady_three() -> Self {
        Self::of_three(STEADY)
    }

    /// Three machines on which nothing runs, and a fourth for who watches.
    pub fn nobody(ttl: Duration) -> Self {
        let directory = evidence::workplace();
        evidence::make_register(&directory.path().join("register.db"));
        let (journal, members) = (Arc::default(), BTreeMap::new());
        Self { lan: Lan::new(4), ttl, journal, members, started: 0, directory }
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn machine(&self, number: usize) -> &Machine {
        &self.lan.machines()[number]
    }

    pub fn address(&self, number: usize) -> String {
        format!("{}:7101", self.machine(number).address())
    }

    pub fn url(&self) -> String {
        let peers: Vec<String> = (0..3).map(|number| self.address(number)).collect();
        format!("raft://{}?plaintext=true&heartbeat={HEARTBEAT}", peers.join(","))
    }

    // ----- starting and ending ------------------------------------------------------------------

    /// Starts the candidate of a machine, on what its disk has kept.
    pub fn start(&mut self, number: usize) -> u32 {
        self.started += 1;
        let log = |what: &str| self.place(&format!("{}-n{number}.{what}", self.started));
        let data = self.place(&format!("data{number}"));
        let store = format!("{}&data={}&listen={}", self.url(), data.display(), self.address(number));
        let mut command = Command::new(env!("CARGO_BIN_EXE_candidate"));
        command.args(["--store", &store, "--node", &format!("n{number}"), "--election", ELECTION]);
        command.args(["--ttl-ms", &self.ttl.as_millis().to_string()]);
        if self.ttl == STEADY {
            command.args(["--renew-every-ms", &STEADY_RENEWALS.as_millis().to_string()]);
        }
        command.arg("--log").arg(log("log")).arg("--register").arg(self.place("register.db"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log("stderr")).unwrap());
        let mut child = self.machine(number).within(move || command.spawn().unwrap());
        let pid = child.id();
        self.journal.listen(pid, child.stdout.take().unwrap());
        self.members.insert(number, (child, false));
        pid
    }

    pub fn kill(&mut self, number: usize) {
        let (mut child, _) = self.members.remove(&number).unwrap();
        signals::kill(&mut child);
    }

    pub fn stop(&mut self, number: usize) {
        let (child, stopped) = self.members.get_mut(&number).unwrap();
        signals::stop(child);
        *stopped = true;
    }

    pub fn go_on(&mut self, number: usize) {
        let (child, stopped) = self.members.get_mut(&number).unwrap();
        signals::go_on(child);
        *stopped = false;
    }

    pub fn is_stopped(&self, number: usize) -> bool {
        self.members.get(&number).is_some_and(|(_, stopped)| *stopped)
    }

    pub fn lives(&self, number: usize) -> bool {
        self.members.contains_key(&number)
    }

    // ----- watching -----------------------------------------------------------------------------

    pub fn wait<T>(&self, what: &str, find: impl FnMut(&[Event]) -> Option<T>) -> T {
        self.journal.wait(what, find)
    }

    fn stands(&self, number: usize) {
        let pid = self.members[&number].0.id();
        self.wait("it stands", |events| events.iter().any(|event| event.is("stands", pid)).then_some(()));
    }

    /// Waits until somebody has been elected under a term above this one.
    pub fn leader_above(&self, term: u64) -> Leader {
        let elected = self.wait("somebody leads", |events| {
            events
                .iter()
                .filter(|event| event.kind == "elected" && event.term() > term)
                .max_by_key(|event| event.term())
                .cloned()
        });
        Leader {
            machine: elected.node()[1..].parse().unwrap(),
            pid: elected.pid,
            term: elected.term(),
            at: elected.at(),
        }
    }

    /// Waits until a leader has said that it is over, and tells when.
    pub fn lost(&self, leader: &Leader) -> Event {
        self.wait("the leader has lost", |events| {
            let over = |event: &&Event| event.is("lost", leader.pid) && event.term() == leader.term;
            events.iter().find(over).cloned()
        })
    }

    /// Asks the group itself, from the fourth machine.
    pub fn ask<T: Send + 'static>(&self, question: impl AsyncFnOnce(RaftStore) -> T + Send + 'static) -> T {
        let url = StoreUrl::parse(&self.url()).unwrap();
        self.machine(3).within(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime
                .block_on(async { question(patiently(async || RaftStore::connect(&url).await).await).await })
        })
    }

    /// Who belongs to the group, as whoever leads it sees it.
    pub fn members(&self) -> Vec<MemberInfo> {
        self.ask(async |store| patiently(async || store.members().await).await)
    }

    /// The machine of the member that leads the group.
    pub fn head(&self) -> usize {
        let head = self.members().into_iter().find(|member| member.leads).unwrap().address;
        (0..3).find(|&number| self.address(number) == head).unwrap()
    }

    /// Waits until a node has renewed so many times more, by what the group says.
    pub fn renews(&self, number: usize, times: u64) {
        let sequence = || {
            let node = format!("n{number}");
            let nodes = self.ask(async |store| patiently(async || store.nodes().await).await).value;
            let record = nodes
                .iter()
                .find(|record| record.state == tenure::NodeState::Live && record.info.id.as_str() == node);
            record.map(|record| record.pulse.stamp.sequence)
        };
        let before = until("it is registered", sequence);
        until("it renews", || sequence().is_some_and(|now| now >= before + times));
    }

    // ----- the verdict --------------------------------------------------------------------------

    /// Asks for the history, ends everybody, and judges what they left behind.
    pub fn verdict(mut self) -> Vec<Leadership> {
        self.lan.heal();
        let stopped: Vec<usize> = (0..3).filter(|&number| self.is_stopped(number)).collect();
        stopped.into_iter().for_each(|number| self.go_on(number));
        let register = self.place("register.db");
        until("somebody writes", || !evidence::asked_of_register(&register).is_empty());
        // The history is complete up to here. Whoever is elected from now on may be missing: the group keeps its
        // history as long as it runs, and elections go on while it is asked.
        let asked = clock::now().as_nanos();
        let history =
            self.ask(async |store| patiently(async || store.events(EventQuery::default()).await).await);
        self.dismiss();
        let leaderships = evidence::leaderships(self.directory.path());
        let revived = self.journal.all().into_iter().any(|event| event.kind == "revived");
        assert!(!revived, "a check that had failed passed again");
        assert!(!leaderships.is_empty(), "nobody ever led: nothing was tested");
        assert_eq!(check_leaderships(&leaderships), [], "leaderships");
        assert_eq!(check_writes(&evidence::asked_of_register(&register)), [], "the register");
        assert_history(&history.value, leaderships.iter().filter(|led| led.from < asked));
        leaderships
    }

    fn dismiss(&mut self) {
        for (_, (mut child, _)) in std::mem::take(&mut self.members) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The history has no gap, its terms rise, and these leaderships are in it.
fn assert_history<'a>(history: &[EventRecord], leaderships: impl Iterator<Item = &'a Leadership>) {
    let (mut sequence, mut granted) = (0, BTreeMap::new());
    for event in
        history.iter().filter(|event| event.election.as_ref().is_some_and(|name| name.as_str() == ELECTION))
    {
        sequence += 1;
        assert_eq!(event.sequence, sequence, "the history has a gap before {event:?}");
        if event.kind == tenure::EventKind::LeaderElected {
            let term = event.term.number();
            assert!(
                granted.last_key_value().is_none_or(|(&last, _)| term > last),
                "terms do not rise at {event:?}"
            );
            granted.insert(term, event.node.as_ref().unwrap().to_string());
        }
    }
    for led in leaderships {
        assert_eq!(granted.get(&led.term), Some(&led.node), "term {} in the history", led.term);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
        if std::thread::panicking() {
            self.journal.all().iter().for_each(|event| eprintln!("said: {}", event.value));
        }
    }
}

/// Who was elected.
#[derive(Clone, Copy, Debug)]
pub struct Leader {
    pub machine: usize,
    pub pid: u32,
    pub term: u64,
    /// In nanoseconds of the boot clock, which all machines share here.
    pub at: u64,
}
