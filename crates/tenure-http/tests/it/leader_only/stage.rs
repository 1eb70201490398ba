//! What the tests share: nodes in memory, servers on loopback, and a client that sees every byte.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use tenure::{Gate, Leadership, Node, Store};
use tenure_http::leader_only::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes, on any machine: reached only when something hangs.
const HANG: Duration = Duration::from_secs(180);

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("this takes too long: something hangs")
}

pub async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A store of its own.
pub async fn store() -> Arc<dyn Store> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = NEXT.fetch_add(1, Ordering::Relaxed);
    tenure::connect(format!("memory:leader-only-{}-{name}", std::process::id())).await.unwrap()
}

pub async fn node(id: &str, address: Option<String>, store: &Arc<dyn Store>) -> Node {
    node_with_grace(HANG, id, address, store).await
}

pub async fn node_with_grace(
    grace: Duration,
    id: &str,
    address: Option<String>,
    store: &Arc<dyn Store>,
) -> Node {
    let mut builder = Node::builder(id).ttl(Duration::from_secs(60)).grace(grace);
    if let Some(address) = address {
        builder = builder.address(address);
    }
    soon(builder.start(Arc::clone(store))).await.unwrap()
}

pub fn gate(node: &Node) -> Gate {
    node.election("orders").unwrap().gate()
}

pub async fn elected(node: &Node) -> Leadership {
    soon(node.election("orders").unwrap().elected()).await.unwrap()
}

/// A node that follows, of a cluster that is led from `address`.
pub async fn follower(address: &str) -> (Gate, Leadership) {
    let store = store().await;
    let leader = node("leader", Some(address.to_owned()), &store).await;
    let leadership = elected(&leader).await;
    let gate = gate(&node("follower", None, &store).await);
    until(|| gate.leader().is_some_and(|leader| leader.address.is_some())).await;
    (gate, leadership)
}

/// Limits that no test has to wait for.
pub fn brief() -> Limits {
    Limits { answer: Duration::from_millis(300), ..Limits::default() }
}

/// A place for a server, and its origin.
pub async fn place() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    (listener, origin)
}

/// Serves on loopback until the test is over.
pub async fn serve(app: Router) -> String {
    let (listener, origin) = place().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    origin
}

/// An origin where nobody listens.
pub async fn nowhere() -> String {
    place().await.1
}

pub async fn dial(origin: &str) -> TcpStream {
    TcpStream::connect(origin.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Sends a request, and gives everything that comes back.
pub async fn ask(origin: &str, line: &str, headers: &str, body: &str) -> String {
    let mut stream = dial(origin).await;
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

pub fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}
