//! The example `replica`, three times.

#[path = "../../examples/replica.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod replica;

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes, on any machine: reached only when something hangs.
const HANG: Duration = Duration::from_secs(180);

async fn ask(at: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// What `curl -L` does, for as long as nobody leads.
async fn order(at: &str, what: &str) -> String {
    let mut at = at.to_owned();
    loop {
        let answer = ask(&at, "POST /orders", what).await;
        let location = answer.lines().find_map(|line| line.strip_prefix("location: http://"));
        match answer.split(' ').nth(1) {
            Some("200") => return answer,
            Some("307") => at = location.unwrap().trim_end_matches("/orders").to_owned(),
            Some("503") => tokio::time::sleep(Duration::from_millis(5)).await,
            _ => panic!("{answer}"),
        }
    }
}

#[tokio::test]
async fn every_replica_takes_orders_by_sending_them_to_the_leader_and_all_answer_reads() {
    let directory = tempfile::tempdir().unwrap();
    let mut replicas = Vec::new();
    for id in ["alpha", "beta", "gamma"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        replicas.push(listener.local_addr().unwrap().to_string());
        let path = directory.path().to_owned();
        // Its error is not Send, so it gets a thread of its own.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let listener = listener.into_std().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                if let Err(error) = replica::serve(id, listener, path).await {
                    eprintln!("{id}: {error}");
                }
            });
        });
    }
    tokio::time::timeout(HANG, async {
        let mut taken = Vec::new();
        for (at, what) in replicas.iter().zip(["tea", "milk", "sugar"]) {
            let answer = order(at, what).await;
            let (_, line) = answer.split_once("\r\n\r\n").unwrap();
            assert!(line.ends_with(&format!(" {what}\n")), "{answer}");
            taken.push(line.to_owned());
        }
        for at in &replicas {
            let orders = ask(at, "GET /orders", "").await;
            // An order that a leader took with its last breath was sent again to the next one.
            let mut orders = orders.split_inclusive('\n');
            assert!(taken.iter().all(|line| orders.any(|order| order == line)), "{taken:?} at {at}");
        }
    })
    .await
    .expect("this takes too long: something hangs");
}
