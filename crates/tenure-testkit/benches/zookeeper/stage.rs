//! A server of our own with everything on disk, and somebody who looks at it.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::Instant;
use tenure_store::clock;
use tenure_testkit::server::ZooKeeper;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use crate::common::Outcome;
use crate::common::cast::{Network, Peer, Seat};
use crate::common::process::Troupe;
use crate::peers::zookeeper::Kind;

const FLOOR: &str = "/floor";
const PATIENCE: Duration = Duration::from_secs(60);

/// Candidates of one kind on this stage, where it can be seen who stands.
pub struct OnStage<'a> {
    pub kind: Kind,
    pub stage: &'a Stage,
}

impl Peer for OnStage<'_> {
    fn name(&self) -> String {
        self.kind.name().to_owned()
    }

    fn network(&self) -> Network<'_> {
        Network::Server(self.stage.server.port(0))
    }

    fn start(&self, troupe: &mut Troupe, seat: &Seat<'_>) -> Outcome<()> {
        self.kind.start(troupe, seat)
    }

    fn settle(&self, troupe: &Troupe, _ttl: Duration) -> Outcome<()> {
        let end = clock::now() + PATIENCE;
        while !self.stage.standing(self.kind)?.keys().eq(troupe.names()) {
            if clock::now() > end {
                return Err(format!("the candidates of {} do not stand", self.kind.name()).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // And have found their places.
        std::thread::sleep(Duration::from_millis(15));
        Ok(())
    }
}

pub struct Stage {
    runtime: Runtime,
    client: Client,
    /// For the floor: it waits for what the other deletes.
    waiter: Client,
    pub server: ZooKeeper,
}

impl Stage {
    pub fn open() -> Outcome<Self> {
        let server = ZooKeeper::ensemble(1);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (client, waiter) = runtime.block_on(async {
            let client = Client::connect(&server.hosts()).await?;
            client.create(FLOOR, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await?;
            Outcome::Ok((client, Client::connect(&server.hosts()).await?))
        })?;
        Ok(Self { runtime, client, waiter, server })
    }

    /// Who stands, the leader included, and the session of each.
    pub fn standing(&self, kind: Kind) -> Outcome<BTreeMap<String, i64>> {
        let line = kind.line();
        self.runtime.block_on(async {
            let mut standing = BTreeMap::new();
            for place in self.client.list_children(line).await.unwrap_or_default() {
                // Whoever has left meanwhile does not stand.
                if let Ok((data, stat)) = self.client.get_data(&format!("{line}/{place}")).await {
                    standing.insert(kind.candidate(&data)?, stat.ephemeral_owner);
                }
            }
            Ok(standing)
        })
    }

    /// The session by which a candidate stands.
    pub fn session(&self, kind: Kind, candidate: &str) -> Outcome<i64> {
        let standing = self.standing(kind)?;
        Ok(*standing.get(candidate).ok_or_else(|| format!("{candidate} does not stand"))?)
    }

    /// Waits for a candidate's departure, from now on.
    pub fn departure(&self, kind: Kind, candidate: &str) -> Outcome<JoinHandle<Instant>> {
        let line = kind.line();
        self.runtime.block_on(async {
            for place in self.client.list_children(line).await? {
                let path = format!("{line}/{place}");
                let Ok((data, _, watcher)) = self.client.get_and_watch_data(&path).await else { continue };
                if kind.candidate(&data)? == candidate {
                    return Ok(tokio::spawn(async move {
                        watcher.changed().await;
                        clock::now()
                    }));
                }
            }
            Err(format!("{candidate} does not stand").into())
        })
    }

    /// When it was told.
    pub fn hear(&self, departure: JoinHandle<Instant>) -> Outcome<Instant> {
        Ok(self.runtime.block_on(departure)?)
    }

    /// How many packets the server was sent by those who are connected, but for ourselves.
    pub fn packets(&self) -> u64 {
        let ours = [self.client.session_id().0, self.waiter.session_id().0];
        let connections = self.server.connections(0);
        let others = connections.iter().filter(|connection| !ours.contains(&connection.session));
        others.map(|connection| connection.received).sum()
    }

    /// A durable delete that another connection is told of, which makes a durable change.
    pub fn floor(&self) -> Outcome<Duration> {
        let place = format!("{FLOOR}/place");
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        self.runtime.block_on(async {
            self.client.create(&place, b"", &ephemeral).await?;
            let (_, watcher) = self.waiter.check_and_watch_stat(&place).await?;
            let began = clock::now();
            let (deleted, _) =
                futures_util::future::join(self.client.delete(&place, None), watcher.changed()).await;
            deleted?;
            self.waiter.set_data(FLOOR, b"", None).await?;
            Ok(clock::now().since(began))
        })
    }
}
