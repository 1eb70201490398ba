//! Over random starts, stops, kills and partitions, every supervised child runs on at most one node.
//!
//! Several nodes share a store. Each incarnation of a node has a runtime of its own, so that it can be
//! killed, and a way to the store of its own, so that it can be cut off. Two judges know nothing of how
//! Tenure works: a register per child that has room for one owner, and the checker of the testkit, which
//! compares when whose checks passed.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Manner, Wrapped, memory, soon, sqlite, start, until_blocking};
use tenure::{Child, ChildSpec, ElectionName, Instant, Mode, Node, Store, Supervise, Supervisor, Term};
use tenure_core::Dice;
use tenure_store::clock;
use tenure_testkit::checker::{Leadership, check_leaderships};
use tenure_testkit::patient::until_available;
use tokio::runtime::Runtime;

const NODES: u64 = 3;
const CHILDREN: [&str; 3] = ["health", "poller", "reporter"];
const TTL: Duration = Duration::from_millis(1500);
/// Wide, so that a machine that is busy with other things has time to drop a task that was aborted.
const MARGIN: Duration = Duration::from_millis(400);
/// What happens to each node, before it is left alone: about six seconds.
const FAULTS: u64 = 4;

/// Who runs a child: node and incarnation, as one number that is never 0.
type Owner = u64;

#[derive(Default)]
struct Register {
    owner: AtomicU64,
    entries: AtomicU64,
}

/// The first and the last passing check of each owner, by child and term.
type Passed = HashMap<(usize, Owner, Term), (Instant, Instant)>;

/// What the children do, and what the judges find.
#[derive(Default)]
struct Book {
    registers: [Register; CHILDREN.len()],
    /// Two owners at once.
    clashes: Mutex<Vec<String>>,
    owners: Mutex<HashSet<Owner>>,
    passed: Mutex<Passed>,
    faults: Mutex<HashMap<&'static str, u64>>,
}

struct Ownership {
    book: Arc<Book>,
    child: usize,
    owner: Owner,
}

impl Book {
    fn enter(self: &Arc<Self>, child: usize, owner: Owner) -> Ownership {
        let register = &self.registers[child];
        register.entries.fetch_add(1, Ordering::Relaxed);
        if let Err(other) = register.owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Acquire) {
            let clash = format!("{} runs at {owner:x} and at {other:x}", CHILDREN[child]);
            self.clashes.lock().unwrap().push(clash);
        }
        self.owners.lock().unwrap().insert(owner);
        Ownership { book: Arc::clone(self), child, owner }
    }

    fn passes(&self, child: usize, owner: Owner, term: Term, before: Instant, after: Instant) {
        let mut passed = self.passed.lock().unwrap();
        let (from, until) = passed.entry((child, owner, term)).or_insert((after, after));
        *until = before.max(*from);
    }

    fn leaderships(&self) -> Vec<Leadership> {
        let passed = self.passed.lock().unwrap();
        let one = |(&(child, owner, term), &(from, until)): (&(usize, Owner, Term), &(Instant, Instant))| {
            Leadership {
                election: String::from(CHILDREN[child]),
                node: format!("node {}", owner >> 32),
                pid: u32::try_from(owner & 0xffff_ffff).unwrap(),
                term: term.number(),
                from: from.as_nanos(),
                until: until.as_nanos(),
            }
        };
        passed.iter().map(one).collect()
    }

    fn fault(&self, name: &'static str) {
        *self.faults.lock().unwrap().entry(name).or_default() += 1;
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let owner = &self.book.registers[self.child].owner;
        let _ = owner.compare_exchange(self.owner, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A child that works by its check, obeys or does not, and fails now and then.
async fn work(book: Arc<Book>, index: usize, owner: Owner, child: Child) -> Result<(), &'static str> {
    let _ownership = book.enter(index, owner);
    let entries = book.registers[index].entries.load(Ordering::Relaxed);
    let mut dice = Dice::new(owner << 16 ^ entries << 2 ^ index as u64);
    let deaf = dice.below(4) == 0;
    loop {
        let before = clock::now();
        match child.check() {
            Ok(term) => book.passes(index, owner, term, before, clock::now()),
            Err(_) if deaf => std::future::pending().await,
            Err(_) => return Err("leads no longer"),
        }
        match dice.below(1000) {
            0 => return Err("told by the dice to fail"),
            1 => return Ok(()),
            2..50 => std::thread::sleep(Duration::from_millis(40)), // busy: cannot be aborted meanwhile
            _ => {}
        }
        let pause = tokio::time::sleep(Duration::from_millis(1 + dice.below(4)));
        tokio::select! {
            () = child.told_to_stop(), if !deaf => return Ok(()),
            () = pause => {}
        }
    }
}

fn children(mut supervise: Supervise, book: &Arc<Book>, owner: Owner) -> Supervise {
    for (index, name) in CHILDREN.into_iter().enumerate() {
        let book = Arc::clone(book);
        let child = ChildSpec::new(name, move |child| work(Arc::clone(&book), index, owner, child));
        supervise = supervise.with(child.stop_within(TTL / 2));
    }
    supervise
        .restarts(4, Duration::from_secs(1))
        .back_off(Duration::from_millis(1), Duration::from_millis(20))
}

/// One life of one node.
struct Incarnation {
    runtime: Runtime,
    wrapped: Arc<Wrapped>,
    node: Node,
    supervisor: Supervisor,
    owner: Owner,
}

impl Incarnation {
    fn begin(cluster: &Cluster, index: u64, number: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(CHILDREN.len())
            .enable_all()
            .build()
            .unwrap();
        let owner = (index + 1) << 32 | number;
        let (wrapped, node, supervisor) = runtime.block_on(async {
            let wrapped = Wrapped::new(cluster.connect().await);
            let builder = Node::builder(format!("node-{index}")).ttl(TTL).stop_margin(MARGIN);
            let node = start(builder.grace(MARGIN), &wrapped.store()).await;
            let supervisor = supervise(cluster, &node, owner);
            (wrapped, node, supervisor)
        });
        Self { runtime, wrapped, node, supervisor, owner }
    }

    /// As if the process were gone: nothing that it says reaches the store any more.
    fn kill(self) {
        self.wrapped.set_all(&Manner::Hangs);
        self.runtime.shutdown_background();
    }

    fn cut_off(&self, cluster: &Cluster, dice: &mut Dice) {
        let (name, manner) = match dice.below(3) {
            0 => ("requests lost", Manner::Hangs),
            1 => ("replies lost", Manner::LosesReplies),
            _ => ("refused", Manner::Refuses),
        };
        cluster.book.fault(name);
        self.wrapped.set_all(&manner);
        nap(dice, 2 * TTL);
        self.wrapped.set_all(&Manner::Dutiful);
    }
}

fn supervise(cluster: &Cluster, node: &Node, owner: Owner) -> Supervisor {
    let supervise = node.election("coordinator").unwrap().supervise().pause(Duration::from_millis(100));
    children(supervise, &cluster.book, owner).start().unwrap()
}

struct Cluster {
    seed: u64,
    book: Arc<Book>,
    memory: Arc<dyn Store>,
    file: Option<tempfile::TempDir>,
}

impl Cluster {
    async fn connect(&self) -> Arc<dyn Store> {
        match &self.file {
            Some(directory) => sqlite(directory).await,
            None => Arc::clone(&self.memory),
        }
    }
}

fn nap(dice: &mut Dice, longest: Duration) {
    std::thread::sleep(Duration::from_millis(dice.below(u64::try_from(longest.as_millis()).unwrap())));
}

/// The fate of one node: whatever the dice say, and then it lives.
fn live(cluster: &Cluster, index: u64) -> Incarnation {
    let mut dice = Dice::new(cluster.seed << 8 | index);
    let book = &cluster.book;
    let mut number = 1;
    let mut life = Incarnation::begin(cluster, index, number);
    for _ in 0..FAULTS {
        nap(&mut dice, TTL);
        let again = match dice.below(9) {
            0 => {
                book.fault("stopped");
                let _ = life.runtime.block_on(soon(life.supervisor.stop()));
                let _runtime = life.runtime.enter();
                life.supervisor = supervise(cluster, &life.node, life.owner);
                false
            }
            1 => {
                book.fault("closed");
                life.runtime.block_on(soon(life.node.close()));
                true
            }
            2 => {
                book.fault("asked");
                let store = life.runtime.block_on(cluster.connect());
                let coordinator = ElectionName::new("coordinator").unwrap();
                let asked = until_available(async || store.petition(coordinator.clone(), None).await);
                life.runtime.block_on(asked).unwrap();
                false
            }
            3 => {
                book.fault("driver died");
                life.wrapped.set("renew", Manner::Panics);
                nap(&mut dice, TTL);
                true
            }
            4 => {
                life.cut_off(cluster, &mut dice);
                book.fault("killed");
                number += 1;
                life.kill();
                life = Incarnation::begin(cluster, index, number);
                false
            }
            5 => {
                book.fault("dropped");
                true
            }
            _ => {
                life.cut_off(cluster, &mut dice);
                false
            }
        };
        if again {
            number += 1;
            drop(life); // its runtime waits for what is left of it
            life = Incarnation::begin(cluster, index, number);
        }
    }
    life
}

fn torment(seed: u64) -> Arc<Book> {
    let file = (seed % 4 == 3).then(|| tempfile::tempdir().unwrap());
    let cluster = Cluster { seed, book: Arc::default(), memory: memory(), file };
    std::thread::scope(|scope| {
        let cluster = &cluster;
        let nodes: Vec<_> = (0..NODES).map(|index| scope.spawn(move || live(cluster, index))).collect();
        let lives: Vec<Incarnation> = nodes.into_iter().map(|node| node.join().unwrap()).collect();
        // The trouble is over: somebody runs everything, and it is one node.
        let book = &cluster.book;
        until_blocking(|| book.registers.iter().all(|child| child.owner.load(Ordering::Acquire) != 0));
        for life in lives {
            life.runtime.block_on(soon(life.node.close()));
        }
        for (child, register) in CHILDREN.iter().zip(&book.registers) {
            assert_eq!(register.owner.load(Ordering::Acquire), 0, "{child} outlives its node");
        }
    });
    cluster.book
}

#[test]
fn every_child_runs_on_at_most_one_node_whatever_happens() {
    let still = Standstill::measure();
    let base = std::env::var("TENURE_TEST_SEED").map_or(0, |seed| seed.parse().unwrap()); // for long runs
    let books: Vec<(u64, Arc<Book>)> = std::thread::scope(|scope| {
        let clusters: Vec<_> =
            (base..base + 4).map(|seed| (seed, scope.spawn(move || torment(seed)))).collect();
        clusters.into_iter().map(|(seed, cluster)| (seed, cluster.join().unwrap())).collect()
    });
    // What was aborted is gone within its margin, unless the machine lets it stand still. Checks hold all the same.
    let stood_still = still.longest();
    let (mut faults, mut owners) = (HashMap::new(), 0);
    for (seed, book) in &books {
        let clashes = book.clashes.lock().unwrap();
        if stood_still < MARGIN / 4 {
            assert_eq!(*clashes, [""; 0], "seed {seed}");
        } else {
            println!("not judged: this machine stood still for {stood_still:?}; {clashes:?}");
        }
        assert_eq!(check_leaderships(&book.leaderships()), [], "seed {seed}");
        owners += book.owners.lock().unwrap().len();
        for register in &book.registers {
            assert!(register.entries.load(Ordering::Relaxed) > 1, "seed {seed}");
        }
        for (name, count) in &*book.faults.lock().unwrap() {
            *faults.entry(*name).or_insert(0) += count;
        }
    }
    println!("{owners} owners, {faults:?}");
    assert!(owners > books.len(), "the work never moved: too little to show anything");
    assert!(faults.values().sum::<u64>() >= NODES * FAULTS * 4, "{faults:?}");
}

/// For how long this machine lets a thread stand still that wants to run.
struct Standstill {
    over: Arc<AtomicBool>,
    measuring: std::thread::JoinHandle<Duration>,
}

impl Standstill {
    fn measure() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let measuring = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !ended.load(Ordering::Acquire) {
                let before = clock::now();
                std::thread::sleep(Duration::from_millis(1));
                longest = longest.max(clock::now().since(before));
            }
            longest
        });
        Self { over, measuring }
    }

    fn longest(self) -> Duration {
        self.over.store(true, Ordering::Release);
        self.measuring.join().unwrap()
    }
}

/// The judges are worth something: nodes that nobody elects do run a child twice, and both see it.
#[test]
fn the_judges_find_two_nodes_when_there_are_two() {
    let book = Arc::new(Book::default());
    let runtime = Runtime::new().unwrap();
    let _runtime = runtime.enter();
    let chosen = || tenure::supervise().mode(Mode::Off).chosen(true);
    let _both = [1, 2].map(|node| children(chosen(), &book, node << 32 | 1).start().unwrap());
    until_blocking(|| !book.clashes.lock().unwrap().is_empty());
    until_blocking(|| !check_leaderships(&book.leaderships()).is_empty());
}
