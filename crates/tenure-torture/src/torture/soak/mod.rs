//! `cargo xtask torture --soak`: three `tenure node` for an hour under the worst conditions that a leader has to
//! bear, and three hundred who listen to them.
//!
//! | file | what it is |
//! |---|---|
//! | `weather` | the network: late, deaf and closed, but never for longer than a lease can bear |
//! | `nodes` | the nodes, and a small disk for what they say, which fills up half-way |
//! | `streams` | who listens to their events, and what each has missed |

mod nodes;
mod streams;
mod weather;

use std::time::Duration;

use tenure::EventKind;
use tenure_core::Dice;
use tenure_store::{EventQuery, EventRecord, clock};
use tenure_testkit::patience::{patiently, until};

use crate::Outcome;
use crate::stores::Kind;
use crate::stores::place::Place;
use nodes::Nodes;
use streams::Streams;
use weather::Weather;

/// What is usual.
pub const TTL: Duration = Duration::from_secs(10);
const NODES: usize = 3;
const STREAMS: usize = 300;
/// Nine for the nodes, three for a visitor, and little to spare for those that are lost and not yet given up.
const CONNECTIONS: u32 = 16;
/// So often somebody else comes and goes, so that there is something to listen to.
const VISITS: Duration = Duration::from_secs(5);
/// At most so often another may lead.
const CHANGES: usize = 2;
/// At most so much more memory, or descriptors, after the warm-up.
const GROWTH: f64 = 0.1;

pub struct Asked {
    pub kind: Kind,
    pub length: Duration,
    pub seed: u64,
    /// How to ask for the same again.
    pub again: String,
}

/// Whether it was borne.
pub fn soak(asked: &Asked) -> Outcome<bool> {
    let mut dice = Dice::new(asked.seed);
    let directory = tenure_torture::evidence::workplace();
    let mut place = Place::new(asked.kind, NODES, &directory, true)?;
    if (0..NODES).any(|node| place.ways(node).is_empty()) {
        return Err(format!("there is no network before {}", asked.kind.name()).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let url = place.direct();
    runtime.block_on(patiently(async || tenure::connect(&url).await));
    place.allow_few_connections(CONNECTIONS)?;
    println!(
        "soak on {}: {NODES} nodes, ttl {TTL:?}, {STREAMS} event streams, {} s, seed {}",
        asked.kind.name(),
        asked.length.as_secs(),
        asked.seed
    );
    let mut nodes = Nodes::start(&place, directory.path(), asked.length)?;
    until("everybody serves", || nodes.all_serve());
    let streams = Streams::open(&runtime, &nodes.addresses(), STREAMS);
    runtime.spawn(visit(url.clone()));
    let weather = endure(asked.length, &mut nodes, &place, &mut dice)?;
    let history = runtime.block_on(history(&url));
    let heard = streams.close(&runtime, &history);
    let elections = history.iter().filter(|event| event.kind == EventKind::LeaderElected).count();

    let mut broken = nodes.grown(GROWTH);
    broken.extend(nodes.ended()?);
    let changes = elections.saturating_sub(1);
    if elections == 0 || changes > CHANGES {
        broken.push(format!("{elections} elections: at most {CHANGES} leader changes are allowed"));
    }
    if heard.missed > 0 || heard.events == 0 {
        broken.push(format!("{} events were missed of {}", heard.missed, heard.events + heard.missed));
    }
    weather.tell();
    println!("leader changes   {changes}");
    println!(
        "event streams    {} events heard, {} missed, {} streams opened again",
        heard.events, heard.missed, heard.broken
    );
    for growth in nodes.growth() {
        println!("growth           {growth}");
    }
    println!("violations       {}", broken.len());
    broken.iter().for_each(|what| println!("\nVIOLATION {what}"));
    if !broken.is_empty() {
        println!("\nagain: {}", asked.again);
    }
    drop(nodes); // before their store
    Ok(broken.is_empty())
}

/// The whole time; half-way the disk for logs is full, and stays so.
fn endure(length: Duration, nodes: &mut Nodes, place: &Place, dice: &mut Dice) -> Outcome<Weather> {
    let (begun, mut told) = (clock::now(), clock::now());
    let mut weather = Weather::new(NODES);
    while clock::now().since(begun) < length {
        std::thread::sleep(Duration::from_millis(50));
        weather.change(place, dice);
        nodes.feel();
        if clock::now().since(begun) > length / 2 {
            nodes.fill_the_disk();
        }
        if clock::now().since(told) >= Duration::from_secs(60) {
            told = clock::now();
            println!(
                "  {:>4} s left; {}",
                length.saturating_sub(told.since(begun)).as_secs(),
                nodes.growth().join("; ")
            );
        }
    }
    weather.end(place);
    Ok(weather)
}

/// Somebody comes and goes.
async fn visit(url: String) {
    loop {
        // There may be no connection to be had: then another time.
        if let Ok(store) = tenure::connect(&url).await
            && let Ok(node) = tenure::Node::builder("visitor").ttl(TTL).start(store).await
        {
            node.close().await;
        }
        tokio::time::sleep(VISITS).await;
    }
}

async fn history(url: &str) -> Vec<EventRecord> {
    patiently(async || {
        let store = tenure::connect(url).await.map_err(|error| error.to_string())?;
        store.events(EventQuery::default()).await.map_err(|error| error.to_string())
    })
    .await
    .value
}
