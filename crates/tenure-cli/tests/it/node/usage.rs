//! What is refused before anything is touched.

use std::process::Output;

use super::stage::{Stage, until};

fn refused(stage: &Stage, flags: &[&str], words: &str) {
    let Output { status, stderr, .. } = stage.tenure().arg("node").args(flags).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(
        status.code() == Some(2) && said.contains(words),
        "{flags:?} ended with {status}, and not `{words}`: {said}"
    );
}

#[test]
fn beyond_this_machine_there_is_tls_or_a_word_of_consent() {
    let stage = Stage::new();
    for everywhere in ["0.0.0.0:0", "[::]:0", "192.0.2.7:8001"] {
        refused(&stage, &["--listen", everywhere], "there is no TLS");
    }
    let node = stage.node("a", &["--listen", "0.0.0.0:0", "--plaintext"]);
    assert!(node.said().contains("serves http://0.0.0.0:"));
    // Nobody can be sent to such an address.
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], node.address.port()));
    let listed = until("it is listed", || {
        let nodes = super::client::get(address, "/cluster/nodes").says(200);
        Some(nodes[0].clone()).filter(serde_json::Value::is_object)
    });
    assert_eq!(listed.get("api_url"), Some(&serde_json::Value::Null));
}

#[test]
fn addresses_that_lead_elsewhere_are_refused_when_they_are_registered() {
    let stage = Stage::new();
    for evil in [
        "//evil.example",
        "javascript:alert(1)",
        "http://169.254.169.254",
        "http://[fe80::1]:80",
        "http://me:pw@evil.example",
        "http://a/path",
        "http://a\r\nX: y",
        "ftp://a",
        "http://0.0.0.0:80",
        "evil",
    ] {
        refused(&stage, &["--listen", "127.0.0.1:0", "--address", evil], "is refused: ");
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do() {
    let stage = Stage::new();
    let file = |name: &str, text: &str| {
        std::fs::write(stage.path(name), text).unwrap();
        stage.path(name).display().to_string()
    };
    let listen = ["--listen", "127.0.0.1:0"];
    let with = |more: &[&str], words: &str| refused(&stage, &[&listen[..], more].concat(), words);
    with(&["--token-file", &file("short", "secret\n")], "is unusable");
    with(&["--token-file", "/nowhere/token"], "cannot be read");
    with(&["--tls-cert", "x.pem"], "--tls-key");
    let (cert, key) = (file("cert", "none"), file("key", "none"));
    with(&["--tls-cert", &cert, "--tls-key", &key], "holds no certificate");
    with(&["--label", "zone"], "zone=eu-1");
    with(&["--label", "a=1,a=2"], "given twice");
    with(&["--node", "a\r\nb"], "control character");
    refused(&stage, &["--listen", "nowhere"], "invalid");
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_registered() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    let taken = node.address.to_string();
    let Output { status, stderr, .. } =
        stage.tenure().args(["node", "--node", "b", "--listen", &taken]).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(1) && said.contains("cannot listen at"), "{status} {said}");
    let nodes = stage.tenure().args(["nodes", "--json"]).output().unwrap();
    let nodes = String::from_utf8_lossy(&nodes.stdout);
    assert!(nodes.lines().count() == 1 && nodes.contains(r#""node_id":"a""#), "{nodes}");
}
