//! Who listens to events, from node to node, and reads on where a connection has ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tenure_store::EventRecord;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long after the end what was recorded before it may still come.
const ARRIVAL: Duration = Duration::from_secs(10);
/// Before a connection is opened again.
const REST: Duration = Duration::from_millis(500);

pub struct Streams {
    listeners: Vec<JoinHandle<Vec<u64>>>,
    broken: Arc<AtomicU64>,
    over: CancellationToken,
}

/// What all of them heard.
pub struct Heard {
    pub events: usize,
    /// Recorded between the first that a stream heard and the end, and not heard by it.
    pub missed: usize,
    /// How often a connection ended.
    pub broken: u64,
}

impl Streams {
    /// So many, spread over the nodes.
    pub fn open(runtime: &Runtime, nodes: &[SocketAddr], count: usize) -> Self {
        let (broken, over) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let listener = |&node| {
            let (broken, over) = (Arc::clone(&broken), over.clone());
            runtime.spawn(async move {
                let mut heard = Vec::new();
                tokio::select! {
                    () = over.cancelled() => {}
                    () = listen(node, &mut heard, &broken) => {}
                }
                heard
            })
        };
        let listeners = nodes.iter().cycle().take(count).map(listener).collect();
        Self { listeners, broken, over }
    }

    /// Ends them, and compares what they heard with what was recorded.
    pub fn close(self, runtime: &Runtime, history: &[EventRecord]) -> Heard {
        std::thread::sleep(ARRIVAL);
        self.over.cancel();
        let (mut events, mut missed) = (0, 0);
        for listener in self.listeners {
            let mut heard = runtime.block_on(listener).unwrap_or_default();
            heard.sort_unstable();
            events += heard.len();
            let first = heard.first().copied().unwrap_or(0);
            let recorded = history.iter().map(|event| event.id).filter(|&id| id >= first);
            missed += recorded.filter(|id| heard.binary_search(id).is_err()).count();
        }
        Heard { events, missed, broken: self.broken.load(Relaxed) }
    }
}

async fn listen(node: SocketAddr, heard: &mut Vec<u64>, broken: &AtomicU64) {
    loop {
        // However it ended, it is read on from the last event.
        let _ = follow(node, heard).await;
        broken.fetch_add(1, Relaxed);
        tokio::time::sleep(REST).await;
    }
}

async fn follow(node: SocketAddr, heard: &mut Vec<u64>) -> std::io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(node).await?);
    let since = heard.last().map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
    let asked = format!(
        "GET /cluster/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{since}\r\n"
    );
    stream.write_all(asked.as_bytes()).await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if let Some(id) = line.strip_prefix("id:").and_then(|id| id.trim().parse().ok()) {
            heard.push(id);
        }
        line.clear();
    }
    Ok(())
}
