//! Something is done to the leader, and the time until another leads is measured.

use std::time::Duration;

use tenure_core::Instant;
use tenure_store::clock;

use super::Demo;
use crate::commands::scene::Scene;
use crate::failure::Failure;
use crate::store::ask;

/// How often it is tried to stop a node between its writes: they take a moment, and it waits for thirds of a ttl.
const TRIES: u32 = 5;
/// Longer than any node has been gone.
const AGES: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What can be done to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mischief {
    Kill,
    Stop,
    Resign,
    Cut,
}

impl Mischief {
    /// What was done, as a sentence about the node.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Kill => "is killed (kill -9)",
            Self::Stop => "is stopped (SIGSTOP), as in a long pause",
            Self::Resign => "is asked to resign",
            Self::Cut => "is cut off from the store",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Resign => "resign",
            Self::Cut => "cut",
        }
    }
}

/// A leader that something was done to, until another leads.
#[derive(Clone, Debug)]
pub struct Episode {
    pub mischief: Mischief,
    pub victim: String,
    term: u64,
    at: Instant,
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub leader: String,
    pub term: u64,
    /// From the deed until the demo saw the next leader in the store.
    pub took: Duration,
}

impl Episode {
    /// Who leads next, once somebody does.
    pub fn outcome(&self, scene: &Scene) -> Option<Outcome> {
        let leader = scene.leader().filter(|_| scene.term() > self.term)?.to_owned();
        Some(Outcome { leader, term: scene.term(), took: scene.at.since(self.at) })
    }
}

impl Demo {
    /// Does it to the leader; `None` if there is none that it can be done to.
    pub async fn strike(&mut self, mischief: Mischief) -> Result<Option<Episode>, Failure> {
        let Some(victim) = self.scene.leader().map(str::to_owned) else { return Ok(None) };
        let (term, mut at) = (self.scene.term(), clock::now());
        match mischief {
            Mischief::Kill => self.crew.kill(&victim),
            Mischief::Stop => at = self.stop(&victim).await?,
            Mischief::Cut => self.crew.cut(&victim)?,
            Mischief::Resign => {
                ask(self.store.petition(self.election.clone(), None)).await?;
            }
        }
        Ok(Some(Episode { mischief, victim, term, at }))
    }

    /// Stops a node that is in no transaction. Inside of one it would keep a SQLite file from everybody, and
    /// nobody could be elected until it goes on. When it was stopped.
    async fn stop(&mut self, victim: &str) -> Result<Instant, Failure> {
        for _ in 0..TRIES {
            let at = clock::now();
            self.crew.stop(victim);
            // It changes nothing, but needs the right to write.
            if ask(self.store.purge(AGES)).await.is_ok() {
                return Ok(at);
            }
            self.crew.restore(victim)?;
            // It must get to the end of its transaction, or it would be stopped in the same one again.
            let _ = ask(self.store.purge(AGES)).await;
        }
        Err(Failure::System(String::from("the store cannot be written to")))
    }
}
