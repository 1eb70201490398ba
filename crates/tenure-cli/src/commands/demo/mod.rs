//! `tenure demo`: a cluster on this machine, to be tormented.
//!
//! | file | what it is |
//! |---|---|
//! | `episode` | something is done to the leader, and the time until another leads is measured |
//! | `live` | the view in a terminal, and the keys |
//! | `tour` | without a terminal: a script, and its transcript |

mod episode;
mod live;
mod tour;

use std::io::{ErrorKind, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::{ElectionName, EventRecord, Namespace, Store};
use tenure_core::Instant;
use tenure_store::clock;
use tokio::signal::unix::{SignalKind, signal};

use super::crew::{Crew, random};
use super::follow::News;
use super::scene::Scene;
use crate::cli::{Demo as Asked, Global};
use crate::failure::{Exit, Failure};
use crate::store::{self, ask};

/// How long the demo goes without looking: what its measurements are exact to, besides hints.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub fn demo(global: &Global, asked: &Asked) -> Result<Exit, Failure> {
    // All on this thread: the nodes' lives hang from the one that started them.
    crate::runtime()?.block_on(play(global, asked))
}

async fn play(global: &Global, asked: &Asked) -> Result<Exit, Failure> {
    let mut ends = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()?;
    let [interrupt, terminate, hang_up] = ends.as_mut_slice() else { return Ok(Exit::NO) };
    let mut demo = Demo::open(global, asked).await?;
    let in_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !global.json;
    let outcome = tokio::select! {
        outcome = demo.show(asked.nodes, in_terminal, global.json) => outcome,
        _ = interrupt.recv() => Ok(Exit(130)),
        _ = terminate.recv() => Ok(Exit(143)),
        _ = hang_up.recv() => Ok(Exit(129)),
    };
    demo.end().await;
    outcome
}

/// A cluster of the demo's own.
struct Demo {
    scene: Scene,
    crew: Crew,
    news: News,
    store: Arc<dyn Store>,
    election: ElectionName,
    begun: Instant,
    ttl: Duration,
    /// The store, the token, what the nodes say. Dropped last, and with it everything in it.
    directory: TempDir,
}

impl Demo {
    /// A store that nobody else uses: a file, or a namespace of its own in the one that was named.
    async fn open(global: &Global, asked: &Asked) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("tenure-demo-").tempdir()?;
        let mut own = global.clone();
        match &global.store {
            None => own.store = Some(format!("sqlite:{}", directory.path().join("demo.db").display())),
            Some(url) if url.starts_with("raft:") || url.starts_with("memory:") => {
                return Err(Failure::Usage(String::from(
                    "the demo's nodes cannot meet there; leave --store out, or name a database or a ZooKeeper",
                )));
            }
            Some(_) if global.namespace.as_str() == "default" => {
                own.namespace = Namespace::new(format!("demo-{:08x}", random())).map_err(Failure::system)?;
            }
            Some(_) => {}
        }
        let url = store::url(&own)?.unwrap_or_default();
        // Of a store that was named, nothing is created by a slip.
        let store = match global.store {
            Some(_) => store::connect(&own).await?,
            None => store::connect_or_create(&own).await?,
        };
        let election = ElectionName::new("demo").map_err(Failure::system)?;
        let news = News::of(&store, None);
        let scene = Scene::look(Arc::clone(&store), election.clone()).await?;
        let crew = Crew::new(directory.path(), url, election.as_str(), asked.ttl)?;
        let (begun, ttl) = (clock::now(), asked.ttl);
        Ok(Self { scene, crew, news, store, election, begun, ttl, directory })
    }

    async fn show(&mut self, nodes: u8, in_terminal: bool, json: bool) -> Result<Exit, Failure> {
        match in_terminal {
            true => live::play(self, nodes).await,
            false => tour::play(self, nodes, json).await,
        }
    }

    /// Waits for news or a moment, and looks again.
    async fn look(&mut self) -> Result<Vec<EventRecord>, Failure> {
        self.news.wait(LOOK_EVERY).await;
        if let Some(problem) = self.crew.lost() {
            return Err(Failure::System(problem));
        }
        self.scene.again().await
    }

    /// All leave, and what they wrote goes with them.
    async fn end(mut self) {
        let leader = self.scene.leader().map(str::to_owned);
        self.crew.end(leader.as_deref());
        // Of a file of ours nothing will be left anyway; of somebody's store only our election's last term.
        let _ = ask(self.store.delete(self.election.clone(), true)).await;
        let _ = ask(self.store.purge(Duration::ZERO)).await;
        let Self { scene, crew, news, store, directory, .. } = self;
        drop((scene, crew, news, store));
        remove(&directory).await;
    }
}

/// Removes the directory. The threads of a store that was just dropped may still be about to create a file in it,
/// and then it takes another attempt.
async fn remove(directory: &TempDir) {
    for _ in 0..100 {
        match std::fs::remove_dir_all(directory.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            _ => return,
        }
    }
}
