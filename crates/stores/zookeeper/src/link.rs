//! Connections to the ensemble: every one is opened here, and in the same way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::{Instant, StoreIdentity};
use tenure_store::{Setup, StoreError, clock};
use tokio::sync::Mutex;
use zookeeper_client::{Client, Connector, CreateMode, CreateOptions, Error, SessionState};

use crate::address::Address;
use crate::barrier::ReadBarrier;
use crate::engine::Engine;
use crate::error::{Over, classify, no_connection};
use crate::paths::Paths;

/// The store's own connection carries no lease: how long it may be silent is only a matter of traffic.
const PATIENCE: Duration = Duration::from_secs(10);
/// Short enough that every server with a longer tick tells it, long enough to connect in.
const PROBE: Duration = Duration::from_secs(1);

/// A connection, and which ensemble it leads to.
#[derive(Clone)]
pub(crate) struct Connected {
    pub client: Client,
    /// A session cannot move to another ensemble, nor to this one put back to an earlier state (its
    /// servers refuse a client that has seen more than they have). So it is enough to ask once.
    pub identity: StoreIdentity,
    /// Where it is driven. It ends with the last who holds this.
    pub wire: Arc<Engine>,
    barrier: Arc<ReadBarrier>,
}

impl Connected {
    /// Whether there is a server at its other end, as far as anybody knows.
    pub(crate) fn is_usable(&self) -> bool {
        self.wire.runs() && self.client.state() == SessionState::SyncConnected
    }

    /// Whatever is read over this connection afterwards is no older than now, whichever server answers.
    pub(crate) async fn catch_up(&self, over: Over) -> Result<(), StoreError> {
        self.barrier.pass(&self.client, over).await
    }

    /// Ends it, and its session, once nobody uses it any more.
    async fn close(self) {
        let Self { client, wire, .. } = self;
        let mut state = client.state_watcher();
        drop(client);
        while !state.peek_state().is_terminated() {
            state.changed().await;
        }
        drop(wire);
    }
}

/// The store's own connection.
struct Own {
    connected: Connected,
    /// When it was asked for last.
    used: Instant,
}

/// Everything that a verb needs to know of the place.
pub(crate) struct Link {
    pub address: Address,
    pub paths: Paths,
    /// The application's own, which then is the only connection: for what is read, and for every session.
    given: Option<Client>,
    setup: Setup,
    own: Mutex<Option<Own>>,
    /// What must be there was there when the first connection was opened.
    prepared: AtomicBool,
    tick: Mutex<Option<Duration>>,
}

impl Link {
    pub(crate) fn new(address: Address, paths: Paths, given: Option<Client>, setup: Setup) -> Self {
        let tick = Mutex::new(address.tick);
        // Elections of another library can be looked at before any node of Tenure was there, and Tenure's own
        // znodes are needed for that.
        let setup = if address.foreign.is_some() { Setup::Create } else { setup };
        Self { address, paths, given, setup, own: Mutex::new(None), prepared: AtomicBool::new(false), tick }
    }

    pub(crate) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.address.access.acls())
    }

    /// The only connection is the application's.
    pub(crate) const fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// The store's own connection, opened again if it was given up.
    pub(crate) async fn get(&self) -> Result<Connected, StoreError> {
        let mut slot = self.own.lock().await;
        if let Some(client) = &self.given {
            return self.get_given(client, &mut slot).await;
        }
        // One that looks for a server looks ever more seldom: a fresh one looks now, and says so if there is none.
        if let Some(own) = slot.as_mut().filter(|own| own.connected.is_usable()) {
            own.used = clock::now();
            return Ok(own.connected.clone());
        }
        let (client, wire) = self.connect(Self::connector(PATIENCE)).await?;
        let identity = if self.prepared.load(Ordering::Relaxed) {
            self.identity(&client).await?
        } else {
            self.prepare(&client).await?
        };
        self.prepared.store(true, Ordering::Relaxed);
        let own = Own { connected: self.connected(client, identity, wire), used: clock::now() };
        Ok(slot.insert(own).connected.clone())
    }

    /// Closes the store's own connection if nobody has asked for it for so long. It is opened again when somebody does.
    pub(crate) async fn rest(&self, unused: Duration) {
        let is_unused = |own: &mut Own| self.given.is_none() && clock::now().since(own.used) >= unused;
        let Some(own) = self.own.lock().await.take_if(is_unused) else { return };
        tokio::spawn(own.connected.close());
    }

    /// The same, over which whatever is read is no older than now.
    pub(crate) async fn caught_up(&self) -> Result<Connected, StoreError> {
        let connected = self.get().await?;
        connected.catch_up(Over::Store).await?;
        Ok(connected)
    }

    /// The application's, for as long as it lasts. It looks for servers by itself.
    async fn get_given(&self, client: &Client, slot: &mut Option<Own>) -> Result<Connected, StoreError> {
        if client.state().is_terminated() {
            return Err(StoreError::unavailable(
                "the ZooKeeper client that the application has given is over (its session has expired, or it was \
                 refused); start a node with a new one",
            ));
        }
        if let Some(own) = slot {
            return Ok(own.connected.clone());
        }
        let identity = self.prepare(client).await?;
        // Nothing runs there: it only tells that this connection is not over.
        let wire = Arc::new(Engine::start("tenure-zk-wire")?);
        let own = Own { connected: self.connected(client.clone(), identity, wire), used: clock::now() };
        Ok(slot.insert(own).connected.clone())
    }

    /// A session of its own, which outlives the connection: only time or its own word ends it.
    pub(crate) async fn open(&self, ttl: Duration) -> Result<Connected, StoreError> {
        if self.given.is_some() {
            return self.get().await;
        }
        self.attach(Self::connector(ttl), ttl).await
    }

    /// The same session over a fresh connection. The old one ends first, or both would take it from each
    /// other.
    pub(crate) async fn reopen(&self, old: &Connected, ttl: Duration) -> Result<Connected, StoreError> {
        if self.given.is_some() {
            return if old.client.state().is_terminated() {
                Err(StoreError::SessionLost)
            } else {
                Ok(old.clone())
            };
        }
        old.wire.stop();
        self.attach(Self::connector(ttl).with_session(old.client.session().clone()), ttl).await
    }

    async fn attach(&self, connector: Connector, ttl: Duration) -> Result<Connected, StoreError> {
        let connector = connector.with_detached().with_connection_timeout(silence(ttl));
        let (client, wire) = self.connect(connector).await?;
        let identity = self.identity(&client).await?;
        Ok(self.connected(client, identity, wire))
    }

    fn connected(&self, client: Client, identity: StoreIdentity, wire: Arc<Engine>) -> Connected {
        let barrier = Arc::new(ReadBarrier::new(self.paths.identity()));
        Connected { client, identity, wire, barrier }
    }

    fn connector(timeout: Duration) -> Connector {
        Client::connector().with_fail_eagerly().with_session_timeout(timeout)
    }

    async fn connect(&self, connector: Connector) -> Result<(Client, Arc<Engine>), StoreError> {
        let connector = self.address.access.apply(connector)?;
        let wire = Engine::start("tenure-zk-wire")?;
        let (hosts, encrypted) = (self.address.hosts.clone(), self.address.access.is_encrypted());
        let connecting = async move {
            let connected = match encrypted {
                true => connector.secure_connect(&hosts).await,
                false => connector.connect(&hosts).await,
            };
            connected.map_err(|error| no_connection(&error, &hosts, encrypted))
        };
        let client = wire.run(connecting).await?;
        Ok((client, Arc::new(wire)))
    }

    /// Makes what must be there, also when three nodes start at once.
    async fn prepare(&self, client: &Client) -> Result<StoreIdentity, StoreError> {
        if self.setup == Setup::Never {
            return self.look(client).await;
        }
        let persistent = self.options(CreateMode::Persistent);
        let failed = |error: &Error| classify(error, Over::Store);
        client.mkdir(&self.paths.base, &persistent).await.map_err(|error| failed(&error))?;
        let random = crate::random::hexadecimal();
        let identity = self.paths.identity();
        let folders = self.paths.folders();
        let mut made = vec![client.create(&identity, random.as_bytes(), &persistent)];
        made.extend(folders.iter().map(|folder| client.create(folder, b"", &persistent)));
        for outcome in futures_util::future::join_all(made).await {
            match outcome {
                Ok(_) | Err(Error::NodeExists) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        self.identity(client).await
    }

    /// Finds out whether everything is there, and makes nothing.
    async fn look(&self, client: &Client) -> Result<StoreIdentity, StoreError> {
        let folders = self.paths.folders();
        for path in folders.iter().chain([&self.paths.identity()]) {
            let found = client.check_stat(path).await.map_err(|error| classify(&error, Over::Store))?;
            if found.is_none() {
                return Err(StoreError::not_set_up(format!(
                    "there is no Tenure store below `{}` at {} (the znode `{path}` is missing)",
                    self.paths.base, self.address.hosts
                )));
            }
        }
        self.identity(client).await
    }

    async fn identity(&self, client: &Client) -> Result<StoreIdentity, StoreError> {
        let path = self.paths.identity();
        let synced = client.sync(&path);
        let read = client.get_data(&path);
        let (_, read) = futures_util::future::join(synced, read).await;
        let (data, stat) = read.map_err(|error| classify(&error, Over::Store))?;
        Ok(StoreIdentity::of(&[&data, &stat.czxid.to_be_bytes()]))
    }

    /// How much shorter than the session a lease must be, so that nobody is granted it before the holder's
    /// deadline.
    ///
    /// A server that follows tells the one that leads (which alone expires sessions) of its clients' signs
    /// of life twice per tick. So what we said last may be unknown there for half a tick, and what we said
    /// before that is older by the time between two signs of life.
    pub(crate) async fn allowance(&self, asked: Duration, granted: Duration) -> Result<Duration, StoreError> {
        let silence = match self.given {
            // How long it may be silent is not told: at most three fifths of its session.
            Some(_) => granted * 3 / 5,
            None => silence(asked),
        };
        let tick = match self.tick().await {
            // Too busy to answer a probe in time. The session that they have granted is two ticks or more.
            Err(StoreError::Unavailable(_)) => granted / 2,
            other => other?,
        };
        Ok(between_signs(silence) + tick / 2)
    }

    /// The servers' tick, or a bound of it: they grant no session shorter than two of them.
    pub(crate) async fn tick(&self) -> Result<Duration, StoreError> {
        let mut tick = self.tick.lock().await;
        if let Some(tick) = *tick {
            return Ok(tick);
        }
        if let Some(client) = &self.given {
            return Ok(*tick.insert(client.session_timeout() / 2));
        }
        // A busy server may need longer to answer; the bound is looser then.
        let (probe, _wire) = match self.connect(Self::connector(PROBE)).await {
            Err(StoreError::Unavailable(_)) => self.connect(Self::connector(PROBE * 4)).await?,
            other => other?,
        };
        Ok(*tick.insert(probe.session_timeout() / 2))
    }
}

/// How long a connection of a session with this life may be silent before another one is tried. The longer, the fewer
/// pings, and the shorter the lease: this makes two of them between two renewals.
fn silence(ttl: Duration) -> Duration {
    ttl / 4
}

/// The longest time between two signs of life on a connection that may be silent for so long. The driver has eight ticks in
/// that time. When it has said nothing for three of them, or for ten seconds, it pings with the next one.
fn between_signs(silence: Duration) -> Duration {
    let tick = silence / 8;
    (3 * tick).min(Duration::from_secs(10)) + tick
}
