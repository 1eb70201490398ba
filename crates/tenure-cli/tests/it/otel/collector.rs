//! A collector that keeps what it is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::stage::until;

pub struct Collector {
    pub endpoint: String,
    /// The bodies, one after the other. In protobuf, texts are themselves.
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || receive(stream.unwrap(), &kept));
            }
        });
        Self { endpoint, sent }
    }

    pub fn was_sent(&self, text: &str) -> bool {
        let sent = self.sent.lock().unwrap();
        sent.windows(text.len()).any(|part| part == text.as_bytes())
    }

    pub fn until_sent(&self, texts: &[&str]) {
        for text in texts {
            until(&format!("`{text}` is sent"), || self.was_sent(text).then_some(()));
        }
    }
}

/// Requests with a length, one after the other.
fn receive(stream: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (Vec::new(), String::new());
        while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push(std::mem::take(&mut line).trim().to_ascii_lowercase());
        }
        let Some(first) = head.first() else { return };
        assert_eq!(first, "post /v1/traces http/1.1");
        assert!(head.iter().any(|header| header == "content-type: application/x-protobuf"), "{head:?}");
        let length = head.iter().find_map(|header| header.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        kept.lock().unwrap().extend(body);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        stream.get_mut().write_all(answer).unwrap();
    }
}
