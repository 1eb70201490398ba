//! Connections to members: taken for one question, put back once it was answered.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use tenure_core::Instant;
use tenure_store::clock;
use tokio::net::TcpStream;

use crate::address::host_of;
use crate::socket;
use crate::tls::Encryption;
use crate::wire::{Connection, Protocols, Request, Response};

/// How long it may take to reach a member and to agree how to speak.
const REACH: Duration = Duration::from_secs(1);
/// How many connections to one member are kept for later.
const IDLE: usize = 16;
/// For how long. A member closes those that nobody has used for a minute.
const IDLE_FOR: Duration = Duration::from_secs(20);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The member was not reached: nothing happened.
    NotSent(io::Error),
    /// It was asked, and nobody knows what came of it.
    Unanswered(io::Error),
}

/// The connections of one process.
pub(crate) struct Lines {
    encryption: Encryption,
    protocols: Protocols,
    /// Each with the instant at which it was put back; the one that was used last is last.
    idle: Mutex<HashMap<String, Vec<(Connection, Instant)>>>,
}

impl Lines {
    pub(crate) fn new(encryption: Encryption, protocols: Protocols) -> Self {
        Self { encryption, protocols, idle: Mutex::default() }
    }

    /// Asks a member. A connection on which the answer is not awaited any more is never used again: the next
    /// answer on it would be to this question.
    pub(crate) async fn ask(&self, address: &str, request: &Request) -> Result<Response, Trouble> {
        if let Some(mut connection) = self.take(address) {
            // It may have been closed while it lay idle. Asking twice does no harm: every verb is idempotent.
            if let Ok(response) = exchange(&mut connection, request).await {
                self.put_back(address, connection);
                return Ok(response);
            }
        }
        let mut connection = self.connect(address).await.map_err(Trouble::NotSent)?;
        let response = exchange(&mut connection, request).await.map_err(Trouble::Unanswered)?;
        self.put_back(address, connection);
        Ok(response)
    }

    /// A fresh connection.
    pub(crate) async fn connect(&self, address: &str) -> io::Result<Connection> {
        let reached = async {
            let host =
                host_of(address).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let stream = TcpStream::connect(address).await?;
            socket::prepare(&stream)?;
            let stream = self.encryption.connect(stream, host).await?;
            Connection::introduce(stream, self.protocols).await
        };
        match tokio::time::timeout(REACH, reached).await {
            Ok(connection) => connection,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answers")),
        }
    }

    /// Uses no connection that is open now.
    pub(crate) fn reset(&self) {
        self.idle().clear();
    }

    fn take(&self, address: &str) -> Option<Connection> {
        let mut idle = self.idle();
        let kept = idle.get_mut(address)?;
        let now = clock::now();
        let fresh = kept.pop().filter(|(_, since)| now.since(*since) <= IDLE_FOR);
        if fresh.is_none() {
            // The others were used even longer ago.
            idle.remove(address);
        }
        fresh.map(|(connection, _)| connection)
    }

    fn put_back(&self, address: &str, connection: Connection) {
        let mut idle = self.idle();
        let lines = idle.entry(address.to_owned()).or_default();
        if lines.len() < IDLE {
            lines.push((connection, clock::now()));
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<(Connection, Instant)>>> {
        self.idle.lock().expect("nobody panics over the connections")
    }
}

async fn exchange(connection: &mut Connection, request: &Request) -> io::Result<Response> {
    connection.send(request).await?;
    connection.receive().await
}
