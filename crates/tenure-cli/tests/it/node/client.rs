//! A client that sends exactly what it is told, and reads what comes.
#![allow(dead_code, reason = "every test target uses its own part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::stage::HANG;

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Demands an answer in JSON with this status.
    pub fn says(&self, status: u16) -> Value {
        assert_eq!(
            (self.status, self.header("content-type")),
            (status, Some("application/json")),
            "{self:?}"
        );
        self.json()
    }

    /// Demands a refusal as RFC 9457 has it, with these words in it.
    pub fn refuses(&self, status: u16, words: &str) -> Value {
        let kind = self.header("content-type");
        assert_eq!((self.status, kind), (status, Some("application/problem+json")), "{self:?}");
        assert!(self.body.contains(words), "not `{words}`: {self:?}");
        let problem = self.json();
        assert_eq!(
            (problem["status"].as_u64(), problem["type"].as_str()),
            (Some(u64::from(status)), Some("about:blank"))
        );
        problem
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream.set_write_timeout(Some(HANG)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, &[], "")
}

/// Asks on a connection of its own.
pub fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    try_ask(&mut connect(address), address, method, path, headers, body).expect("there is an answer")
}

/// The same on any connection; `None` if it is closed without an answer.
pub fn try_ask(
    stream: &mut (impl Read + Write),
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<Answer> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    // A server that refuses early may close before all is sent.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    understand(&String::from_utf8_lossy(&text))
}

fn understand(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    Some(Answer { status, headers, body: body.to_owned() })
}

/// A stream of events.
pub struct Events {
    lines: BufReader<TcpStream>,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub id: u64,
    pub kind: String,
    pub data: Value,
}

impl Events {
    pub fn follow(address: SocketAddr, query: &str, after: Option<u64>) -> Self {
        let resume = after.map(|id| ("Last-Event-ID", id.to_string()));
        let headers: Vec<_> =
            [("Accept", String::from("text/event-stream"))].into_iter().chain(resume).collect();
        Self::open(address, "GET", &format!("/cluster/events{query}"), &headers, "")
    }

    /// Asks for a stream.
    pub fn open(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Self {
        let mut stream = connect(address);
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        Self { lines }
    }

    /// The next event; `None` at the end of the stream.
    pub fn next(&mut self) -> Option<Event> {
        let (mut id, mut kind, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("a line, or the end") == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(value) = line.strip_prefix("id: ") {
                id = value.parse().ok();
            } else if let Some(value) = line.strip_prefix("event: ") {
                kind = Some(value.to_owned());
            } else if let Some(value) = line.strip_prefix("data: ") {
                data = serde_json::from_str(value).ok();
            } else if line.is_empty()
                && let (Some(kind), Some(data)) = (kind.take(), data.take())
            {
                return Some(Event { id: id.take().unwrap_or(0), kind, data });
            }
        }
    }

    /// Waits for an event of this kind, about this node.
    pub fn until(&mut self, kind: &str, node: &str) -> Event {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the stream ended before {kind} of {node}"));
            if event.kind == kind && event.data["node"] == node {
                return event;
            }
        }
    }

    /// Waits for its end.
    pub fn end(mut self) {
        while self.next().is_some() {}
    }
}

/// A wait between two looks.
pub fn breathe() {
    std::thread::sleep(Duration::from_millis(5));
}
