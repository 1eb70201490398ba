//! HTTP/1.1 connections that are used again, and what was certainly not sent.
//!
//! Written here, and not taken from a client library, for two things that one does not offer: a last check
//! between "the connection is there" and "the request is on it", and the request given back when it was
//! not sent. Both decide whether something may be executed twice, or by the wrong node.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::body::Foreign;
use super::origin::Origin;
use super::prompt::Prompt;
use crate::provider::provider;

/// How long things may take, and how much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// To connect (default 2 s).
    pub connect: Duration,
    /// From the request to the head of its response (default 60 s).
    pub answer: Duration,
    /// How long an idle connection is kept: shorter than the servers that we know keep it (Node.js: 5 s),
    /// so that no request meets a connection that is just being closed (default 4 s).
    pub idle: Duration,
    /// How many idle connections are kept per server (default 64).
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            answer: Duration::from_secs(60),
            idle: Duration::from_secs(4),
            connections: 64,
        }
    }
}

/// What became of a request that has no response.
pub(crate) enum Failure {
    /// It was not sent, not a byte of it, and here it is again.
    Unsent(Box<Request<Foreign>>),
    /// It was not sent, because it must not be any more.
    TooLate,
    /// It was sent, at least in part, and the connection broke.
    Broken,
    /// It was sent, and there is no answer in time.
    TimedOut,
}

#[derive(Debug)]
pub(crate) struct Wire {
    limits: Limits,
    tls: Option<Arc<rustls::ClientConfig>>,
    idle: Mutex<HashMap<Origin, Vec<Idle>>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Foreign>,
    since: Instant,
}

impl Wire {
    pub(crate) fn new(limits: Limits, tls: Option<Arc<rustls::ClientConfig>>) -> Arc<Self> {
        Arc::new(Self { limits, tls, idle: Mutex::default() })
    }

    /// Sends a request at most once. `may_go` is asked when there is nothing left to wait for.
    pub(crate) async fn send(
        self: &Arc<Self>,
        to: &Origin,
        mut request: Request<Foreign>,
        may_go: impl Fn() -> bool,
    ) -> Result<Response<Incoming>, Failure> {
        loop {
            let (mut sender, fresh) = match self.take(to) {
                Some(sender) => (sender, false),
                None => match timeout(self.limits.connect, self.connect(to)).await {
                    Ok(Ok(sender)) => (sender, true),
                    Ok(Err(error)) => {
                        tracing::debug!(target: "tenure", %to, %error, "no connection");
                        return Err(Failure::Unsent(Box::new(request)));
                    }
                    Err(_) => return Err(Failure::Unsent(Box::new(request))),
                },
            };
            if sender.ready().await.is_err() {
                if fresh {
                    return Err(Failure::Unsent(Box::new(request)));
                }
                continue; // it was closed while it was idle
            }
            if !may_go() {
                self.keep(to.clone(), sender);
                return Err(Failure::TooLate);
            }
            match timeout(self.limits.answer, sender.try_send_request(request)).await {
                Ok(Ok(response)) => {
                    self.keep(to.clone(), sender);
                    return Ok(response);
                }
                Ok(Err(mut error)) => match error.take_message() {
                    Some(unsent) if fresh => return Err(Failure::Unsent(Box::new(unsent))),
                    Some(unsent) => request = unsent,
                    None => {
                        tracing::debug!(target: "tenure", %to, error = %error.error(), "the answer was lost");
                        return Err(Failure::Broken);
                    }
                },
                Err(_) => return Err(Failure::TimedOut),
            }
        }
    }

    fn take(&self, to: &Origin) -> Option<SendRequest<Foreign>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.get_mut(to)?;
        kept.retain(|idle| idle.since.elapsed() < self.limits.idle && !idle.sender.is_closed());
        kept.pop().map(|idle| idle.sender)
    }

    /// Keeps a connection for the next request, once the response of this one has been read.
    fn keep(self: &Arc<Self>, to: Origin, mut sender: SendRequest<Foreign>) {
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            if sender.ready().await.is_err() {
                return;
            }
            let mut idle = wire.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = idle.entry(to).or_default();
            if kept.len() < wire.limits.connections {
                kept.push(Idle { sender, since: Instant::now() });
            }
        });
    }

    async fn connect(&self, to: &Origin) -> io::Result<SendRequest<Foreign>> {
        let stream = dial(to).await?;
        if !to.is_https() {
            return shake_hands(stream).await;
        }
        let config = match &self.tls {
            Some(config) => Arc::clone(config),
            None => system_trust()?,
        };
        let name = ServerName::try_from(to.host().to_owned()).map_err(io::Error::other)?;
        shake_hands(TlsConnector::from(config).connect(name, stream).await?).await
    }
}

/// The first address of the host that answers, of those that may be called.
async fn dial(to: &Origin) -> io::Result<Prompt> {
    let mut last =
        io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address that may be called");
    for address in tokio::net::lookup_host((to.host(), to.port())).await? {
        if !Origin::may_be_called(address.ip()) {
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Prompt(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn shake_hands<T>(stream: T) -> io::Result<SendRequest<Foreign>>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        // Whoever waits for a response hears of it.
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

/// What the system trusts, read when it is needed for the first time.
fn system_trust() -> io::Result<Arc<rustls::ClientConfig>> {
    static TRUST: std::sync::OnceLock<Arc<rustls::ClientConfig>> = std::sync::OnceLock::new();
    if let Some(config) = TRUST.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    Ok(Arc::clone(TRUST.get_or_init(|| config)))
}

/// A response with the body in a box.
pub(super) fn boxed(response: Response<Incoming>) -> Response<Foreign> {
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::super::body;
    use super::*;

    #[test]
    fn an_application_that_installs_no_provider_can_forward_to_https() {
        assert!(
            rustls::crypto::CryptoProvider::get_default().is_none(),
            "no test of this crate's own installs one"
        );
        assert!(system_trust().is_ok());
    }

    #[tokio::test]
    async fn a_request_that_may_not_go_any_more_when_the_connection_is_there_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin: Origin = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let wire = Wire::new(Limits::default(), None);
        let request = Request::post("/orders").body(body::text(String::from("x"))).unwrap();
        let sent = wire.send(&origin, request, || false).await;
        assert!(matches!(sent, Err(Failure::TooLate)));
        let (mut program, _) = listener.accept().await.unwrap();
        drop(wire); // and with it the connection
        let mut read = Vec::new();
        program.read_to_end(&mut read).await.unwrap();
        assert!(read.is_empty(), "not a byte");
    }
}
