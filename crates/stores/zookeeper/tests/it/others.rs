//! Elections shared with Curator and kazoo, the originals: one line for all, never two leaders, and each side
//! lists the other's candidates.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::common::{claiming, connect, name, open_for, win};
use tempfile::TempDir;
use tenure::{Leadership, Node};
use tenure_core::{Standing, Term};
use tenure_store::{Claim, EventQuery, Store};
use tenure_testkit::others::{Candidacy, Library};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, HANG, soon, start, until};

const HANDOVERS: usize = 50;
const BASE: &str = "/services";
/// Long enough that no session lapses on a busy machine, theirs neither: one that does stands last in line.
const TTL: Duration = Duration::from_secs(10);
/// A JVM that starts quickly: it lives for seconds.
const HASTE: &str = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1";

/// A candidate of the other library, in a process of its own.
struct Other {
    id: String,
    child: Child,
    orders: ChildStdin,
    said: Receiver<String>,
}

impl Other {
    fn start(library: Library, candidacy: &Candidacy<'_>) -> Self {
        let mut command = library.candidate(candidacy);
        command.env("JDK_JAVA_OPTIONS", HASTE).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The test may be over.
                let _ = tell.send(line);
            }
        });
        Self { id: candidacy.id.to_owned(), child, orders, said }
    }

    fn order(&mut self, word: &str) {
        writeln!(self.orders, "{word}").unwrap();
    }

    /// Says a line that begins with this word; the rest of it.
    #[track_caller]
    fn says(&self, word: &str) -> String {
        let line = self.said.recv_timeout(HANG).unwrap();
        let (said, rest) = line.split_once(' ').unwrap_or((&line, ""));
        assert_eq!(said, word, "{}", self.id);
        rest.to_owned()
    }

    fn lists(&mut self) -> Vec<String> {
        self.order("list");
        self.says("list").split(' ').map(str::to_owned).collect()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of ours.
struct Ours {
    node: Node,
    standing: tokio::task::JoinHandle<Leadership>,
}

fn stand(node: &Node) -> tokio::task::JoinHandle<Leadership> {
    let election = node.election(ELECTION).unwrap();
    tokio::spawn(async move { election.elected().await.unwrap() })
}

enum Candidate {
    Ours(Ours),
    Other(Other),
}

struct Play {
    server: ZooKeeper,
    url: String,
    witness: PathBuf,
    _directory: TempDir,
    /// In the order in which they stood up.
    line: VecDeque<Candidate>,
    terms: Vec<u64>,
}

impl Play {
    async fn new(layout: &str, library: Library) -> Self {
        let server = ZooKeeper::start();
        let directory = TempDir::new().unwrap();
        let (url, witness) =
            (format!("{}{BASE}?layout={layout}", server.url()), directory.path().join("leads"));
        let (line, terms) = (VecDeque::new(), Vec::new());
        let mut play = Self { server, url, witness, _directory: directory, line, terms };
        for number in 0..2 {
            let node = start(Node::builder(format!("ours-{number}")).ttl(TTL), &play.url).await;
            let standing = stand(&node);
            play.line.push_back(Candidate::Ours(Ours { node, standing }));
            play.all_stand().await;
            let (hosts, path, id) =
                (play.server.hosts(), format!("{BASE}/{ELECTION}"), format!("other-{number}"));
            let witness = Some(play.witness.as_path());
            let candidacy = Candidacy { hosts: &hosts, path: &path, id: &id, timeout: TTL, witness };
            let other = Other::start(library, &candidacy);
            play.line.push_back(Candidate::Other(other));
            play.all_stand().await;
        }
        play
    }

    fn store(&self) -> std::sync::Arc<dyn Store> {
        let ours = self.line.iter().find_map(|candidate| match candidate {
            Candidate::Ours(ours) => Some(std::sync::Arc::clone(ours.node.store())),
            Candidate::Other(_) => None,
        });
        ours.expect("one of ours is there")
    }

    /// Waits until as many stand as should.
    async fn all_stand(&self) {
        let store = self.store();
        let election = || tenure_core::ElectionName::new(ELECTION).unwrap();
        until(async || {
            let leads = store.read(election()).await.unwrap().value.holder.is_some();
            let waiting = store.candidates(election()).await.unwrap().value.len();
            usize::from(leads) + waiting == self.line.len()
        })
        .await;
    }

    /// Waits until the first in line leads, and has it hand over.
    async fn hand_over(&mut self) {
        let mut first = self.line.pop_front().unwrap();
        match &mut first {
            Candidate::Ours(ours) => {
                let leadership = soon(&mut ours.standing).await.unwrap();
                self.terms.push(leadership.check().unwrap().number());
                File::create_new(&self.witness).expect("nobody else leads");
                std::fs::remove_file(&self.witness).unwrap();
                soon(leadership.resign()).await.unwrap();
                ours.standing = stand(&ours.node);
            }
            Candidate::Other(other) => {
                other.says("leads");
                other.order("resign");
                other.says("resigned");
                other.order("stand");
            }
        }
        self.line.push_back(first);
        self.all_stand().await;
    }

    /// The same, but the first in line is killed, or falls silent.
    async fn lose_first(&mut self) {
        match self.line.pop_front().unwrap() {
            Candidate::Ours(mut ours) => {
                let leadership = soon(&mut ours.standing).await.unwrap();
                self.terms.push(leadership.check().unwrap().number());
                drop(leadership);
                soon(ours.node.close()).await;
            }
            Candidate::Other(mut other) => {
                other.says("leads");
                other.child.kill().unwrap();
                other.child.wait().unwrap();
                std::fs::remove_file(&self.witness).unwrap();
            }
        }
    }
}

async fn play(layout: &str, library: Library) {
    let mut play = Play::new(layout, library).await;
    let ids = ["other-0", "other-1", "ours-0", "ours-1"];
    let mut listed = match &mut play.line[1] {
        Candidate::Other(other) => other.lists(),
        Candidate::Ours(_) => unreachable!("every second is the other's"),
    };
    listed.sort();
    assert_eq!(listed, ids, "the other side lists ours");
    let election = tenure_core::ElectionName::new(ELECTION).unwrap();
    let mut seen: Vec<String> = play
        .store()
        .candidates(election.clone())
        .await
        .unwrap()
        .value
        .iter()
        .map(|c| c.node.to_string())
        .collect();
    seen.extend(
        play.store().read(election).await.unwrap().value.holder.map(|holder| holder.node.to_string()),
    );
    seen.sort();
    assert_eq!(seen, ids, "and we list theirs");

    for _ in 0..HANDOVERS {
        play.hand_over().await;
    }
    assert!(play.terms.len() >= HANDOVERS / 2 && play.terms.is_sorted_by(|a, b| a < b), "{:?}", play.terms);
    play.lose_first().await; // one of ours leaves
    play.lose_first().await; // one of theirs is killed
    play.all_stand().await;
    for _ in 0..4 {
        play.hand_over().await;
    }
    let findings = play.store().examine().await.unwrap().value;
    let term = findings.iter().find(|finding| finding.name == "term").unwrap();
    assert!(term.value.contains(layout) && term.advice.is_some(), "{term:?}");
    let history = play.store().events(EventQuery::default()).await.unwrap().value;
    assert!(history.iter().all(|event| event.election.is_none()), "there is no room for a history");
}

/// A poll may find that it is first before its watch tells.
#[tokio::test]
async fn a_candidate_that_was_shown_to_be_first_before_it_claims_is_granted_the_lease() {
    const LONG: Duration = Duration::from_secs(3_600);
    let server = ZooKeeper::start();
    let store = connect(&format!("{}{BASE}?layout=kazoo", server.url())).await.unwrap();
    let (leader, next) = (open_for(&store, 1, LONG).await, open_for(&store, 2, LONG).await);
    let first = win(&store, leader).await;
    let claim = async |above: Term, attempt| {
        let claim = Claim { above, attempt, ..claiming(next) };
        soon(store.claim(claim)).await.unwrap().value
    };
    assert!(matches!(claim(first, 1).await, Standing::Waiting { .. }));
    soon(store.close(leader, Default::default())).await.unwrap();
    let shown = soon(store.read(name(ELECTION))).await.unwrap().value;
    assert_eq!(shown.holder.unwrap().pulse.stamp.session, next);
    let above = claim(shown.term.next(), 2).await;
    assert!(matches!(above, Standing::Waiting { .. }), "a higher term was seen: {above:?}");
    assert_eq!(claim(shown.term, 3).await, Standing::Leading { term: shown.term });
}

#[tokio::test(flavor = "multi_thread")]
async fn with_curators_leader_latch() {
    play("curator-latch", Library::CuratorLatch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_curators_leader_selector() {
    play("curator-selector", Library::CuratorSelector).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_kazoos_election() {
    play("kazoo", Library::Kazoo).await;
}
