//! A server that strangers cannot wear out: bounded connections, headers, waits.

mod certificate;
mod door;
mod idle;
mod open_requests;
mod tide;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use idle::Idle;
use open_requests::{CountedBody, OpenRequests};
use tide::Tide;
pub use tls::{Tls, TlsError};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How soon to accept again after the system refused.
const BREATH: Duration = Duration::from_millis(50);

/// How long a client has to begin its first request, whenever the server stops. It was told that it is
/// connected; if it is sent away then, it cannot know whether its request was executed.
const FIRST_WORD: Duration = Duration::from_millis(250);

/// What a client may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; further ones wait to be accepted.
    pub connections: usize,
    /// How long the head of a request, or a TLS handshake, may take. Also how long a connection may lie
    /// idle between requests.
    pub head: Duration,
    /// After how long without a byte either way, or without an open request, a connection is closed. Streams
    /// of events send a byte every 15 s.
    pub idle: Duration,
    /// The longest head of a request, in bytes.
    pub head_bytes: usize,
    /// Requests at a time on one connection of HTTP/2.
    pub concurrent: u32,
    /// How long open requests may take to finish when the server stops.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            head_bytes: 16 * 1024,
            concurrent: 100,
            farewell: Duration::from_secs(2),
        }
    }
}

/// An address that is taken, and how it is served.
#[derive(Debug)]
pub struct Server {
    socket: TcpSocket,
    tls: Option<Tls>,
    limits: Limits,
}

impl Server {
    /// Takes this address. Until it is served, connections are refused: a load balancer then tries the next
    /// node, and nobody waits for one that is about to start.
    ///
    /// # Errors
    /// If the address is taken, or not ours.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?; // of connections of a former life
        socket.bind(address)?;
        Ok(Self { socket, tls: None, limits: Limits::default() })
    }

    /// With TLS.
    #[must_use]
    pub fn tls(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls;
        self
    }

    /// With other limits.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Only if the system is broken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Listens from now on. The future serves until `stop` is cancelled; then open requests have a moment to
    /// finish.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn serve(
        self,
        router: Router,
        stop: CancellationToken,
    ) -> io::Result<impl Future<Output = ()> + Send + 'static> {
        let listener = self.socket.listen(BACKLOG)?;
        Ok(attend(listener, self.tls, self.limits, router, stop))
    }
}

/// What every connection is served with.
struct Attendance {
    limits: Limits,
    acceptor: Option<TlsAcceptor>,
    builder: Builder<TokioExecutor>,
    router: Router,
    stop: CancellationToken,
    tide: Arc<Tide>,
}

async fn attend(
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
    router: Router,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    if let Some(tls) = &tls {
        let keep_fresh = Arc::clone(&tls.certificate).keep_fresh();
        connections.spawn(stop.clone().run_until_cancelled_owned(keep_fresh));
    }
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config));
    let (builder, tide) = (builder(&limits), Arc::new(Tide::default()));
    let attendance = Arc::new(Attendance { limits, acceptor, builder, router, stop: stop.clone(), tide });
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                connections.spawn(Arc::clone(&attendance).serve(stream, place));
            }
            Err(error) => {
                // Out of descriptors, say. Whoever holds them lets go in time.
                tracing::warn!(target: "tenure", %error, "a connection was not accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    for (stream, place) in door::close(listener, &places) {
        connections.spawn(Arc::clone(&attendance).serve(stream, place));
    }
    connections.close();
    // Whoever has not finished by then is cut off.
    let _ = tokio::time::timeout(limits.farewell, connections.wait()).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?.0, place))
}

impl Attendance {
    /// Serves one connection until it ends.
    async fn serve(self: Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        // Dropped last, after all that the connection has used.
        let _held = (place, self.tide.rise());
        // Events are small, and late if they wait for more.
        let _ = stream.set_nodelay(true);
        let (stream, since) = (Idle::new(stream, self.limits.idle), Instant::now());
        match &self.acceptor {
            None => self.converse(stream, since).await,
            Some(acceptor) => {
                let shaken = tokio::time::timeout(self.limits.head, acceptor.accept(stream)).await;
                if let Ok(Ok(stream)) = shaken {
                    self.converse(stream, since).await;
                }
            }
        }
    }

    /// Answers requests until the connection ends, or until the server stops and its requests are answered.
    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, since: Instant) {
        let (router, requests) = (TowerToHyperService::new(self.router.clone()), OpenRequests::default());
        let counting = requests.clone();
        let service = service_fn(move |request| {
            let open = counting.begin();
            let answered = router.call(request);
            async move { answered.await.map(|response| response.map(|body| CountedBody::new(body, open))) }
        });
        let mut connection =
            std::pin::pin!(self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep_until(since + FIRST_WORD).await;
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = requests.none_for(self.limits.idle) => {
                // A request that is on its way is answered.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(target: "tenure", error, "a connection ended early");
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let one = &mut builder.http1();
    one.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .max_headers(64);
    let head_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
    let two = &mut builder.http2();
    two.timer(TokioTimer::new())
        .max_header_list_size(head_bytes)
        .max_concurrent_streams(limits.concurrent)
        .keep_alive_interval(limits.idle / 3)
        .keep_alive_timeout(limits.head);
    builder
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A client that has sent a request, or is about to.
    async fn client(address: SocketAddr, speaks: bool) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if speaks {
            stream.write_all(REQUEST).await.unwrap();
        }
        stream
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    #[tokio::test]
    async fn whoever_is_connected_when_the_server_stops_is_answered_and_others_are_refused() {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", axum::routing::get(async || "here"));
        let serving = server.serve(router, stop.clone()).unwrap();
        // They wait in line: nobody has accepted them yet. The last one has not said a word.
        let mut clients = Vec::new();
        for number in 0..20 {
            clients.push(client(address, number < 19).await);
        }
        stop.cancel();
        let serving = tokio::spawn(serving);
        let mut silent = clients.pop().unwrap();
        for mut early in clients {
            let mut answer = String::new();
            early.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("here"), "{answer}");
        }
        let late = TcpStream::connect(address).await;
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(silent.read(&mut [0; 9]).await.unwrap(), 0, "nobody waits for it for ever");
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn who_comes_too_many_waits_until_another_has_gone() {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", axum::routing::get(async || "here"));
        let server = server.limits(Limits { connections: 1, ..Limits::default() });
        let serving = tokio::spawn(server.serve(router, stop.clone()).unwrap());
        let mut first = client(address, true).await;
        assert_ne!(first.read(&mut [0; 4096]).await.unwrap(), 0);
        let mut second = client(address, true).await;
        let too_early = tokio::time::timeout(Duration::from_millis(100), second.read_u8()).await;
        assert!(too_early.is_err(), "there is one place, and it is taken");
        drop(first);
        assert_eq!(second.read_u8().await.unwrap(), b'H');
        drop(second);
        stop.cancel();
        serving.await.unwrap();
    }

    /// A frame of HTTP/2: length, kind, flags, stream, payload.
    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    /// Answers pings and asks for nothing, until the connection is closed. How many pings those were.
    async fn answer_pings(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> u32 {
        let mut pings = 0;
        let Err(error) = answer(&mut stream, &mut pings).await;
        // The server may close it between a ping and its answer.
        assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe), "{error}");
        pings
    }

    /// Counts them, until the stream fails.
    async fn answer(
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        pings: &mut u32,
    ) -> io::Result<std::convert::Infallible> {
        const SETTINGS: u8 = 4;
        const PING: u8 = 6;
        const ACK: u8 = 1;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
        stream.write_all(&frame(SETTINGS, 0, &[])).await?;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload).await?;
            match (head[3], head[4]) {
                (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, ACK, &[])).await?,
                (PING, 0) => {
                    *pings += 1;
                    stream.write_all(&frame(PING, ACK, &payload)).await?;
                }
                _ => {}
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_http_2_that_only_answers_pings_does_not_keep_its_place() {
        let limits = Limits::default();
        let attendance = Attendance {
            limits,
            acceptor: None,
            builder: builder(&limits),
            router: Router::new(),
            stop: CancellationToken::new(),
            tide: Arc::default(),
        };
        // Bytes move all the time, so it is never idle.
        let (ours, theirs) = tokio::io::duplex(1024);
        let client = tokio::spawn(answer_pings(theirs));
        let served = attendance.converse(ours, Instant::now());
        let ended = tokio::time::timeout(limits.idle * 100, served).await;
        assert!(ended.is_ok(), "it is served as long as it answers pings");
        assert!(client.await.unwrap() > 0, "it was asked whether it is there");
    }
}
