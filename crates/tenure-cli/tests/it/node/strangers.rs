//! Those who mean harm, and those who are only broken: refused clearly, and leadership is unaffected.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tenure_store::clock;

use super::client::{Events, ask, connect, try_ask};
use super::stage::{Served, Stage, until};

/// Leads under its first term, and answers.
fn assert_unaffected(node: &Served) {
    assert_eq!(node.get("/leader").status, 200);
    assert_eq!(node.get("/cluster/status").says(200)["term"], 1);
}

/// Waits until the server closes a connection; what it said before.
fn closed(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the server keeps a connection that it should have closed")
        }
        _ => String::from_utf8_lossy(&text).into_owned(),
    }
}

#[test]
fn fuzz_requests_that_nobody_would_send_are_answered_or_ended() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.until_ok("/leader");
    let samples: [&[u8]; 4] = [
        b"GET /cluster/events?since=1&limit=10&election=x HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 7\r\n\r\n",
        b"POST /cluster/transfer HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nContent-Length: 10\r\n\r\n{\"to\":\"b\"}",
        b"POST /cluster/resign HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    tenure_testkit::fuzz::fuzz_times(500, &samples, |bytes| {
        let mut stream = connect(node.address);
        // It may have heard enough before the end.
        let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        closed(stream);
    });
    assert_unaffected(&node);
}

#[test]
fn slow_and_half_open_clients_are_shown_the_door() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.until_ok("/leader");
    let began = clock::now();
    let never_speaks: Vec<_> = (0..50).map(|_| connect(node.address)).collect();
    let mut half_a_head: Vec<_> = (0..50).map(|_| connect(node.address)).collect();
    for stream in &mut half_a_head {
        stream.write_all(b"GET /leader HTTP/1.1\r\nHost: 127").unwrap();
    }
    let mut half_a_body = connect(node.address);
    half_a_body
        .write_all(b"POST /cluster/resign HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{")
        .unwrap();
    // A byte now and then does not help.
    let mut drips = connect(node.address);
    let dripping = std::thread::spawn(move || {
        let head = b"GET /leader HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
        let mut sent = 0;
        while drips.write_all(&[*head.get(sent).unwrap_or(&b'x')]).is_ok() {
            sent += 1;
            std::thread::sleep(Duration::from_millis(200));
        }
        sent
    });
    assert_unaffected(&node);
    half_a_head.into_iter().for_each(|stream| _ = closed(stream));
    assert!(clock::now().since(began) >= Duration::from_secs(5), "honest clients have time");
    assert!(dripping.join().unwrap() > 10);
    let said = closed(half_a_body);
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    drop(never_speaks);
    assert_unaffected(&node);
}

#[test]
fn heads_that_are_too_long_or_too_many_are_refused() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.until_ok("/leader");
    let mut stream = connect(node.address);
    let _ = stream.write_all(b"GET /leader HTTP/1.1\r\nHost: localhost\r\nX-Big: ");
    let chunk = vec![b'x'; 64 * 1024];
    // Ten megabytes, or until the server has had enough.
    let taken = (0..160).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(taken < 160, "it took all of it");
    let many: Vec<(String, String)> =
        (0..1000).map(|number| (format!("X-{number}"), String::from("y"))).collect();
    let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = try_ask(&mut connect(node.address), node.address, "GET", "/leader", &many, "");
    assert!(answer.is_none_or(|answer| answer.status == 431), "a thousand headers");
    let path = format!("/cluster/events?election={}", "x".repeat(20_000));
    let answer = try_ask(&mut connect(node.address), node.address, "GET", &path, &[], "");
    assert!(answer.is_none_or(|answer| matches!(answer.status, 414 | 431)), "a long path");
    assert_unaffected(&node);
}

#[test]
fn too_many_streams_are_refused_and_the_others_go_on() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.until_ok("/leader");
    let mut first = Events::follow(node.address, "", None);
    let head = format!(
        "GET /cluster/events HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
        node.address
    );
    let mut streams = Vec::new();
    for _ in 0..2000 {
        let mut stream = connect(node.address);
        stream.write_all(head.as_bytes()).unwrap();
        streams.push(stream);
    }
    let mut refused = 0;
    for stream in &mut streams {
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        match &start {
            b"HTTP/1.1 200" => {}
            b"HTTP/1.1 503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert_eq!(refused, 2001 - 1024);
    ask(node.address, "GET", "/cluster/events", &[("Accept", "text/event-stream")], "")
        .refuses(503, "too many event streams");
    assert_unaffected(&node);
    let other = stage.node("b", &[]);
    first.until("node_joined", "b");
    drop(streams);
    drop(other);
    // Their places are free again.
    until("there is a place", || {
        let mut stream = connect(node.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        (&start == b"HTTP/1.1 200").then_some(())
    });
    assert_unaffected(&node);
}

#[test]
fn a_node_answers_only_to_its_own_names() {
    let stage = Stage::new();
    let flags = ["--address", "http://node-1.example:9", "--allow-host", "also.example"];
    let node = stage.node("a", &flags);
    for known in ["localhost", "127.0.0.1:1", "[::1]", "node-1.example:9", "also.example", "ALSO.EXAMPLE:80"]
    {
        ask(node.address, "GET", "/cluster/status", &[("Host", known)], "").says(200);
    }
    for unknown in ["evil.example", "also.example.evil", "node-1.example.", "a@localhost", "x y"] {
        let answer = ask(node.address, "GET", "/cluster/status", &[("Host", unknown)], "");
        let fine = unknown == "node-1.example."; // the same name, written out
        assert_eq!(answer.status == 200, fine, "{unknown}: {answer:?}");
        if answer.status == 421 {
            answer.refuses(421, "does not go by that name");
        }
    }
}

#[test]
fn what_is_no_http_is_refused() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.until_ok("/leader");
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"GET /leader\r\n\r\n",
        b"\0\0\0\0\0\r\n\r\n",
        b"GET /leader HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /leader HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
    ] {
        let mut stream = connect(node.address);
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let said = closed(stream);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    }
    assert_unaffected(&node);
}

#[test]
fn names_cannot_break_out_of_a_header_or_a_path() {
    let stage = Stage::new();
    let node = stage.node("größe \"7\" <b>", &[]);
    node.until_ok("/leader");
    let answer = node.get("/leader");
    assert_eq!(answer.status, 200);
    assert!(answer.header("tenure-leader").is_some_and(|leader| leader.contains("<b>")), "{answer:?}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "nobody takes it for a page");
    let election = "/cluster/events?election=a%0d%0aX-Evil:%201";
    node.get(election).refuses(400, "control character");
    let answer = node.get("/%0d%0aX-Evil:%201");
    assert!(answer.status == 404 && answer.header("x-evil").is_none(), "{answer:?}");
}

#[test]
fn only_pages_of_nodes_of_the_cluster_may_read_from_another_origin() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &[]);
    let other = format!("http://{}", nodes[1].address);
    let allowed = |method: &str, path: &str, origin: &str| {
        let answer = ask(nodes[0].address, method, path, &[("Origin", origin)], "");
        answer.header("access-control-allow-origin").map(str::to_owned)
    };
    for path in ["/cluster/status", "/cluster/events", "/metrics", "/cluster/health"] {
        assert_eq!(allowed("GET", path, &other).as_deref(), Some(other.as_str()), "{path}");
    }
    for stranger in ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1.evil.example"] {
        assert_eq!(allowed("GET", "/cluster/status", stranger), None, "{stranger}");
    }
    // To change something from there is refused, and the browser is not even told why.
    assert_eq!(allowed("POST", "/cluster/resign", &other), None);
    assert_eq!(allowed("OPTIONS", "/cluster/resign", &other), None);
    let policy = nodes[0].get("/").header("content-security-policy").unwrap().to_owned();
    assert!(
        policy.contains(&other) && policy.contains("script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
}
