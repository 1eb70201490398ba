//! What nobody is told.

use super::stage::{Stage, TOKEN, until};

/// How the password in a store's URL would show, where it has one.
const PASSWORD: &str = ":secret";

#[test]
fn neither_the_token_nor_the_password_of_the_store_shows_anywhere() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["-vv"]);
    let hidden = |what: &str, text: &str| {
        for secret in [TOKEN, PASSWORD] {
            assert!(!text.contains(secret), "{what} shows a secret: {text}");
        }
    };
    for node in &nodes {
        let document = node.get("/openapi.json").says(200);
        let paths = document["paths"].as_object().unwrap().iter();
        let read = paths.filter(|(_, ways)| ways.get("get").is_some()).map(|(path, _)| path.as_str());
        let read = read.filter(|path| !path.contains('{'));
        let mut asked = 0;
        for path in read.chain(["/", "/metrics", "/openapi.json", "/nowhere"]) {
            let answer = node.get(path);
            hidden(path, &format!("{:?} {}", answer.headers, answer.body));
            asked += 1;
        }
        assert!(asked > 10, "only {asked} paths were found in the document");
        let words = std::fs::read(format!("/proc/{}/cmdline", node.child.id())).unwrap();
        hidden("the list of processes", &String::from_utf8_lossy(&words));
    }
    nodes[0].order("/cluster/resign", "").says(202);
    nodes[1].until_ok("/leader");
    // Errors tell most: also when the store is gone.
    stage.place().take_away();
    let problem = until("the store is missed", || {
        Some(nodes[0].get("/cluster/elections")).filter(|answer| answer.status == 503)
    });
    hidden("an error", &problem.body);
    let started = stage.tenure().args(["status"]).output().unwrap();
    hidden("a command", &String::from_utf8_lossy(&[started.stdout, started.stderr].concat()));
    for node in &nodes {
        hidden("the log", &node.said());
    }
}
