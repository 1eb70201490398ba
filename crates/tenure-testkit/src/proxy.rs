//! A network that fails as told: a proxy on a free loopback port, in front of a server.
//!
//! It lives on a thread of its own, so no test can starve it. What it is told holds for all connections,
//! those that are there and those that come.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// One way of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What clients say.
    ToServer,
    /// What the server answers.
    ToClient,
}

/// What becomes of the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// They arrive, so much later.
    Pass(Duration),
    /// They are kept, and arrive in order once they may.
    Hold,
    /// They are gone, and nobody is told.
    Swallow,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    to_server: Way,
    to_client: Way,
    refuse: bool,
    /// How often all connections were reset.
    resets: u64,
    /// How often the connection that was held was released.
    releases: u64,
    /// The port of the server that new connections lead to.
    server: u16,
}

impl Rules {
    const fn way(&self, direction: Direction) -> Way {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }
}

/// Tells the request at which a connection is held.
type Trigger = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// What clients say.
#[derive(Default)]
struct Said {
    /// How often.
    requests: AtomicU64,
    trigger: Mutex<Option<Trigger>>,
}

impl Said {
    fn trigger(&self) -> MutexGuard<'_, Option<Trigger>> {
        self.trigger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of something that a client says. Tells whether its connection is held from now on.
    fn note(&self, bytes: &[u8]) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.trigger().take_if(|trigger| trigger(bytes)).is_some()
    }
}

/// A proxy in front of a server. It passes everything until told otherwise. Dropped, it ends all
/// connections.
///
/// A connection that has lost bytes is of no use any more: it is reset when they would pass again, as
/// its peers would find out by themselves.
pub struct Proxy {
    port: u16,
    rules: watch::Sender<Rules>,
    said: Arc<Said>,
    _running: oneshot::Sender<()>,
}

impl Proxy {
    /// A proxy in front of the server on this port of the loopback.
    ///
    /// # Panics
    /// If the system gives no port or thread.
    #[must_use]
    pub fn before(server: u16) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, server)
    }

    /// The same, reached at this address of ours.
    ///
    /// # Panics
    /// As for [`Proxy::before`].
    #[must_use]
    pub fn at(address: Ipv4Addr, server: u16) -> Self {
        let listener = StdListener::bind((address, 0)).expect("every address has a free port");
        listener.set_nonblocking(true).expect("a socket need not block");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let pass = Way::Pass(Duration::ZERO);
        let rules = Rules { to_server: pass, to_client: pass, refuse: false, resets: 0, releases: 0, server };
        let (rules, told) = watch::channel(rules);
        let (running, ended) = oneshot::channel::<()>();
        let said = Arc::new(Said::default());
        let noted = Arc::clone(&said);
        let run = move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("there is a runtime");
            runtime.spawn(accept(listener, told, noted));
            // Only ever ends by the sender being dropped.
            let _ = runtime.block_on(ended);
        };
        thread::Builder::new().name(String::from("proxy")).spawn(run).expect("there is a thread");
        Self { port, rules, said, _running: running }
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// How often clients have said something. Most say a request at once.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.said.requests.load(Ordering::Relaxed)
    }

    /// Everything passes. What was held arrives now.
    pub fn pass(&self) {
        self.delay(Duration::ZERO, Duration::ZERO);
    }

    /// Everything passes, but later.
    pub fn delay(&self, to_server: Duration, to_client: Duration) {
        self.rules.send_modify(|rules| {
            *rules = Rules {
                to_server: Way::Pass(to_server),
                to_client: Way::Pass(to_client),
                refuse: false,
                ..*rules
            };
        });
    }

    /// Nothing passes, and nothing is lost.
    pub fn hold(&self) {
        self.rules.send_modify(|rules| (rules.to_server, rules.to_client) = (Way::Hold, Way::Hold));
    }

    /// Nothing passes, all is lost, and nobody is told: connections stay open.
    pub fn drop_everything(&self) {
        self.rules.send_modify(|rules| (rules.to_server, rules.to_client) = (Way::Swallow, Way::Swallow));
    }

    /// The same in one direction only. Connections are half-open.
    pub fn cut(&self, direction: Direction) {
        self.rules.send_modify(|rules| match direction {
            Direction::ToServer => rules.to_server = Way::Swallow,
            Direction::ToClient => rules.to_client = Way::Swallow,
        });
    }

    /// The server hears and does what it is asked, and nobody hears its answers.
    pub fn lose_replies(&self) {
        self.cut(Direction::ToClient);
    }

    /// The first connection on which a client says something for which this is true is held from then on: it stays
    /// open, and nothing passes in either direction, that request included, until [`Proxy::release`]. All others go on.
    ///
    /// A request is what a client sends in one piece, as small ones are.
    pub fn hold_at(&self, trigger: impl FnMut(&[u8]) -> bool + Send + 'static) {
        *self.said.trigger() = Some(Box::new(trigger));
    }

    /// Whether the request was seen that [`Proxy::hold_at`] waits for.
    #[must_use]
    pub fn has_held(&self) -> bool {
        self.said.trigger().is_none()
    }

    /// The connection that was held goes on, and what was held arrives now.
    pub fn release(&self) {
        self.rules.send_modify(|rules| rules.releases += 1);
    }

    /// New connections are reset before a byte passes; those that are there go on.
    pub fn refuse(&self) {
        self.rules.send_modify(|rules| rules.refuse = true);
    }

    /// New connections lead to the server on this port of the loopback; those that are there go on.
    pub fn redirect(&self, server: u16) {
        self.rules.send_modify(|rules| rules.server = server);
    }

    /// Resets the connections that are there.
    pub fn reset(&self) {
        self.rules.send_modify(|rules| rules.resets += 1);
    }
}

async fn accept(listener: StdListener, rules: watch::Receiver<Rules>, said: Arc<Said>) {
    let listener = TcpListener::from_std(listener).expect("a listener can be driven");
    while let Ok((client, _)) = listener.accept().await {
        let rules = rules.clone();
        let now = *rules.borrow();
        if now.refuse {
            break_off(&client);
        } else {
            tokio::spawn(carry(client, rules, now, Arc::clone(&said)));
        }
    }
}

/// Has a connection be reset when it is dropped. One that is reset already needs no more.
fn break_off(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

/// Carries one connection until both sides have ended it, or it is reset.
async fn carry(
    mut client: TcpStream,
    mut rules: watch::Receiver<Rules>,
    Rules { resets, server, .. }: Rules,
    said: Arc<Said>,
) -> io::Result<()> {
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server));
    let mut server = TcpStream::connect(server).await.inspect_err(|_| break_off(&client))?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (release, current) = (AtomicU64::new(0), rules.clone());
    let heard = |bytes: &[u8]| {
        if said.note(bytes) {
            release.store(current.borrow().releases + 1, Ordering::Relaxed);
        }
    };
    let up = pump(from_client, to_server, rules.clone(), Direction::ToServer, &release, heard);
    let down = pump(from_server, to_client, rules.clone(), Direction::ToClient, &release, |_: &[u8]| ());
    let ended_well = tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.is_ok(),
        _ = rules.wait_for(|rules| rules.resets != resets) => false,
    };
    if !ended_well {
        break_off(&client);
        break_off(&server);
    }
    Ok(())
}

/// Bytes with the time at which they are due; or the end of them.
type Parcel = (Instant, Vec<u8>);

async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    rules: watch::Receiver<Rules>,
    direction: Direction,
    release: &AtomicU64,
    heard: impl Fn(&[u8]),
) -> io::Result<()> {
    let (send, parcels) = mpsc::unbounded_channel();
    let collected = collect(from, send, rules.clone(), direction, heard);
    tokio::select! {
        delivered = deliver(to, parcels, rules, direction, release) => delivered,
        // What was read last is still to be delivered.
        () = async { collected.await; std::future::pending().await } => Ok(()),
    }
}

/// Reads on whatever becomes of it: a side that is not heard is not slowed down either.
async fn collect(
    mut from: ReadHalf<'_>,
    parcels: mpsc::UnboundedSender<Parcel>,
    rules: watch::Receiver<Rules>,
    direction: Direction,
    heard: impl Fn(&[u8]),
) {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        // A side that breaks off has ended, and the other hears of it when it may.
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if read > 0 {
            heard(&bytes[..read]);
        }
        let delay = match rules.borrow().way(direction) {
            Way::Pass(delay) => delay,
            Way::Hold | Way::Swallow => Duration::ZERO,
        };
        let gone = parcels.send((Instant::now() + delay, bytes[..read].to_vec())).is_err();
        if read == 0 || gone {
            return;
        }
    }
}

/// Delivers what comes; once the connection is held, when it was released so often.
async fn deliver(
    mut to: WriteHalf<'_>,
    mut parcels: mpsc::UnboundedReceiver<Parcel>,
    mut rules: watch::Receiver<Rules>,
    direction: Direction,
    release: &AtomicU64,
) -> io::Result<()> {
    let passes = |rules: &Rules| matches!(rules.way(direction), Way::Pass(_));
    let over = |_| io::Error::from(io::ErrorKind::ConnectionReset);
    while let Some((due, bytes)) = parcels.recv().await {
        tokio::time::sleep_until(due).await;
        let release = release.load(Ordering::Relaxed);
        rules.wait_for(|rules| rules.releases >= release).await.map_err(over)?;
        let way =
            rules.wait_for(|rules| rules.way(direction) != Way::Hold).await.map_err(over)?.way(direction);
        if bytes.is_empty() {
            rules.wait_for(passes).await.map_err(over)?;
            return to.shutdown().await;
        }
        if way == Way::Swallow {
            rules.wait_for(passes).await.map_err(over)?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        to.write_all(&bytes).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;

    use tenure_store::clock;

    use super::*;
    use crate::patience::HANG;

    /// Long enough for anything that comes at all to have come, on most days: where a test is wrong
    /// about that, it passes and has shown nothing.
    const SILENCE: Duration = Duration::from_millis(50);

    /// A server that says everything back, and tells us what it heard.
    fn echo() -> (Proxy, mpsc::Receiver<Vec<u8>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, heard) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, tell) = (stream.unwrap(), tell.clone());
                thread::spawn(move || {
                    let mut bytes = [0; 1024];
                    while let Ok(read) = stream.read(&mut bytes) {
                        // The test may be over.
                        let _ = tell.send(bytes[..read].to_vec());
                        if read == 0 || stream.write_all(&bytes[..read]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (Proxy::before(port), heard)
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream
    }

    fn hears(stream: &mut TcpStream, words: &str) {
        let mut heard = vec![0; words.len()];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard, words.as_bytes());
    }

    fn says(stream: &mut TcpStream, words: &str) {
        stream.write_all(words.as_bytes()).unwrap();
    }

    fn hears_nothing(stream: &mut TcpStream) {
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the connection stays open: {error}");
        stream.set_read_timeout(Some(HANG)).unwrap();
    }

    fn is_reset(stream: &mut TcpStream) {
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    }

    #[test]
    fn everything_passes_until_told_otherwise_and_so_does_the_end() {
        let (proxy, heard) = echo();
        let mut stream = connect(&proxy);
        says(&mut stream, "hello");
        hears(&mut stream, "hello");
        assert_eq!(heard.recv_timeout(HANG).unwrap(), b"hello");
        assert_eq!(proxy.requests(), 1, "what the server says is none");
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(heard.recv_timeout(HANG).unwrap(), b"");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_delay_is_at_least_as_long_as_told_in_each_direction() {
        let (proxy, heard) = echo();
        let mut stream = connect(&proxy);
        let (up, down) = (Duration::from_millis(60), Duration::from_millis(90));
        proxy.delay(up, down);
        let before = clock::now();
        says(&mut stream, "hello");
        heard.recv_timeout(HANG).unwrap();
        assert!(clock::now().since(before) >= up);
        hears(&mut stream, "hello");
        assert!(clock::now().since(before) >= up + down);
    }

    #[test]
    fn what_is_held_arrives_in_order_when_it_is_released() {
        let (proxy, heard) = echo();
        let mut stream = connect(&proxy);
        proxy.hold();
        for words in ["one ", "two ", "three"] {
            says(&mut stream, words);
            hears_nothing(&mut stream);
        }
        assert!(heard.try_recv().is_err());
        proxy.pass();
        hears(&mut stream, "one two three");
    }

    #[test]
    fn a_direction_that_is_cut_stays_open_and_silent_and_is_reset_in_the_end() {
        let (proxy, heard) = echo();
        let mut stream = connect(&proxy);
        proxy.cut(Direction::ToServer);
        says(&mut stream, "hello");
        hears_nothing(&mut stream);
        assert!(heard.try_recv().is_err());
        proxy.pass();
        is_reset(&mut stream);
        let mut next = connect(&proxy);
        says(&mut next, "again");
        hears(&mut next, "again");
    }

    #[test]
    fn lost_replies_are_of_requests_that_were_heard() {
        let (proxy, heard) = echo();
        let mut stream = connect(&proxy);
        proxy.lose_replies();
        says(&mut stream, "hello");
        assert_eq!(heard.recv_timeout(HANG).unwrap(), b"hello");
        hears_nothing(&mut stream);
    }

    #[test]
    fn when_everything_is_dropped_new_connections_are_open_and_silent_too() {
        let (proxy, heard) = echo();
        let mut before = connect(&proxy);
        proxy.drop_everything();
        let mut after = connect(&proxy);
        for stream in [&mut before, &mut after] {
            says(stream, "hello");
            hears_nothing(stream);
        }
        // The end is not heard of either: the server's side is half-open.
        drop((before, after));
        assert!(heard.recv_timeout(SILENCE).is_err());
    }

    #[test]
    fn a_connection_that_lost_nothing_goes_on_after_the_cut() {
        let (proxy, _heard) = echo();
        let mut stream = connect(&proxy);
        says(&mut stream, "hello");
        hears(&mut stream, "hello");
        proxy.drop_everything();
        proxy.pass();
        says(&mut stream, "still here");
        hears(&mut stream, "still here");
    }

    #[test]
    fn new_connections_are_refused_while_old_ones_go_on() {
        let (proxy, _heard) = echo();
        let mut old = connect(&proxy);
        says(&mut old, "hello");
        hears(&mut old, "hello");
        proxy.refuse();
        is_reset(&mut connect(&proxy));
        says(&mut old, "still here");
        hears(&mut old, "still here");
        proxy.pass();
        let mut new = connect(&proxy);
        says(&mut new, "hello");
        hears(&mut new, "hello");
    }

    #[test]
    fn a_connection_is_held_from_a_request_on_and_no_other_is() {
        let (proxy, heard) = echo();
        let (mut first, mut second) = (connect(&proxy), connect(&proxy));
        proxy.hold_at(|said| said.ends_with(b"close"));
        says(&mut first, "hello");
        hears(&mut first, "hello");
        assert_eq!(heard.recv_timeout(HANG).unwrap(), b"hello");
        assert!(!proxy.has_held());
        says(&mut first, "please close");
        hears_nothing(&mut first);
        assert!(proxy.has_held() && heard.try_recv().is_err());
        proxy.pass();
        hears_nothing(&mut first);
        says(&mut second, "close");
        hears(&mut second, "close");
        proxy.release();
        hears(&mut first, "please close");
        says(&mut first, "close");
        hears(&mut first, "close");
    }

    #[test]
    fn a_reset_is_of_the_connections_that_are_there() {
        let (proxy, _heard) = echo();
        let mut old = connect(&proxy);
        says(&mut old, "hello");
        hears(&mut old, "hello");
        proxy.reset();
        is_reset(&mut old);
        let mut new = connect(&proxy);
        says(&mut new, "hello");
        hears(&mut new, "hello");
    }
}
