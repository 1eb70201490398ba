//! The API's description of itself, held against what a running node answers to good and to bad requests.

use std::collections::BTreeSet;

use super::client::{Answer, ask};
use super::document::{Document, Operation};
use super::stage::{Served, Stage, TOKEN, until};

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

fn document(node: &Served) -> Document {
    Document(node.get("/openapi.json").says(200))
}

/// Asks, and demands an answer that is described.
fn asked(
    node: &Served,
    operation: &Operation<'_>,
    query: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let path = format!("{}{query}", operation.path);
    let answer = ask(node.address, &operation.method, &path, headers, body);
    operation.allows(&answer);
    answer
}

/// The same of a store that answers in time, which that of a busy machine may not always do.
fn settled(
    node: &Served,
    operation: &Operation<'_>,
    query: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    until("the store answers", || {
        Some(asked(node, operation, query, headers, body)).filter(|answer| answer.status != 503)
    })
}

#[test]
fn every_operation_is_served_as_it_is_described_by_every_node_whoever_asks() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["--label", "zone=eu-1"]);
    let document = document(&nodes[0]);
    assert!(document.0["openapi"].as_str().unwrap().starts_with("3.1"));
    for node in &nodes {
        for operation in document.operations() {
            for headers in [
                &[][..],
                &[("Host", "evil.example")],
                &[("Authorization", "Bearer wrong-horse-battery-staple")],
                &[("Authorization", bearer().as_str()), ("Origin", "https://evil.example")],
                &[("Accept", "application/xml"), ("Range", "bytes=0-1"), ("If-None-Match", "*")],
            ] {
                asked(node, &operation, "", headers, "");
            }
        }
    }
    assert_eq!(nodes[0].get("/cluster/status").says(200)["term"], 1, "nobody changed anything");
}

#[test]
fn methods_that_are_not_described_are_not_served() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    let document = document(&node);
    let described: BTreeSet<_> =
        document.operations().into_iter().map(|it| (it.path.to_owned(), it.method)).collect();
    let paths: BTreeSet<_> = described.iter().map(|(path, _)| path.clone()).collect();
    for path in paths {
        let has = |method: &str| described.contains(&(path.clone(), method.to_owned()));
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"] {
            if has(method) {
                continue;
            }
            let answer = ask(node.address, method, &path, &[], "");
            answer.refuses(405, "not asked for in that way");
            let allowed = answer.header("allow").unwrap_or_default();
            assert!(allowed.split([',', ' ']).any(|it| !it.is_empty() && has(it)), "{path}: {answer:?}");
        }
        // What can be read can be looked at.
        if has("GET") {
            let head = ask(node.address, "HEAD", &path, &[], "");
            assert!(matches!(head.status, 200 | 503) && head.body.is_empty(), "{path}: {head:?}");
        }
    }
}

#[test]
fn who_may_not_change_anything_is_told_so_as_described() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    let without = {
        let mut command = stage.tenure();
        command.args(["node", "--node", "without", "--listen", "127.0.0.1:0"]);
        stage.serve("without", command)
    };
    let document = document(&node);
    let orders: Vec<_> = document.operations().into_iter().filter(Operation::needs_the_token).collect();
    let paths: Vec<_> = orders.iter().map(|order| order.path).collect();
    let work = ["/cluster/partitions/release", "/cluster/partitions/work"];
    assert_eq!(paths, [&work[..], &["/cluster/resign", "/cluster/transfer"]].concat());
    for order in &orders {
        for authorization in
            ["", "Bearer", "Bearer ", "Bearer wrong-horse-battery-staple", "Basic Og==", "\u{fc}"]
        {
            let answer = asked(&node, order, "", &[("Authorization", authorization)], "{}");
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, Some("Bearer")),
                "{answer:?}"
            );
        }
        // No token would help there: that is another answer.
        for headers in [&[][..], &[("Authorization", bearer().as_str())]] {
            assert_eq!(asked(&without, order, "", headers, "{}").status, 403);
        }
    }
}

/// Bodies for an operation: right and wrong ones for every field, and none that are JSON at all.
fn bodies(operation: &Operation<'_>) -> Vec<String> {
    let mut bodies: Vec<String> =
        ["", "{}", "null", "[]", "7", "\"text\"", "{", "nonsense", "{\"\": 1}", "\0", "{}{}"]
            .map(str::to_owned)
            .to_vec();
    bodies.push("[".repeat(5000));
    let long = |length: usize| format!("\"{}\"", "x".repeat(length));
    let values = [
        "\"nobody\"",
        "\"\"",
        "null",
        "7",
        "-1",
        "true",
        "[]",
        "{}",
        "\"a\\r\\nb\"",
        "\"\\u0000\"",
        "\"größe\"",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([long(128), long(129), long(4000)]);
    for value in values {
        for (name, _) in operation.fields() {
            bodies.push(format!("{{\"{name}\": {value}}}"));
            if name != "to" {
                bodies.push(format!("{{\"to\": \"nobody\", \"{name}\": {value}}}"));
            }
        }
        bodies.push(format!("{{\"to\": \"nobody\", \"unheard-of\": {value}}}"));
    }
    bodies
}

#[test]
fn bodies_are_taken_or_refused_as_described() {
    let stage = Stage::new();
    // Without a leader nothing that is let through changes anything.
    let node = stage.node("a", &["--eligible=false"]);
    let document = document(&node);
    let mut seen = BTreeSet::new();
    for operation in document.operations().iter().filter(|it| it.method == "POST") {
        assert!(!operation.fields().is_empty(), "{}", operation.path);
        for body in bodies(operation) {
            for kind in
                ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
            {
                let headers = [("Authorization", bearer()), ("Content-Type", kind.to_owned())];
                let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
                let answer = settled(&node, operation, "", &headers, &body);
                // A control character is JSON, and no name.
                let right = operation.takes_body(&body) && !body.contains("\\r") && !body.contains("\\u0000");
                let expected = if right { 409 } else { 400 };
                assert_eq!(answer.status, expected, "{} {body:?}: {answer:?}", operation.path);
                seen.insert(answer.status);
            }
        }
        let headers = [("Authorization", bearer())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        seen.insert(settled(&node, operation, "", &headers, &"x".repeat(17_000)).status);
    }
    assert_eq!(seen, BTreeSet::from([400, 409, 413]));
}

#[test]
fn parameters_are_taken_or_refused_as_described() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    let document = document(&node);
    let long = "x".repeat(129);
    let values = [
        "0",
        "1",
        "1000",
        "1001",
        "-1",
        "0x10",
        "1.5",
        "",
        "x",
        "coordinator",
        "null",
        "true",
        "9223372036854775807",
        &long,
    ];
    let mut asked_for = 0;
    for operation in document.operations().iter().filter(|it| it.method == "GET") {
        for (name, schema) in operation.parameters() {
            for value in values {
                let answer = settled(&node, operation, &format!("?{name}={value}"), &[], "");
                let right = operation.takes_value(schema, value);
                assert_eq!(answer.status == 200, right, "{name}={value} ({schema}): {answer:?}");
                asked_for += 1;
            }
            for odd in ["%00", "%0d%0aX-Evil:%201", "%ff", "%", "%zz", "a&b=c", "&&", "1&%67=1"] {
                let answer = asked(&node, operation, &format!("?{name}={odd}"), &[], "");
                assert!(answer.header("x-evil").is_none(), "{answer:?}");
            }
            assert_eq!(settled(&node, operation, &format!("?{name}=1&{name}=1"), &[], "").status, 400);
        }
    }
    assert_eq!(asked_for, 4 * values.len(), "`since`, `limit`, `election` and `task_list` are described");
    let events = document.operation("GET", "/cluster/events");
    assert_eq!(settled(&node, &events, "?unheard-of=1", &[], "").status, 400);
    for id in ["x", "-1", "", "1 2", "18446744073709551616"] {
        let stream = [("Accept", "text/event-stream"), ("Last-Event-ID", id)];
        let answer = settled(&node, &events, "", &stream, "");
        assert_eq!(answer.status, 400, "{id:?}: {answer:?}");
    }
}

#[test]
fn every_row_of_the_contract_is_described() {
    let stage = Stage::new();
    let document = document(&stage.node("a", &[]));
    let refusals = |operation: &Operation<'_>| {
        operation.statuses().into_iter().filter(|status| *status >= 400).collect::<Vec<_>>()
    };
    for (method, path, refused) in [
        ("GET", "/cluster/status", &[421][..]),
        ("GET", "/cluster/leader", &[421, 503]),
        ("GET", "/cluster/health", &[421, 503]),
        ("GET", "/cluster/nodes", &[421]),
        ("GET", "/cluster/events", &[400, 421, 503]),
        ("GET", "/cluster/elections", &[421, 503]),
        ("GET", "/cluster/partitions", &[421, 503]),
        ("GET", "/cluster/partitions/mine", &[400, 421]),
        ("POST", "/cluster/partitions/work", &[400, 401, 403, 408, 409, 413, 421, 503]),
        ("POST", "/cluster/partitions/release", &[400, 401, 403, 408, 409, 413, 421, 503]),
        ("GET", "/leader", &[503]),
        ("HEAD", "/leader", &[503]),
        ("OPTIONS", "/leader", &[503]),
        ("GET", "/follower", &[503]),
        ("HEAD", "/follower", &[503]),
        ("OPTIONS", "/follower", &[503]),
        ("GET", "/live", &[503]),
        ("GET", "/ready", &[503]),
        ("GET", "/metrics", &[]),
        ("GET", "/openapi.json", &[421]),
        ("GET", "/", &[421]),
        ("GET", "/page.js", &[421]),
        ("GET", "/story.js", &[421]),
        ("GET", "/map.js", &[421]),
        ("GET", "/page.css", &[421]),
        ("POST", "/cluster/resign", &[400, 401, 403, 408, 409, 413, 421, 503]),
        ("POST", "/cluster/transfer", &[400, 401, 403, 408, 409, 413, 421, 503]),
    ] {
        let operation = document.operation(method, path);
        assert_eq!(refusals(&operation), refused, "{method} {path}");
        assert_eq!(operation.needs_the_token(), method == "POST", "{method} {path}");
    }
    assert_eq!(document.0["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let operations =
        document.0["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let ids: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "each has a name of its own: {ids:?}");
}
