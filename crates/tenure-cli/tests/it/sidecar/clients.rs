//! Clients that follow the rule of docs/load-balancers.md: a request that was answered with 503 is sent again.
//! One whose answer was lost (502, 504, a connection that broke) is not: these clients tell their user. They could
//! repeat it, since the programs could remember its id; but then nobody would see a balancer that repeats it too.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_store::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::cluster::HANG;

/// Between an answer of 503 and the next try.
const PAUSE: Duration = Duration::from_millis(3);

/// What one client has seen.
#[derive(Default)]
pub struct Seen {
    /// When a write was done, by the boot clock, and under which term.
    pub done: Vec<(tenure::Instant, u64)>,
    /// How often which status was answered.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that were done.
    pub executed: Vec<String>,
    /// Requests whose outcome is unknown.
    pub unknown: Vec<Unknown>,
    /// How many reads were answered by which program.
    pub reads: BTreeMap<String, u64>,
    /// Reads that failed, and how.
    pub unread: Vec<String>,
}

/// A request that may have been executed.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "shown when a test fails")]
pub struct Unknown {
    pub request: String,
    pub sent: tenure::Instant,
    pub lost: tenure::Instant,
    /// What was said about it.
    pub said: String,
}

/// What all clients share.
pub struct Clients {
    pub over: AtomicBool,
    /// The highest term under which a write was done.
    pub term: AtomicU64,
    /// How many writes were done.
    pub done: AtomicU64,
    at: String,
}

impl Clients {
    pub fn new(at: &str) -> Arc<Self> {
        Arc::new(Self {
            over: AtomicBool::new(false),
            term: AtomicU64::new(0),
            done: AtomicU64::new(0),
            at: at.to_owned(),
        })
    }

    pub fn writer(self: &Arc<Self>, name: usize) -> JoinHandle<Seen> {
        let clients = Arc::clone(self);
        tokio::spawn(async move {
            let mut seen = Seen::default();
            let mut number = 0_u64;
            while !clients.over.load(Ordering::Relaxed) {
                number += 1;
                clients.write(format!("{name}-{number}"), &mut seen).await;
            }
            seen
        })
    }

    pub fn reader(self: &Arc<Self>) -> JoinHandle<Seen> {
        let clients = Arc::clone(self);
        tokio::spawn(async move {
            let mut seen = Seen::default();
            while !clients.over.load(Ordering::Relaxed) {
                match ask(&clients.at, "GET", "", "/orders").await {
                    Ok(answer) if answer.status == 200 => {
                        *seen.reads.entry(answer.program()).or_default() += 1
                    }
                    Ok(answer) => seen.unread.push(answer.whole),
                    Err(error) => seen.unread.push(error.to_string()),
                }
                tokio::time::sleep(PAUSE).await;
            }
            seen
        })
    }

    async fn write(&self, request: String, seen: &mut Seen) {
        loop {
            let sent = clock::now();
            let unknown = |said| Unknown { request: request.clone(), sent, lost: clock::now(), said };
            let answer = match ask(&self.at, "POST", &request, "/orders").await {
                Ok(answer) => answer,
                Err(error) => return seen.unknown.push(unknown(error.to_string())),
            };
            *seen.statuses.entry(answer.status).or_default() += 1;
            match answer.status {
                200 => {
                    let term = answer.term();
                    seen.done.push((clock::now(), term));
                    self.term.fetch_max(term, Ordering::Release);
                    self.done.fetch_add(1, Ordering::Release);
                    return seen.executed.push(request);
                }
                503 => tokio::time::sleep(PAUSE).await,
                _ => return seen.unknown.push(unknown(answer.whole)),
            }
        }
    }
}

/// Asks once. The body is the request's id, so that it can be told whether it arrived.
pub async fn ask(at: &str, method: &str, request: &str, path: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(at).await?;
    let length = request.len();
    let path = if path.is_empty() { "/orders" } else { path };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\nrequest-id: {request}\r\n\
         content-length: {length}\r\n\r\n{request}"
    );
    stream.write_all(text.as_bytes()).await?;
    let mut whole = String::new();
    stream.read_to_string(&mut whole).await?;
    let status = whole.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no answer: {whole:?}")))?;
    Ok(Answer { status, whole })
}

/// Asks until it is done, by the rule. The term, and the answer.
pub async fn eventually(at: &str, method: &str, request: &str, path: &str) -> (u64, Answer) {
    let asked = async {
        loop {
            match ask(at, method, request, path).await {
                Ok(answer) if answer.status == 200 => return (answer.term(), answer),
                Ok(answer) if answer.status == 503 => {}
                // Nobody listens: the node has been killed, and starts again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                other => panic!("{method} {path} at {at}: {other:?}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(HANG, asked)
        .await
        .unwrap_or_else(|_| panic!("{method} {path} at {at} is never done"))
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub whole: String,
}

impl Answer {
    pub fn term(&self) -> u64 {
        let name = "tenure-term:";
        let line = self.whole.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.and_then(|line| line[name.len()..].trim().parse().ok()).unwrap_or(0)
    }

    /// Which program answered.
    fn program(&self) -> String {
        // Balancers may send it in a chunk of its own.
        self.whole.lines().find(|line| line.starts_with("program")).unwrap_or_default().to_owned()
    }
}
