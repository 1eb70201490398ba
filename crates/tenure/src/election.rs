//! An election as the application holds it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tenure_core::{Age, ElectionName, NodeId, Record, Term};
use tenure_store::{Candidate, Deletion};
use tokio::sync::watch;
use tracing::Instrument;

use crate::error::ElectionError;
use crate::gate::Doorplate;
use crate::leadership::Leadership;
use crate::link::{Answered, Command, Link};
use crate::office::Office;

/// A named contest with at most one leader. Handles are cheap, and all handles of one node for one
/// name share one candidacy.
#[derive(Clone)]
pub struct Election {
    contest: Arc<Contest>,
}

/// A change of leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderChange {
    /// Who leads now; `None`: nobody.
    pub leader: Option<NodeId>,
    /// Under which term; without a leader, the highest that this node has seen.
    pub term: Term,
}

/// What a node is in an election.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It holds the lease.
    Leader {
        /// The term that it was granted.
        term: Term,
    },
    /// It stands, and waits.
    Follower {
        /// Who comes right before it in order of succession, the leader if nobody else does. `None` if nobody
        /// leads and it is next.
        following: Option<NodeId>,
        /// How many other candidates come before it, the leader not counted.
        ahead: usize,
    },
    /// It does not stand.
    Observer,
}

/// Who holds the lease, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The node.
    pub node: NodeId,
    /// The term that it was granted.
    pub term: Term,
    /// How long ago its session was renewed, where the store can tell.
    pub age: Option<Duration>,
    /// How long its session lives without renewal.
    pub ttl: Duration,
}

/// What all handles of one node for one election share.
pub(crate) struct Contest {
    pub name: ElectionName,
    pub link: Arc<Link>,
    pub doorplate: Arc<Doorplate>,
}

impl Contest {
    pub(crate) fn new(name: ElectionName, link: Arc<Link>) -> Self {
        link.tell(Command::Hold(name.clone()));
        Self { name, link, doorplate: Arc::default() }
    }
}

impl Drop for Contest {
    fn drop(&mut self) {
        self.link.forget(&self.name);
        self.link.tell(Command::Release(self.name.clone()));
    }
}

impl Election {
    pub(crate) fn new(name: ElectionName, link: &Arc<Link>) -> Self {
        Self { contest: link.contest(name) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ElectionName {
        &self.contest.name
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.contest.link
    }

    pub(crate) fn doorplate(&self) -> &Arc<Doorplate> {
        &self.contest.doorplate
    }

    pub(crate) const fn contest(&self) -> &Arc<Contest> {
        &self.contest
    }

    /// Stands, and waits until elected. Most programs want [`lead`](Election::lead) instead.
    ///
    /// The returned [`Leadership`] stands for the work that is done under it: read there what
    /// dropping it means.
    ///
    /// # Errors
    /// [`ElectionError`]: `AlreadyStanding` if this node stands or leads through another handle,
    /// `StillStopping` while a [`Leadership`] of this node that was lost is still alive, `Ended` if
    /// the election is deleted meanwhile.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the candidacy; a grant that crosses the withdrawal is
    /// resigned.
    pub async fn elected(&self) -> Result<Leadership, ElectionError> {
        let office = self.granted().await?;
        Ok(Leadership::by_hand(office, self.contest()))
    }

    /// Stands until granted. The caller answers for the office from then on.
    pub(crate) async fn granted(&self) -> Result<Arc<Office>, ElectionError> {
        let (link, election) = (Arc::clone(self.link()), self.name().clone());
        let id = link.candidacy();
        let mut candidacy =
            Candidacy { link: Arc::clone(&link), election: election.clone(), id, over: false };
        let span = tracing::info_span!(target: "tenure", "campaign", node = %link.node, %election);
        let answer = link.ask(|granted| Command::Stand { election, id, granted }).instrument(span).await;
        candidacy.over = true;
        answer.map_err(ElectionError::Closed)?
    }

    /// Every change of leader, from the present leader on (if there is one).
    ///
    /// The stream shows states, not a history: a consumer that lags sees the latest change and
    /// skips those before. It ends when the node is closed. History is in the store's events.
    #[must_use]
    pub fn observe(&self) -> LeaderChanges {
        let (changes, latest) = watch::channel(None);
        self.link().tell(Command::Observe { election: self.name().clone(), changes });
        let observer = Observer { latest: Some(latest), election: self.clone() };
        let stream = futures_util::stream::unfold(observer, async |mut observer| {
            let change = observer.next().await?;
            Some((change, observer))
        });
        LeaderChanges(Box::pin(stream))
    }

    /// Who holds the lease, read from the store. `None` if nobody does, or if the holder has been
    /// silent for its whole ttl.
    ///
    /// # Errors
    /// [`ElectionError::Store`] if the store gives no answer, [`ElectionError::Closed`].
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn leader(&self) -> Result<Option<Leader>, ElectionError> {
        let name = self.name().clone();
        let record = self.ask(|answer| Command::Read(name, answer)).await?;
        Ok(Leader::of(&record))
    }

    /// Who stands, in order of succession; the leader is not among them.
    ///
    /// # Errors
    /// As for [`leader`](Election::leader).
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn candidates(&self) -> Result<Vec<Candidate>, ElectionError> {
        let name = self.name().clone();
        self.ask(|answer| Command::Candidates(name, answer)).await
    }

    /// What this node is in the election, read from the store: leader, follower (and of whom), or neither.
    ///
    /// That it leads is what the store says. Before acting on it, [`Leadership::check`].
    ///
    /// # Errors
    /// As for [`leader`](Election::leader).
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn role(&self) -> Result<Role, ElectionError> {
        let own = &self.link().node;
        // In this order: whoever is elected in between was a candidate, and is the leader.
        let line = self.candidates().await?;
        let leader = self.leader().await?;
        if let Some(leader) = leader.as_ref().filter(|leader| leader.node == *own) {
            return Ok(Role::Leader { term: leader.term });
        }
        let Some(ahead) = line.iter().position(|candidate| candidate.node == *own) else {
            return Ok(Role::Observer);
        };
        let before = ahead.checked_sub(1).map(|index| line[index].node.clone());
        let following = before.or(leader.map(|leader| leader.node));
        Ok(Role::Follower { following, ahead })
    }

    /// Ends the election: all candidates are told. Its terms are never granted again.
    ///
    /// # Errors
    /// [`ElectionError::Led`] while somebody leads, [`ElectionError::Absent`] if there is nothing to
    /// end; then nothing changed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the election was ended.
    pub async fn delete(&self) -> Result<(), ElectionError> {
        self.end(false).await
    }

    /// Ends the election also while somebody leads: the leader is told, and stops by itself.
    ///
    /// # Errors
    /// [`ElectionError::Absent`] if there is nothing to end.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the election was ended.
    pub async fn delete_even_if_led(&self) -> Result<(), ElectionError> {
        self.end(true).await
    }

    async fn end(&self, force: bool) -> Result<(), ElectionError> {
        let election = self.name().clone();
        match self.ask(|answer| Command::Delete { election, force, answer }).await? {
            Deletion::Ended => Ok(()),
            Deletion::Led => Err(ElectionError::Led),
            Deletion::Absent => Err(ElectionError::Absent),
        }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answered<T>) -> Command) -> Result<T, ElectionError> {
        Ok(self.link().ask(command).await.map_err(ElectionError::Closed)??)
    }
}

impl Leader {
    fn of(record: &Record) -> Option<Self> {
        let holder = record.holder.as_ref()?;
        let age = match holder.pulse.age {
            Age::Unknown => None,
            Age::Exact(age) | Age::Told { age, .. } => Some(age),
        };
        let ttl = holder.pulse.ttl;
        (age.is_none_or(|age| age < ttl)).then(|| Self {
            node: holder.node.clone(),
            term: holder.term,
            age,
            ttl,
        })
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("name", self.name()).field("node", &self.link().node).finish()
    }
}

/// A candidacy that somebody waits for.
struct Candidacy {
    link: Arc<Link>,
    election: ElectionName,
    id: u64,
    over: bool,
}

impl Drop for Candidacy {
    fn drop(&mut self) {
        if !self.over {
            self.link.tell(Command::Withdraw { election: self.election.clone(), id: self.id });
        }
    }
}

/// The stream of [`Election::observe`]. It keeps the node open, like every other handle.
pub struct LeaderChanges(Pin<Box<dyn Stream<Item = LeaderChange> + Send>>);

impl Stream for LeaderChanges {
    type Item = LeaderChange;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<LeaderChange>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for LeaderChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaderChanges")
    }
}

struct Observer {
    latest: Option<watch::Receiver<Option<LeaderChange>>>,
    election: Election,
}

impl Observer {
    async fn next(&mut self) -> Option<LeaderChange> {
        let latest = self.latest.as_mut()?;
        loop {
            latest.changed().await.ok()?;
            if let Some(change) = latest.borrow_and_update().clone() {
                return Some(change);
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // The receiver goes first: the driver recognises by it that this observer is gone.
        self.latest = None;
        self.election.link().tell(Command::Unobserve(self.election.name().clone()));
    }
}
