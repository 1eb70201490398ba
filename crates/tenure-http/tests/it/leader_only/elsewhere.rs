//! Where this node does not lead: refused, or sent on.

use axum::Router;
use axum::routing::any;
use tenure_http::leader_only::{Forwarder, LeaderOnlyLayer, Mode};

use super::stage::{ask, brief, elected, follower, gate, node, serve, soon, status, store, until};

fn app(layer: LeaderOnlyLayer) -> Router {
    Router::new().fallback(any(async || "executed")).layer(layer)
}

#[tokio::test]
async fn a_follower_refuses_and_names_the_leader() {
    let (gate, _leadership) = follower("http://127.0.0.1:1").await;
    let origin = serve(app(LeaderOnlyLayer::new(gate))).await;
    let answer = ask(&origin, "POST /orders", "", "x").await;
    assert_eq!(status(&answer), 503);
    for part in [
        "tenure-leader: leader\r\n",
        "tenure-term: 1\r\n",
        "retry-after: 1\r\n",
        "content-type: application/problem+json\r\n",
        "\"title\":\"this node does not lead\"",
        "\"executed\":false",
        "\"leader_id\":\"leader\"",
    ] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
}

#[tokio::test]
async fn without_a_leader_every_mode_refuses() {
    let store = store().await;
    let gate = gate(&node("a", None, &store).await);
    for mode in [Mode::Refuse, Mode::Redirect, Mode::Forward(Forwarder::new(brief()))] {
        let origin = serve(app(LeaderOnlyLayer::new(gate.clone()).elsewhere(mode))).await;
        let answer = ask(&origin, "POST /orders", "", "x").await;
        assert_eq!(status(&answer), 503);
        assert!(answer.contains("nobody leads") && answer.contains("retry-after: 1\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_redirect_keeps_method_path_and_query() {
    let (gate, _leadership) = follower("http://10.0.0.7:8001/").await;
    let origin = serve(app(LeaderOnlyLayer::new(gate).elsewhere(Mode::Redirect))).await;
    for path in ["/orders/7?a=b%20c&d", "//evil.example/x", "/"] {
        let answer = ask(&origin, &format!("POST {path}"), "", "x").await;
        assert_eq!(status(&answer), 307);
        assert!(answer.contains(&format!("location: http://10.0.0.7:8001{path}\r\n")), "{answer}");
        assert!(
            answer.contains("tenure-leader: leader\r\n") && answer.contains("cache-control: no-store\r\n")
        );
    }
}

#[tokio::test]
async fn a_node_without_a_session_sends_nobody_anywhere() {
    let store = store().await;
    let leader = node("leader", Some(String::from("http://10.0.0.7:8001")), &store).await;
    let _leadership = elected(&leader).await;
    let cut_off = node("cut-off", None, &store).await;
    let gate = gate(&cut_off);
    until(|| gate.leader().is_some_and(|leader| leader.address.is_some())).await;
    let origin = serve(app(LeaderOnlyLayer::new(gate).elsewhere(Mode::Redirect))).await;
    assert_eq!(status(&ask(&origin, "POST /orders", "", "x").await), 307);
    soon(cut_off.close()).await;
    let answer = ask(&origin, "POST /orders", "", "x").await;
    assert_eq!(status(&answer), 503, "another may lead by now");
    assert!(answer.contains("tenure-leader: leader\r\n"), "what was last known: {answer}");
}

#[tokio::test]
async fn nobody_is_sent_to_an_address_that_a_vandal_registered() {
    for address in [
        "javascript:alert(1)",
        "//evil.example",
        "http://me:secret@evil.example",
        "http://169.254.169.254",
        "http://evil.example/path",
        "http://a\r\nset-cookie: x",
    ] {
        let (gate, _leadership) = follower(address).await;
        for mode in [Mode::Redirect, Mode::Forward(Forwarder::new(brief()))] {
            let origin = serve(app(LeaderOnlyLayer::new(gate.clone()).elsewhere(mode))).await;
            let answer = ask(&origin, "POST /orders", "", "x").await;
            assert_eq!(status(&answer), 503, "{address}");
            assert!(answer.contains("no usable address") && !answer.contains("secret"), "{answer}");
        }
    }
}

#[tokio::test]
async fn grpc_clients_are_told_that_it_is_unavailable() {
    let (gate, _leadership) = follower("http://127.0.0.1:1").await;
    for mode in [Mode::Refuse, Mode::Redirect, Mode::Forward(Forwarder::new(brief()))] {
        let origin = serve(app(LeaderOnlyLayer::new(gate.clone()).elsewhere(mode))).await;
        let answer =
            ask(&origin, "POST /shop.Orders/Add", "content-type: application/grpc+proto\r\n", "x").await;
        assert_eq!(status(&answer), 200);
        assert!(answer.contains("grpc-status: 14\r\n") && answer.contains("grpc-message: "), "{answer}");
        assert!(answer.contains("tenure-leader: leader\r\n"), "{answer}");
    }
}
