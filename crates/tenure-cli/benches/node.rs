//! `tenure node`: how soon it serves, how fast it says who leads, and what it costs.

#[path = "../../tenure-testkit/benches/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::place::Place;
use common::samples::{Samples, human, show};
use common::usage::{cpu, resident};
use common::{Bench, Outcome, no_part};
use tenure::ClusterSettings;
use tenure_http::{Api, ApiSettings, Coordinator, Server};
use tenure_store::clock;
use tokio_util::sync::CancellationToken;

const STREAMS: usize = 1000;
const MEBIBYTE: f64 = 1024.0;

fn main() -> ExitCode {
    common::run("node", measure, no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    start(bench, if bench.quick { 5 } else { 50 })?;
    leader(bench, if bench.quick { 4 } else { 40 })?;
    memory(bench)?;
    idle(bench, Duration::from_secs(if bench.quick { 5 } else { 60 }))
}

/// A `tenure node` process.
struct Node {
    process: Child,
    address: SocketAddr,
}

impl Node {
    fn start(place: &Place, id: &str) -> Outcome<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let store = format!("sqlite:{}", place.database().display());
        command.args(["node", "--store", &store, "--node", id, "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = process.stderr.take().ok_or("its words cannot be heard")?;
        let serves =
            BufReader::new(said).lines().map_while(Result::ok).find(|line| line.contains(" serves "));
        let url = serves.ok_or("it does not serve")?;
        let address = url.rsplit("//").next().unwrap_or_default().trim().parse()?;
        Ok(Self { process, address })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Asks on a connection that stays open; whether the answer was 200.
fn ask(stream: &mut TcpStream, path: &str) -> Outcome<bool> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = [0; 1024];
    let mut read = 0;
    loop {
        read += stream.read(&mut answer[read..])?;
        let text = &answer[..read];
        let Some(head) = text.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let length = std::str::from_utf8(&text[..head])?
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if read >= head + 4 + length.ok_or("no length")?.parse::<usize>()? {
            return Ok(text.starts_with(b"HTTP/1.1 200"));
        }
    }
}

fn start(bench: &Bench, rounds: usize) -> Outcome<()> {
    println!("\nstart on a SQLite file");
    let mut samples = Samples::default();
    for round in 0..rounds {
        let place = Place::on_disk()?;
        let began = clock::now();
        let node = Node::start(&place, &format!("n{round}"))?;
        if !ask(&mut TcpStream::connect(node.address)?, "/live")? {
            return Err("it is not alive".into());
        }
        samples.push(clock::now().since(began));
    }
    show("process started → /live answers 200", &samples);
    bench.judge(
        "start of `tenure node` → serving, on SQLite, p50",
        samples.percentile(50),
        Duration::from_millis(100),
    )
}

/// The same server, the same connections; by turns the one and the other.
fn leader(bench: &Bench, rounds: usize) -> Outcome<()> {
    const CLIENTS: usize = 4;
    println!("\n/leader against a static route of the same server, {CLIENTS} connections, by turns");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (stop, address) = runtime.block_on(serve())?;
    let mut waits = TcpStream::connect(address)?;
    while !ask(&mut waits, "/leader")? {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut ratios, mut rates) = (Vec::new(), [0.0; 2]);
    for _ in 0..rounds {
        let of_static = rate(address, "/static", CLIENTS)?;
        let of_leader = rate(address, "/leader", CLIENTS)?;
        ratios.push(of_leader / of_static);
        rates = [of_static, of_leader];
    }
    stop.cancel();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "last turn: /static {:.0}/s, /leader {:.0}/s; median of {} ratios {median:.3}",
        rates[0],
        rates[1],
        ratios.len()
    );
    let verdict = if median >= 0.9 { "met" } else { "MISSED" };
    bench.conclude("requests/s: /leader ÷ a static axum route", &format!("{median:.3}"), "≥ 0.9", verdict)
}

async fn serve() -> Outcome<(CancellationToken, SocketAddr)> {
    let store = tenure::connect("memory:").await?;
    let node = tenure::Node::builder("a").start(store).await?;
    let election = node.election("coordinator")?;
    let cluster = node.cluster(&election.gate(), ClusterSettings::default())?;
    let coordinator = Coordinator::start(election);
    let api = Api::new(node, cluster, ApiSettings::default());
    let router = api.router().route("/static", axum::routing::get(async || "{\"status\":\"ok\"}"));
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let (address, stop) = (server.address()?, CancellationToken::new());
    let serving = server.serve(router, stop.clone())?;
    tokio::spawn(async move {
        serving.await;
        drop(coordinator);
    });
    Ok((stop, address))
}

/// How many requests a second so many clients get answered, each asking again at once.
fn rate(address: SocketAddr, path: &'static str, clients: usize) -> Outcome<f64> {
    let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let began = clock::now();
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (over, answered) = (Arc::clone(&over), Arc::clone(&answered));
            std::thread::spawn(move || -> Result<(), String> {
                let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
                let _ = stream.set_nodelay(true);
                while !over.load(Ordering::Relaxed) {
                    if !ask(&mut stream, path).map_err(|error| error.to_string())? {
                        return Err(format!("{path} does not answer 200"));
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(250));
    let count = answered.load(Ordering::Relaxed);
    let took = clock::now().since(began);
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a client has panicked")??;
    }
    Ok(count as f64 / took.as_secs_f64())
}

fn memory(bench: &Bench) -> Outcome<()> {
    println!("\nmemory, {STREAMS} streams of events opened and closed again");
    let place = Place::on_disk()?;
    let node = Node::start(&place, "a")?;
    let before = resident(node.process.id())?;
    let head = "GET /cluster/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = TcpStream::connect(node.address)?;
        stream.write_all(head.as_bytes())?;
        stream.read_exact(&mut [0; 12])?;
        streams.push(stream);
    }
    let open = resident(node.process.id())?;
    drop(streams);
    std::thread::sleep(Duration::from_secs(2));
    let after = resident(node.process.id())?;
    let mebibytes = |kib: u64| format!("{:.1} MiB", kib as f64 / MEBIBYTE);
    println!("before {}, open {}, closed {}", mebibytes(before), mebibytes(open), mebibytes(after));
    let verdict = if after <= 30 * 1024 { "met" } else { "MISSED" };
    bench.conclude(
        "resident memory of a node, 1,000 event streams closed again",
        &mebibytes(after),
        "≤ 30 MiB",
        verdict,
    )
}

fn idle(bench: &Bench, time: Duration) -> Outcome<()> {
    println!("\ntwo idle nodes, ttl 10 s, for {time:?}");
    let place = Place::on_disk()?;
    let nodes = [Node::start(&place, "a")?, Node::start(&place, "b")?];
    std::thread::sleep(Duration::from_secs(1));
    let spent = |node: &Node| cpu(node.process.id());
    let before = [spent(&nodes[0])?, spent(&nodes[1])?];
    std::thread::sleep(time);
    let after = [spent(&nodes[0])?, spent(&nodes[1])?];
    let per_second = (after[0] + after[1] - before[0] - before[1]) / u32::try_from(time.as_secs())? / 2;
    let memory = resident(nodes[0].process.id())?.max(resident(nodes[1].process.id())?) as f64 / MEBIBYTE;
    let told = format!("{} CPU/s, {memory:.1} MiB", human(per_second));
    bench.conclude("an idle node of two, ttl 10 s", &told, "–", "no target")
}
