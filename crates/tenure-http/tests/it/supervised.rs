//! How supervised work is doing, as the API of its node shows it.
#![cfg(feature = "server")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use tenure::{Child, ClusterSettings, Node};
use tenure_http::{Api, ApiSettings};
use tower_service::Service;

async fn get(router: &Router, path: &str) -> String {
    let request = Request::get(path).header("Host", "localhost").body(Body::empty()).unwrap();
    let answer = router.clone().call(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn the_health_of_children_is_shown_in_status_and_metrics() {
    let store = tenure::connect("memory:").await.unwrap();
    let node = Node::builder("a").start(store).await.unwrap();
    let election = node.election("coordinator").unwrap();
    let failed_once = Arc::new(AtomicBool::new(false));
    let clumsy = move |child: Child| {
        let again = failed_once.swap(true, Ordering::Relaxed);
        async move {
            if !again {
                return Err(String::from("nothing is wired yet"));
            }
            child.told_to_stop().await;
            Ok(())
        }
    };
    let supervisor = election
        .supervise()
        .back_off(Duration::from_millis(1), Duration::from_millis(1))
        .child("poller", clumsy)
        .start()
        .unwrap();
    let cluster = node.cluster(&election.gate(), ClusterSettings::default()).unwrap();
    let settings = ApiSettings { supervised: Some(supervisor.watch()), ..ApiSettings::default() };
    let router = Api::new(node, cluster, settings).router();
    let mut watch = supervisor.watch();
    let up = watch
        .wait_for(|status| status.children[0].restarts == 1 && status.children[0].health.name() == "running");
    drop(tokio::time::timeout(Duration::from_secs(180), up).await.expect("it is restarted").unwrap());

    let status: serde_json::Value = serde_json::from_str(&get(&router, "/cluster/status").await).unwrap();
    let child = &status["children"][0];
    assert_eq!((&child["name"], &child["health"]), (&"poller".into(), &"running".into()));
    assert_eq!(child["restarts"], 1);
    assert!(child["last_error"].as_str().unwrap().contains("nothing is wired yet"), "{child}");
    let metrics = get(&router, "/metrics").await;
    assert!(metrics.contains("tenure_child_running{child=\"poller\"} 1"), "{metrics}");
    assert!(metrics.contains("tenure_child_restarts_total{child=\"poller\"} 1"), "{metrics}");

    supervisor.stop().await.unwrap();
    assert!(get(&router, "/metrics").await.contains("tenure_child_running{child=\"poller\"} 0"));
}
