//! A program behind the node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::routing::{any, get};
use tenure::Gate;
use tenure_http::leader_only::{Forwarder, LeaderOnlyLayer, Limits, Mode, Rules, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower_layer::Layer;

use super::stage::{
    ask, brief, dial, elected, gate, node, nowhere, place, serve, soon, status, store, until,
};

/// What `tenure node --upstream` is.
fn sidecar(gate: Gate, program: &str, mode: Mode) -> Router {
    sidecar_within(Limits::default(), gate, program, mode)
}

fn sidecar_within(limits: Limits, gate: Gate, program: &str, mode: Mode) -> Router {
    let upstream = Upstream::new(program.parse().unwrap(), limits, gate.clone());
    let layer = LeaderOnlyLayer::new(gate).elsewhere(mode).only(Rules::writes());
    Router::new().fallback_service(layer.layer(upstream))
}

fn program() -> Router {
    let headers = async |headers: HeaderMap| {
        let told = |name: &str| {
            headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        format!("term {:?} by {:?} host {:?}", told("tenure-term"), told("tenure-forwarded-by"), told("host"))
    };
    let echo = async |socket: WebSocketUpgrade| {
        socket.on_upgrade(async |mut socket| {
            while let Some(Ok(Message::Text(text))) = socket.recv().await {
                let _ = socket.send(Message::Text(text)).await;
            }
        })
    };
    Router::new().route("/socket", get(echo)).fallback(any(headers))
}

#[tokio::test]
async fn writes_reach_the_program_with_the_term_and_reads_without() {
    let store = store().await;
    let node = node("a", None, &store).await;
    let origin = serve(sidecar(gate(&node), &serve(program()).await, Mode::Refuse)).await;
    assert!(
        ask(&origin, "GET /x", "tenure-term: 99\r\n", "")
            .await
            .ends_with(r#"term [] by [] host ["shop.example"]"#)
    );
    assert_eq!(status(&ask(&origin, "POST /x", "", "x").await), 503);
    let leadership = elected(&node).await;
    let forged = "tenure-term: 99\r\ntenure-forwarded-by: b\r\n";
    for _ in 0..3 {
        let answer = ask(&origin, "POST /x", forged, "x").await;
        assert_eq!(status(&answer), 200);
        assert!(answer.contains("tenure-term: 1\r\n"), "{answer}");
        assert!(answer.ends_with(r#"term ["1"] by [] host ["shop.example"]"#), "{answer}");
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(status(&ask(&origin, "POST /x", "", "x").await), 503);
}

#[tokio::test]
async fn a_program_that_is_away_slow_or_hangs_up_is_told_apart() {
    let store = store().await;
    let node = node("a", None, &store).await;
    let _leadership = elected(&node).await;
    let slow = serve(Router::new().fallback(any(std::future::pending::<()>))).await;
    let (listener, rude) = place().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    for (program, expected, executed) in
        [(nowhere().await, 503, "false"), (slow, 504, "null"), (rude, 502, "null")]
    {
        let limits = if expected == 504 { brief() } else { Limits::default() };
        let origin = serve(sidecar_within(limits, gate(&node), &program, Mode::Refuse)).await;
        for line in ["POST /x", "GET /x"] {
            let answer = ask(&origin, line, "", "").await;
            assert_eq!(status(&answer), expected, "{answer}");
            assert!(answer.contains("application/problem+json"), "{answer}");
            assert!(answer.contains(&format!("\"executed\":{executed}")), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_program_may_close_idle_connections_when_it_likes() {
    let store = store().await;
    let node = node("a", None, &store).await;
    let _leadership = elected(&node).await;
    let (listener, origin) = place().await;
    let closed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&closed);
    tokio::spawn(async move {
        // Promises to keep every connection, and closes it.
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            drop(stream);
            count.fetch_add(1, Ordering::Release);
        }
    });
    let origin = serve(sidecar(gate(&node), &origin, Mode::Refuse)).await;
    for round in 1..20 {
        assert_eq!(status(&ask(&origin, "GET /x", "", "").await), 200);
        until(|| closed.load(Ordering::Acquire) == round).await;
    }
}

#[tokio::test]
async fn sockets_pass_through_two_nodes_and_end_with_the_term() {
    let store = store().await;
    let (listener, address) = place().await;
    let leader = node("leader", Some(address), &store).await;
    let app = sidecar(gate(&leader), &serve(program()).await, Mode::Refuse);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let leadership = elected(&leader).await;
    let follows = gate(&node("follower", None, &store).await);
    until(|| follows.leader().is_some_and(|leader| leader.address.is_some())).await;
    let mode = Mode::Forward(Forwarder::new(brief()));
    let mut client = dial(&serve(sidecar(follows, &nowhere().await, mode)).await).await;
    let hello = "GET /socket HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                 sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(hello.as_bytes()).await.unwrap();
    let agreed = read_until(&mut client, "\r\n\r\n").await;
    assert_eq!(status(&agreed), 101);
    assert!(agreed.contains("upgrade: websocket\r\n") && agreed.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    // A masked text frame with the mask 0: "hello".
    client.write_all(b"\x81\x85\0\0\0\0hello").await.unwrap();
    assert!(read_until(&mut client, "hello").await.ends_with("hello"));
    soon(leadership.resign()).await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(client.read_to_end(&mut rest)).await; // closed, or reset
}

#[tokio::test]
async fn leadership_waits_for_the_program_although_the_client_has_hung_up() {
    let store = store().await;
    let (a, b) = (node("a", None, &store).await, node("b", None, &store).await);
    let leadership = elected(&a).await;
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let program = {
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        let work = async move || {
            // A program in another process does not end with the request.
            tokio::spawn(async move {
                entered.notify_one();
                go.notified().await;
            })
            .await
            .map_err(|error| error.to_string())
        };
        serve(Router::new().fallback(any(work))).await
    };
    let upstream = Upstream::new(program.parse().unwrap(), Limits::default(), gate(&a));
    let app = Router::new().fallback_service(LeaderOnlyLayer::new(gate(&a)).layer(upstream));
    let mut client = dial(&serve(app).await).await;
    client.write_all(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    soon(entered.notified()).await;
    drop(client);
    let rival = tokio::spawn(async move { elected(&b).await });
    let resigning = tokio::spawn(async move { leadership.resign().await });
    let gate = gate(&a);
    until(|| gate.check().is_err()).await;
    assert_eq!(a.election("orders").unwrap().leader().await.unwrap().unwrap().term.number(), 1);
    assert!(!rival.is_finished() && !resigning.is_finished());
    go.notify_one();
    assert_eq!(soon(rival).await.unwrap().term().number(), 2);
}

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(end) {
        let mut buffer = [0; 1024];
        let read = soon(stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "the connection was closed after {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    seen
}
