//! `cargo xtask torture --store S`: nodes of a library on a real store, with everything done to them that
//! docs/safety.md names, and judged by the checker.
//!
//! | file | what it is |
//! |---|---|
//! | `cast` | who takes part: five nodes that do everything, or coordinators and workers |
//! | `place` | the store, the way of each node to it, and what can be done to it |
//! | `crew` | the nodes: they lead, write under their term, and work on partitions |
//! | `faults` | what is done to them and to the store, in random order and overlap |
//! | `vitals` | what they take of memory and descriptors |
//! | `verdict` | whether a promise was broken |
//!
//! Left out on purpose: records edited by hand (A3) and the promotion of a replica, which have tests of their own.

mod cast;
mod crew;
mod faults;
pub mod place;
mod verdict;
pub mod vitals;

use std::collections::BTreeMap;
use std::time::Duration;

use tenure::{PartitionState, TaskList, TaskLists};
use tenure_core::Dice;
use tenure_store::{EventQuery, EventRecord, clock};
use tenure_testkit::patience::{HANG, patiently};
use tenure_torture::evidence;
use tokio::runtime::Runtime;

use cast::TASK_LIST;
use crew::Crew;
use faults::Faults;
use place::Place;
use verdict::{Broken, Verdict};

pub use cast::Cast;
pub use place::Kind;

use crate::Outcome;

/// When the faults are over, somebody must lead within so many of the longest ttl: whoever holds the lease may have
/// been paused for good just now, and whoever is next may have to wait for its own former session first.
const LEADS_WITHIN: u32 = 3;
/// And every partition must have an owner within so many: a coordinator, one who is expected back, and an unsteady
/// node.
const OWNED_WITHIN: u32 = 30;
/// The faults are over at the end, and for a while after so long.
const ROUND: Duration = Duration::from_secs(120);

pub struct Asked {
    pub kind: Kind,
    pub cast: Cast,
    pub length: Duration,
    /// So many things are done instead, and then it is not judged how long anything took.
    pub steps: Option<u64>,
    pub seed: u64,
    /// A planted mistake, to see that the judge finds out.
    pub blind: bool,
    /// How to ask for the same again.
    pub again: String,
}

/// What this binary is if it was started as a part of the torture.
pub fn part(words: &[String]) -> Option<Outcome<()>> {
    match words.first()?.as_str() {
        place::LOCK_WORD => Some(place::hold_lock(&words[1..])),
        place::MEMBER_WORD => Some(place::be_a_member(&words[1..])),
        _ => None,
    }
}

/// Whether every promise was kept.
pub fn torture(asked: &Asked) -> Outcome<bool> {
    let mut dice = Dice::new(asked.seed);
    let mut crew = Crew::assemble(asked.cast.clone(), asked.blind)?;
    let clock = dice.below(2) == 0 || !crew.cast.blows;
    let mut place = Place::new(asked.kind, crew.members.len(), crew.directory(), clock)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(divide(&place.direct(), crew.cast.partitions));
    let (store, cast, seconds) = (asked.kind.name(), crew.cast.told(), asked.length.as_secs());
    let extent = asked.steps.map_or_else(|| format!("{seconds} s"), |steps| format!("{steps} steps"));
    println!("torture on {store}: {cast}, {extent}, seed {}", asked.seed);
    let mut faults = Faults::new(dice);
    let mut history = Vec::new();
    let mut calm = vec![await_calm(&mut crew, &place, &runtime)?];
    let (end, mut steps) = (clock::now() + asked.length, asked.steps);
    while clock::now() < end && steps != Some(0) && !(asked.blind && is_found_out(&crew)) {
        let left = end.since(clock::now());
        suffer(&mut crew, &mut place, &mut faults, left.min(ROUND), &mut steps)?;
        calm.push(await_calm(&mut crew, &place, &runtime)?);
        runtime.block_on(read_on(&place.direct(), &mut history));
        if let Some(Calm { led, owned, .. }) = calm.last() {
            let (total, left) = (faults.total(), end.since(clock::now()).as_secs());
            let (led, owned) = (told_time(*led), told_time(*owned));
            println!(
                "  {total} faults; calm: a leader after {led}, every owner after {owned}; {left} s left"
            );
        }
    }
    change_hands(&mut crew, &place)?;
    let growth = crew.growth();
    crew.dismiss()?;
    runtime.block_on(read_on(&place.direct(), &mut history));
    let mut verdict = Verdict::over(&crew, &history);
    verdict.broken.extend(calm.iter().flat_map(|calm| calm.broken(&crew.cast, asked.steps.is_none())));
    println!("\nfaults           {}", faults.total());
    for (name, count) in &faults.tally {
        println!("  {count:>5}  {name}");
    }
    verdict.tell(&faults.story, crew.cast.longest() * LEADS_WITHIN);
    let worst = |time: fn(&Calm) -> Option<Duration>| {
        told_time(calm.iter().map(time).max_by_key(|time| time.unwrap_or(Duration::MAX)).flatten())
    };
    let (led, owned) = (worst(|calm| calm.led), worst(|calm| calm.owned));
    println!(
        "calm             a leader after {led}, every partition owned after {owned}, at worst of {}",
        calm.len()
    );
    println!("growth           {growth}");
    println!("violations       {}", verdict.broken.len());
    if verdict.broken.is_empty() {
        return Ok(true);
    }
    verdict.accuse(&faults.story);
    println!("\nwhat was logged stays in {}", crew.keep().display());
    println!("again: {}", asked.again);
    Ok(false)
}

/// Faults for so long, or so many steps; then everything that goes on is ended.
fn suffer(
    crew: &mut Crew,
    place: &mut Place,
    faults: &mut Faults,
    length: Duration,
    steps: &mut Option<u64>,
) -> Outcome<()> {
    let end = clock::now() + length;
    if !crew.cast.blows {
        faults.begin_to_roll();
    }
    while clock::now() < end && *steps != Some(0) && !(crew.is_blind() && is_found_out(crew)) {
        std::thread::sleep(faults.pause(crew));
        crew.mend(place)?;
        faults.go_on(crew, place)?;
        if let Some(left) = steps {
            *left -= 1;
        }
    }
    faults.end(crew, place)
}

/// Whether somebody who does not ask its check has been succeeded while it ran, and has noted so: then there is
/// something to be found.
fn is_found_out(crew: &Crew) -> bool {
    let mut last: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for write in evidence::asked_of_register(&crew.register()) {
        let of_ours = write.election.contains('/') || crew.cast.blows;
        let before = last.insert(write.election, (write.pid, write.term));
        if let Some((pid, term)) = before.filter(|_| of_ours)
            && pid != write.pid
            && term < write.term
            && crew.looks(pid)
        {
            return true;
        }
    }
    false
}

/// Has the leader resign: then there were two of them, however little was done before.
fn change_hands(crew: &mut Crew, place: &Place) -> Outcome<()> {
    let Some(before) = crew.leader() else { return Ok(()) };
    let election = crew.cast.election;
    crew.order_leader(&[&format!("resign {election}"), &format!("stand {election}")]);
    let end = clock::now() + HANG;
    while crew.leader().is_none_or(|leader| leader.term() <= before.term()) && clock::now() < end {
        crew.mend(place)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// How long it took, when nothing was done any more; nothing if it took too long by far.
struct Calm {
    since: u64,
    led: Option<Duration>,
    owned: Option<Duration>,
}

impl Calm {
    /// What took too long, or only what took too long by far.
    fn broken(&self, cast: &Cast, timed: bool) -> Vec<Broken> {
        let promised = [
            ("somebody leads", self.led, LEADS_WITHIN),
            ("every partition is owned", self.owned, OWNED_WITHIN),
        ];
        let bounds = promised.map(|(what, took, ttls)| (what, took, cast.longest() * ttls));
        let late =
            bounds.into_iter().filter(|(_, took, bound)| took.is_none_or(|took| timed && took > *bound));
        late.map(|(what, _, bound)| Broken {
            at: Some(self.since),
            of: Some(cast.election.to_owned()),
            what: format!("not within {bound:?}: {what}"),
        })
        .collect()
    }
}

fn await_calm(crew: &mut Crew, place: &Place, runtime: &Runtime) -> Outcome<Calm> {
    crew.mend(place)?;
    let since = clock::now().as_nanos();
    Ok(Calm { since, led: await_leader(crew, place)?, owned: await_owners(crew, place, runtime)? })
}

fn told_time(took: Option<Duration>) -> String {
    took.map_or_else(|| String::from("too long"), |took| format!("{} ms", took.as_millis()))
}

async fn divide(url: &str, partitions: u32) {
    patiently(async || {
        let store = tenure::connect(url).await.map_err(|error| error.to_string())?;
        let lists = TaskLists::new(store).map_err(|error| error.to_string())?;
        lists.create(TASK_LIST, TaskList::new(partitions)).await.map_err(|error| error.to_string())
    })
    .await;
}

/// Reads what was recorded since: a store keeps only so much.
async fn read_on(url: &str, history: &mut Vec<EventRecord>) {
    let after = history.last().map_or(0, |event| event.id);
    let more = patiently(async || {
        let store = tenure::connect(url).await.map_err(|error| error.to_string())?;
        let query = EventQuery { after, ..EventQuery::default() };
        store.events(query).await.map_err(|error| error.to_string())
    });
    history.extend(more.await.value);
}

/// How long it takes until somebody leads; nothing if that takes too long by far.
fn await_leader(crew: &mut Crew, place: &Place) -> Outcome<Option<Duration>> {
    let begun = clock::now();
    while crew.leader().is_none() {
        if clock::now().since(begun) > crew.cast.longest() * OWNED_WITHIN {
            return Ok(None);
        }
        crew.mend(place)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(Some(clock::now().since(begun)))
}

/// How long it takes until every partition has an owner.
fn await_owners(crew: &mut Crew, place: &Place, runtime: &Runtime) -> Outcome<Option<Duration>> {
    let begun = clock::now();
    let store = runtime.block_on(patiently(async || tenure::connect(&place.direct()).await));
    let lists = TaskLists::new(store)?;
    while clock::now().since(begun) <= crew.cast.longest() * OWNED_WITHIN {
        // It may still be getting up.
        if let Ok(owners) = runtime.block_on(lists.owners())
            && owners.len() >= crew.cast.partitions as usize
            && owners.iter().all(|owner| owner.state == PartitionState::Owned)
        {
            return Ok(Some(clock::now().since(begun)));
        }
        crew.mend(place)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}
