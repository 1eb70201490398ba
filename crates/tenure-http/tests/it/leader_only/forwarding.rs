//! The way to the leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Uri};
use axum::routing::{any, post};
use tenure_http::leader_only::{Forwarder, LeaderOnlyLayer, Limits, Mode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stage::{
    ask, brief, dial, elected, follower, gate, node, nowhere, place, serve, soon, status, store, until,
};

fn forwarding(gate: tenure::Gate, inner: Router) -> Router {
    forwarding_within(Limits::default(), gate, inner)
}

fn forwarding_within(limits: Limits, gate: tenure::Gate, inner: Router) -> Router {
    inner.layer(LeaderOnlyLayer::new(gate).elsewhere(Mode::Forward(Forwarder::new(limits))))
}

fn nothing() -> Router {
    Router::new().fallback(any(async || "executed by a follower"))
}

#[tokio::test]
async fn a_forwarded_request_arrives_whole_and_its_answer_too() {
    let echo = async |uri: Uri, headers: HeaderMap, body: Bytes| {
        let header =
            |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned());
        let told: Vec<String> =
            ["host", "x-mine", "x-hop", "tenure-forwarded-by"].into_iter().flat_map(header).collect();
        format!("{uri} {told:?} {} bytes", body.len())
    };
    let store = store().await;
    let (listener, address) = place().await;
    let leader = node("leader", Some(address), &store).await;
    let app = Router::new().fallback(any(echo)).layer(LeaderOnlyLayer::new(gate(&leader)));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let leadership = elected(&leader).await;
    let follows = gate(&node("follower", None, &store).await);
    until(|| follows.leader().is_some_and(|leader| leader.address.is_some())).await;
    let origin = serve(forwarding(follows, nothing())).await;
    for round in 0..3 {
        let body = "x".repeat(100_000 * round);
        let headers = "x-mine: 1\r\nx-hop: 2\r\nconnection: x-hop\r\n";
        let answer = ask(&origin, "PUT /orders/7?a=b", headers, &body).await;
        assert_eq!(status(&answer), 200);
        assert!(
            answer.contains("tenure-term: 1\r\n") && answer.contains("tenure-leader: leader\r\n"),
            "{answer}"
        );
        let told = format!(r#"/orders/7?a=b ["shop.example", "1", "follower"] {} bytes"#, body.len());
        assert!(answer.ends_with(&told), "{told} in {answer}");
    }
    soon(leadership.resign()).await.unwrap();
    until_refused(&origin).await;
}

/// The follower, or the old leader itself, refuses: the check is made again there.
async fn until_refused(origin: &str) {
    soon(async { while status(&ask(origin, "POST /orders", "", "x").await) != 503 {} }).await;
}

#[tokio::test]
async fn a_leader_that_is_gone_is_told_and_nothing_was_executed() {
    let (gate, _leadership) = follower(&nowhere().await).await;
    let origin = serve(forwarding(gate, nothing())).await;
    let answer = ask(&origin, "POST /orders", "", "x").await;
    assert_eq!(status(&answer), 503);
    assert!(answer.contains("cannot be reached") && answer.contains("\"executed\":false"), "{answer}");
}

#[tokio::test]
async fn a_request_whose_answer_is_lost_is_not_sent_again() {
    let (listener, address) = place().await;
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    tokio::spawn(async move {
        // Reads the request, and hangs up.
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            if stream.read(&mut buffer).await.unwrap() > 0 {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (gate, _leadership) = follower(&address).await;
    let origin = serve(forwarding(gate, nothing())).await;
    let answer = ask(&origin, "POST /orders", "", "x").await;
    assert_eq!(status(&answer), 502);
    assert!(answer.contains("may have been executed") && !answer.contains("retry-after"), "{answer}");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_leader_that_does_not_answer_in_time_is_told_apart() {
    let address = serve(Router::new().fallback(any(std::future::pending::<()>))).await;
    let (gate, _leadership) = follower(&address).await;
    let origin = serve(forwarding_within(brief(), gate, nothing())).await;
    assert_eq!(status(&ask(&origin, "POST /orders", "", "x").await), 504);
}

#[tokio::test]
async fn nodes_that_each_think_the_other_leads_end_in_a_503() {
    // Two clusters, each of which is told that it is led from the other's server.
    let ((listen_a, a), (listen_b, b)) = (place().await, place().await);
    let ((gate_a, _leads_b), (gate_b, _leads_a)) = (named("a", &b).await, named("b", &a).await);
    let hits = Arc::new(AtomicU32::new(0));
    for (listener, gate) in [(listen_a, gate_a), (listen_b, gate_b)] {
        let hits = Arc::clone(&hits);
        let counted = axum::middleware::from_fn(move |request, next: axum::middleware::Next| {
            hits.fetch_add(1, Ordering::Relaxed);
            next.run(request)
        });
        let app = forwarding(gate, nothing()).layer(counted);
        tokio::spawn(async move { axum::serve(listener, app).await });
    }
    let answer = ask(&a, "POST /orders", "", "x").await;
    assert_eq!(status(&answer), 503);
    assert!(answer.contains("do not agree"), "{answer}");
    assert_eq!(hits.load(Ordering::Relaxed), 3, "a, b, and a again");
}

/// A node of this name in a cluster that is led from `address`.
async fn named(id: &str, address: &str) -> (tenure::Gate, tenure::Leadership) {
    let store = store().await;
    let leadership = elected(&node("leader", Some(address.to_owned()), &store).await).await;
    let gate = gate(&node(id, None, &store).await);
    until(|| gate.leader().is_some_and(|leader| leader.address.is_some())).await;
    (gate, leadership)
}

#[tokio::test]
async fn an_answer_that_streams_passes_as_it_comes() {
    let (feed, body) = tokio::io::duplex(64);
    let body = Arc::new(std::sync::Mutex::new(Some(body)));
    let stream = async move || {
        let pipe = body.lock().unwrap().take().unwrap();
        let frames = futures_util::stream::unfold(pipe, async |mut pipe| {
            let mut buffer = vec![0; 64];
            let read = pipe.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            Some((Ok::<_, std::io::Error>(Bytes::copy_from_slice(&buffer[..read])), pipe))
        });
        axum::body::Body::from_stream(frames)
    };
    let (gate, _leadership) = follower(&serve(Router::new().route("/orders", post(stream))).await).await;
    let origin = serve(forwarding(gate, nothing())).await;
    let mut client = dial(&origin).await;
    client.write_all(b"POST /orders HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let mut feed = feed;
    for word in ["first", "second"] {
        feed.write_all(word.as_bytes()).await.unwrap();
        let mut seen = String::new();
        while !seen.contains(word) {
            let mut buffer = [0; 1024];
            let read = soon(client.read(&mut buffer)).await.unwrap();
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    }
}
