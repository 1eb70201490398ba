//! What renewals cost while many readers follow the history from its beginning, again and again.

#[path = "../../tenure-testkit/benches/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::place::Place;
use common::samples::{Samples, show};
use common::{Bench, Outcome, PART};
use tenure::{ClusterSettings, NodeEvent, NodeInfo, Store};
use tenure_core::{NodeId, SessionId};
use tenure_http::{Api, ApiSettings, Coordinator, Server};
use tenure_store::Open;
use tenure_testkit::server::Postgres;
use tokio_util::sync::CancellationToken;

/// How many events the readers find.
const EVENTS: u64 = 9_000;
/// Readers at a time.
const STREAMS: usize = 1_000;
/// What a reader takes before it begins anew: about half of a page of events.
const BITE: usize = 64 * 1024;
const TTL: Duration = Duration::from_secs(3);
/// Much more often than is usual, for the sake of many samples.
const RENEW_EVERY: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    common::run("streams", measure, |words| match words {
        [address] => read_greedily(address.parse()?),
        _ => Err("the address of a node is missing".into()),
    })
}

fn measure(bench: &Bench) -> Outcome<()> {
    let place = Place::on_disk()?;
    on(bench, "SQLite", &format!("sqlite:{}", place.database().display()))?;
    let server = Postgres::start_with(&[]);
    on(bench, "PostgreSQL", &server.url())
}

/// By turns without readers and with them.
fn on(bench: &Bench, name: &str, url: &str) -> Outcome<()> {
    let (rounds, time) = if bench.quick { (1, 2) } else { (5, 10) };
    let time = Duration::from_secs(time);
    println!("\n{name}: renewals of a leader with {EVENTS} events, {rounds} × {time:?} by turns");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let node = runtime.block_on(async {
        let store = tenure::connect(url).await?;
        fill(&store, if bench.quick { EVENTS / 10 } else { EVENTS }).await?;
        serve(store).await
    })?;
    let (mut alone, mut beside, mut begun) = (Samples::default(), Samples::default(), 0);
    for _ in 0..rounds {
        node.take();
        std::thread::sleep(time);
        node.take().into_iter().for_each(|took| alone.push(took));
        let readers = Readers::start(node.address)?;
        // Until all of them are there.
        std::thread::sleep(Duration::from_secs(1));
        node.take();
        std::thread::sleep(time);
        node.take().into_iter().for_each(|took| beside.push(took));
        begun += readers.stop()?;
    }
    node.stop.cancel();
    show("renewal, nobody reads", &alone);
    show(&format!("renewal beside {STREAMS} greedy streams"), &beside);
    println!("{begun} streams were served {} KiB each and begun anew", BITE / 1024);
    let ratio = beside.percentile(99).as_secs_f64() / alone.percentile(99).as_secs_f64();
    let verdict = if ratio <= 3.0 { "met" } else { "MISSED" };
    let what = format!("{name}: renewal p99 beside {STREAMS} greedy streams ÷ that of an idle node");
    bench.conclude(&what, &format!("{ratio:.2}"), "≤ 3", verdict)
}

/// Sessions that come and go: two events each.
async fn fill(store: &Arc<dyn Store>, events: u64) -> Outcome<()> {
    for number in 0..events / 2 {
        let session = SessionId::from_u128(u128::from(number) + 1);
        let node = NodeInfo::new(NodeId::new(format!("visitor-{number}"))?, "localhost");
        let (sequence, ttl) = (1, TTL);
        store.open(Open { session, sequence, ttl, node, supersedes: None, over: None }).await?;
        store.close(session, Default::default()).await?;
    }
    Ok(())
}

/// A leader with its API, in this process.
struct Leader {
    address: SocketAddr,
    renewals: Arc<Mutex<Vec<Duration>>>,
    stop: CancellationToken,
}

impl Leader {
    /// What renewals have taken since this was last asked.
    fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.renewals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(store: Arc<dyn Store>) -> Outcome<Leader> {
    let renewals = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&renewals);
    let node = tenure::Node::builder("a")
        .ttl(TTL)
        .renew_every(RENEW_EVERY)
        .observer(move |event| {
            if let NodeEvent::StoreAsked { verb: "renew", took, .. } = event {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(*took);
            }
        })
        .start(store)
        .await?;
    let election = node.election("coordinator")?;
    let cluster = node.cluster(&election.gate(), ClusterSettings::default())?;
    let coordinator = Coordinator::start(election);
    let api = Api::new(node, cluster, ApiSettings::default());
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let (address, stop) = (server.address()?, CancellationToken::new());
    let serving = server.serve(api.router(), stop.clone())?;
    tokio::spawn(async move {
        serving.await;
        drop(coordinator);
    });
    Ok(Leader { address, renewals, stop })
}

/// A process of readers, so that only what they ask for is the node's.
struct Readers(Child);

impl Readers {
    fn start(address: SocketAddr) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(Self(command.args([PART, &address.to_string()]).stdout(Stdio::piped()).spawn()?))
    }

    /// How many streams have been read, as of the last second.
    fn stop(mut self) -> Outcome<u64> {
        self.0.kill()?;
        let mut counts = String::new();
        self.0.stdout.take().ok_or("there is no output")?.read_to_string(&mut counts)?;
        Ok(counts.lines().last().ok_or("no stream was read")?.parse()?)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until it is killed. Prints every second how many streams have been read.
fn read_greedily(address: SocketAddr) -> Outcome<()> {
    static READ: AtomicU64 = AtomicU64::new(0);
    let reader = move || {
        let mut buffer = vec![0; BITE];
        loop {
            // A node that is busy may refuse, and is asked again.
            if bite(address, &mut buffer).is_ok() {
                READ.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    for _ in 0..STREAMS {
        std::thread::Builder::new().stack_size(64 * 1024).spawn(reader)?;
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
        println!("{}", READ.load(Ordering::Relaxed));
    }
}

fn bite(address: SocketAddr, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(
        b"GET /cluster/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID: 0\r\n\r\n",
    )?;
    stream.read_exact(buffer)
}
