//! `--health-cmd` and `--health-url`: a node whose check fails leads nothing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::stage::{Stage, lives, now, until};
use super::witness;

const TTL: &str = "2s";

#[test]
fn a_program_runs_only_while_the_health_command_passes() {
    let stage = Stage::new();
    let well = stage.path("well");
    let check = format!("test -e {}", well.display());
    let run = stage.run("alpha", &["--ttl", TTL, "--health-cmd", &check], &witness::command());
    run.until_said("the health check fails: `test -e ");
    std::fs::write(&well, "").unwrap();
    run.until_said("the health check passes");
    let first = stage.beat_of("alpha", 0);

    std::fs::remove_file(&well).unwrap();
    until("the program is ended", || !lives(first.pid));
    let ended = now();
    std::fs::write(&well, "").unwrap();
    let second = stage.beat_of("alpha", ended);
    assert!(second.term > first.term);
}

#[test]
fn another_takes_over_from_a_leader_whose_health_url_fails() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    let well = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&well);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let status = if told.load(Ordering::Relaxed) { "200 OK" } else { "503 Service Unavailable" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let first = stage.witness("alpha", &["--ttl", TTL, "--health-cmd", "true", "--health-url", &url]);
    let beat = stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", TTL]);
    well.store(false, Ordering::Relaxed);
    stage.beat_of("beta", 0);
    assert!(!lives(beat.pid));
    first.until_said("answers with 503 Service Unavailable");
    witness::no_overlap(&stage.log());
}

#[test]
fn checks_that_cannot_work_are_refused_with_what_does() {
    let stage = Stage::new();
    let refused = |flags: &[&str]| {
        let mut command = stage.tenure();
        let said = command.args(["run", "--election", "nightly"]).args(flags).args(["--", "true"]).output();
        let said = said.unwrap();
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        String::from_utf8(said.stderr).unwrap()
    };
    let url = refused(&["--health-url", "localhost/health"]);
    assert!(url.contains("a right one is http://127.0.0.1:9000/health"), "{url}");
    let time = refused(&["--health-cmd", "true", "--health-every", "0s"]);
    assert!(time.contains("must be longer than 0s"), "{time}");
}
