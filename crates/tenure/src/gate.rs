//! A gate: what stands before work that only the leader may do, for as long as the node lives.
//!
//! A [`Leadership`](crate::Leadership) speaks of one term. A server is built once, and asks the same
//! question through many terms: do we lead, and if not, who does?

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, Instant, NodeId, Reason, Term};
use tenure_store::{NodeRecord, NodeState, clock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::election::{Election, LeaderChange};
use crate::error::NotLeader;
use crate::leadership::Duty;
use crate::link::Command;
use crate::office::{Office, Stage};

/// Lets work through while this node leads, under whichever term, and knows who leads if it does not.
///
/// Made by [`Election::gate`]. Clones are cheap. A gate does not stand for the election: something
/// else does, with [`lead`](Election::lead) or [`elected`](Election::elected).
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    election: Election,
    doorplate: Arc<Doorplate>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.election.link().tell(Command::CloseGate(self.election.name().clone()));
    }
}

/// Who leads, as far as this node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLeader {
    /// The node.
    pub node: NodeId,
    /// The term that it was granted.
    pub term: Term,
    /// Where its API is reached, as it told the registry; `None` if it has not, or as long as the
    /// registry has not been read. Somebody else wrote this: look at it before you use it.
    pub address: Option<String>,
    /// When this node learned that it leads.
    pub since: Instant,
}

impl KnownLeader {
    /// How old this knowledge is.
    #[must_use]
    pub fn age(&self) -> Duration {
        clock::now().since(self.since)
    }
}

impl Election {
    /// A gate before work that only the leader may do: see [`Gate`].
    #[must_use]
    pub fn gate(&self) -> Gate {
        let doorplate = Arc::clone(self.doorplate());
        self.link()
            .tell(Command::OpenGate { election: self.name().clone(), doorplate: Arc::clone(&doorplate) });
        Gate { inner: Arc::new(Inner { election: self.clone(), doorplate }) }
    }
}

impl Gate {
    /// The term, if this node leads at this instant. By the clock, without I/O: what
    /// [`Leadership::check`](crate::Leadership::check) says of the term that is held now.
    ///
    /// # Errors
    /// [`NotLeader`]: of the last term that was held, or that there was none.
    pub fn check(&self) -> Result<Term, NotLeader> {
        match &*read(&self.inner.doorplate.tenant) {
            Some(tenant) => tenant.office.check(),
            None => Err(NotLeader { term: Term::NONE, reason: Reason::NotElected }),
        }
    }

    /// Whether this node leads at this instant: [`check`](Gate::check) as a `bool`.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.check().is_ok()
    }

    /// The same as `check`, for work that goes on after it: as long as the [`Pass`] is alive, a lease that
    /// is given up *willingly* is not given back, so nobody else leads meanwhile.
    ///
    /// # Errors
    /// As for [`check`](Gate::check).
    pub fn enter(&self) -> Result<Pass, NotLeader> {
        let tenant = read(&self.inner.doorplate.tenant);
        let Some(Tenant { office, duty }) = &*tenant else {
            return Err(NotLeader { term: Term::NONE, reason: Reason::NotElected });
        };
        // Counted first, and checked then: whoever passes the check is waited for.
        let duty = duty.upgrade();
        let term = office.check()?;
        let gone = NotLeader { term, reason: office.reason().unwrap_or(Reason::Resigned) };
        duty.map(|duty| Pass { duty }).ok_or(gone)
    }

    /// Changes whenever a term of this node begins.
    pub(crate) fn grants(&self) -> watch::Receiver<u64> {
        self.inner.doorplate.grants.subscribe()
    }

    /// Who leads, as far as this node knows, which may be itself. `None`: nobody, or not known yet.
    #[must_use]
    pub fn leader(&self) -> Option<Arc<KnownLeader>> {
        self.inner.doorplate.known.borrow().leader.clone()
    }

    /// Who led last, as far as this node knows: the leader, or without one whoever was before.
    #[must_use]
    pub fn last_leader(&self) -> Option<Arc<KnownLeader>> {
        self.inner.doorplate.known.borrow().last.clone()
    }

    /// Whether this node is in touch with the store: its session is alive, by the clock. Otherwise what it
    /// knows of a leader elsewhere may be older than that one's lease.
    #[must_use]
    pub fn is_in_touch(&self) -> bool {
        let held = self.inner.election.link().status.held.borrow().unwrap_or_default();
        held.session.is_some() && clock::now() < held.until
    }

    /// The term of the leader; without one, the highest that this node has seen.
    #[must_use]
    pub fn term(&self) -> Term {
        self.inner.doorplate.known.borrow().term
    }

    /// The election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        self.inner.election.name()
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.inner.election.link().node
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("election", self.election())
            .field("node", self.node())
            .field("check", &self.check())
            .finish()
    }
}

/// Work that was let through, and goes on. When the last clone is dropped, it has stopped.
///
/// Whoever works under it stops at [`lost`](Pass::lost), or soon after, and in any case at
/// [`cut_off`](Pass::cut_off): for so long a lease that was given up waits for it.
#[derive(Clone)]
pub struct Pass {
    duty: Arc<Duty>,
}

impl Pass {
    /// The term under which it was let through: the fencing token.
    #[must_use]
    pub fn term(&self) -> Term {
        self.duty.office().term
    }

    /// The term, if this node still leads under it.
    ///
    /// # Errors
    /// [`NotLeader`].
    pub fn check(&self) -> Result<Term, NotLeader> {
        self.duty.office().check()
    }

    /// A token that is cancelled when leadership is over.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.duty.office().lost().child_token()
    }

    /// Waits until the work must have stopped: the node's grace after a willing end, almost at once
    /// after a loss.
    ///
    /// # Cancel safety
    /// Safe: dropping the future changes nothing.
    pub async fn cut_off(&self) {
        self.duty.office().until(Stage::CutOff).await;
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("term", &self.term()).field("check", &self.check()).finish()
    }
}

/// What the gates of one election look at.
#[derive(Default)]
pub(crate) struct Doorplate {
    /// The last grant to this node. Locked for writing only while another takes its place.
    tenant: RwLock<Option<Tenant>>,
    /// How often this node was granted it.
    grants: watch::Sender<u64>,
    known: watch::Sender<Known>,
}

struct Tenant {
    office: Arc<Office>,
    duty: Weak<Duty>,
}

#[derive(Default)]
struct Known {
    leader: Option<Arc<KnownLeader>>,
    /// The same, or who was it before.
    last: Option<Arc<KnownLeader>>,
    term: Term,
}

impl Doorplate {
    /// The work under this office begins.
    pub(crate) fn seat(&self, office: &Arc<Office>, duty: &Arc<Duty>) {
        let tenant = Tenant { office: Arc::clone(office), duty: Arc::downgrade(duty) };
        *self.tenant.write().unwrap_or_else(PoisonError::into_inner) = Some(tenant);
        self.grants.send_modify(|grants| *grants += 1);
    }

    /// Another leads than before, or nobody. True if it remains to be found where.
    pub(crate) fn learn(&self, change: &LeaderChange, address: Option<String>) -> bool {
        let leader = change.leader.clone().map(|node| {
            let (term, since) = (change.term, clock::now());
            Arc::new(KnownLeader { node, term, address: address.clone(), since })
        });
        let lost = leader.is_some() && address.is_none();
        self.known.send_modify(|known| {
            let last = leader.clone().or_else(|| known.last.take());
            *known = Known { leader, last, term: change.term };
        });
        lost
    }

    /// Whether this is still the leader whose address is sought.
    pub(crate) fn seeks(&self, term: Term) -> bool {
        let known = self.known.borrow();
        known.leader.as_ref().is_some_and(|leader| leader.term == term && leader.address.is_none())
    }

    /// Takes the leader's address from the registry.
    pub(crate) fn locate(&self, term: Term, nodes: &[NodeRecord]) {
        self.known.send_if_modified(|known| {
            let Some(leader) = known.leader.as_ref().filter(|leader| leader.term == term) else {
                return false;
            };
            let live = |node: &&NodeRecord| node.info.id == leader.node && node.state == NodeState::Live;
            let address = nodes.iter().find(live).and_then(|node| node.info.address.clone());
            let located = Arc::new(KnownLeader { address, ..KnownLeader::clone(leader) });
            known.last = Some(Arc::clone(&located));
            known.leader = Some(located);
            true
        });
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    // What is guarded is replaced whole.
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
