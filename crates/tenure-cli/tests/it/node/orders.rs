//! What changes something, and who may.

use super::client::ask;
use super::stage::{Stage, TOKEN};

#[test]
fn leadership_is_handed_over_to_whom_was_named_or_to_the_first_in_line() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &[]);
    let asked = nodes[1].transfer("b").says(202);
    assert_eq!(asked, serde_json::json!({"leader_id": "a", "term": 1, "to": "b"}));
    nodes[1].until_ok("/leader");
    // The same order once more is no error.
    let again = nodes[0].transfer("b").says(200);
    assert_eq!((&again["leader_id"], &again["to"]), (&"b".into(), &"b".into()), "{again}");
    stage.until_stand(&["a"]);
    // Any node takes the order; an empty body means this node's election, and the first in line.
    let asked = nodes[0].order("/cluster/resign", "").says(202);
    assert_eq!(asked["leader_id"], "b");
    nodes[0].until_ok("/leader");
}

#[test]
fn what_cannot_be_done_is_said() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a"], &[]);
    let node = &nodes[0];
    node.order("/cluster/transfer", r#"{"to": "nobody"}"#).refuses(409, "`nobody` does not stand");
    node.order("/cluster/resign", r#"{"election": "unheard-of"}"#).refuses(409, "nobody leads `unheard-of`");
    for bad in
        ["", "{", "[]", r#"{"to": 7}"#, r#"{"to": ""}"#, r#"{"to": "a\r\nb"}"#, r#"{"to": "b", "more": 1}"#]
    {
        node.order("/cluster/transfer", bad).refuses(400, "the request makes no sense");
    }
    let long = format!(r#"{{"to": "{}"}}"#, "x".repeat(100_000));
    node.order("/cluster/transfer", &long).refuses(413, "");
    assert_eq!(node.get("/leader").status, 200);
}

#[test]
fn nobody_changes_anything_without_the_token_or_from_another_sites_page() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &[]);
    let address = nodes[0].address;
    let order = |headers: &[(&str, &str)]| ask(address, "POST", "/cluster/resign", headers, "");
    let bearer = format!("Bearer {TOKEN}");
    order(&[]).refuses(401, "this needs the token");
    order(&[("Authorization", "Bearer wrong-horse-battery-staple")]).refuses(401, "not the token");
    order(&[("Authorization", &format!("{bearer}x"))]).refuses(401, "not the token");
    order(&[("Authorization", "Basic dGVudXJlOnRlbnVyZQ==")]).refuses(401, "not the token");
    order(&[("Authorization", &bearer), ("Origin", "https://evil.example")]).refuses(403, "another site");
    order(&[("Authorization", &bearer), ("Origin", "null")]).refuses(403, "another site");
    order(&[("Authorization", &bearer), ("Sec-Fetch-Site", "cross-site")]).refuses(403, "another site");
    assert_eq!(nodes[0].get("/leader").status, 200);
    assert_eq!(nodes[0].get("/cluster/status").says(200)["term"], 1);
    let own = format!("http://{address}");
    assert_eq!(order(&[("Authorization", &bearer), ("Origin", &own)]).status, 202);
}

#[test]
fn without_a_token_nothing_can_be_changed() {
    let stage = Stage::new();
    let mut command = stage.tenure();
    command.args(["node", "--node", "a", "--listen", "127.0.0.1:0", "--ttl", "1m"]);
    let node = stage.serve("a", command);
    node.until_ok("/leader");
    node.order("/cluster/resign", "").refuses(403, "--token-file");
    assert_eq!(node.get("/leader").status, 200);
}
