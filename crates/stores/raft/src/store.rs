//! The contract, verb by verb.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing, StoreIdentity,
};
use tenure_store::{
    Arranged, Arrangement, Candidate, Capabilities, Cause, Claim, Declaration, Deletion, Enlistment,
    EventQuery, EventRecord, ExpiryJudge, Finding, HealthReport, Hints, Leaf, Ledger, LedgerQuery, Listeners,
    News, NodeRecord, Open, Options, Pending, Petitioned, Publication, Published, Release, Reply, Resign,
    Sessions, Store, StoreError, StoreUrl, Survey, Told,
};

use crate::address::Address;
use crate::admission::{Admission, Limits};
use crate::engine::Engine;
use crate::group::Group;
use crate::lines::Lines;
use crate::machine::Order;
use crate::place::Place;
use crate::server::Door;
use crate::tls::Encryption;
use crate::verbs::{Outcome, Question, Verb};
use crate::wire::{Protocols, Request, Response};
use crate::{examination, news, server};

/// Sessions and leases that the nodes keep among themselves, as members of a Raft group or through its
/// members.
///
/// Everything happens on a runtime of its own. Dropping the last connection of a process that is a member ends
/// its part in the group: to the others it is as if the machine had stopped. A future that is dropped leaves
/// its request in an unknown state, and the store usable.
#[derive(Clone)]
pub struct RaftStore {
    pub(crate) group: Arc<Group>,
    listeners: Arc<Listeners>,
    options: Options,
    // Last, so that it ends after everything that runs on it was let go.
    pub(crate) engine: Arc<Engine>,
}

impl RaftStore {
    /// Takes part in the group, if the URL names a directory (`data=DIR`); otherwise connects to one of its
    /// members.
    ///
    /// A member is not kept waiting for the others: until a majority is there, requests are.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the URL or the directory cannot be used, with what to do;
    /// [`StoreError::Unavailable`] if no member can be reached.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        Self::connect_speaking(url, Protocols::OURS).await
    }

    /// The same as if this were another version, which speaks these protocols: for tests of upgrades.
    ///
    /// # Errors
    /// As for [`RaftStore::connect`].
    #[doc(hidden)]
    pub async fn connect_as(url: &StoreUrl, oldest: u16, newest: u16) -> Result<Self, StoreError> {
        Self::connect_speaking(url, Protocols { oldest, newest }).await
    }

    async fn connect_speaking(url: &StoreUrl, protocols: Protocols) -> Result<Self, StoreError> {
        let address = Address::of(url).map_err(StoreError::misconfigured)?;
        let encryption = Encryption::load(address.files.as_ref())?;
        let engine = Arc::new(Engine::start()?);
        engine.spawn(encryption.clone().keep_fresh());
        let lines = Arc::new(Lines::new(encryption.clone(), protocols));
        let place = match address.seat.clone() {
            None => None,
            Some(seat) => {
                let (listening, taking) = (seat.clone(), (address.clone(), Arc::clone(&lines)));
                let listener = engine.run(async move { server::listen(&listening).await }).await?;
                let place = engine.run(async move { Place::take(&taking.0, seat, taking.1).await }).await?;
                let place = Arc::new(place);
                let admission = Arc::new(Admission::new(Limits::default()));
                let door = Door { encryption, protocols, admission };
                engine.spawn(server::serve(listener, door, Arc::clone(&place)));
                engine.spawn(Arc::clone(&place).keep());
                Some(place)
            }
        };
        let is_member = place.is_some();
        let group = Arc::new(Group::new(lines, place, address.peers));
        let store = Self::over(engine, group, url.options.clone());
        if !is_member {
            let group = Arc::clone(&store.group);
            store.engine.run(async move { group.reach().await }).await?;
        }
        Ok(store)
    }

    /// Another connection to the same group, from the same process: in another namespace, say.
    #[must_use]
    pub fn with(&self, options: Options) -> Self {
        Self::over(Arc::clone(&self.engine), Arc::clone(&self.group), options)
    }

    fn over(engine: Arc<Engine>, group: Arc<Group>, options: Options) -> Self {
        let listeners = Arc::new(Listeners::default());
        let (told, namespace) = (Arc::downgrade(&listeners), options.namespace.clone());
        engine.spawn(news::listen(Arc::downgrade(&group), namespace, told));
        Self { group, listeners, options, engine }
    }

    pub(crate) async fn ask(&self, request: Request) -> Result<Response, StoreError> {
        let group = Arc::clone(&self.group);
        self.engine.run(async move { group.ask(&request).await }).await
    }

    fn told<T: Send>(
        &self,
        request: Request,
        meant: impl FnOnce(Outcome) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        Box::pin(async move {
            match self.ask(request).await? {
                Response::Told { group, outcome } => {
                    Ok(Told { store: StoreIdentity(group), value: meant(*outcome)? })
                }
                other => Err(StoreError::misconfigured(format!(
                    "the group answers in other words than ours ({other:?}); do all members run the same version?"
                ))),
            }
        })
    }

    fn verb<T: Send>(
        &self,
        verb: Verb,
        meant: impl FnOnce(Outcome) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        let Options { namespace, retention, .. } = self.options.clone();
        self.told(Request::Verb(Order { namespace, retention, verb }), meant)
    }

    fn question<T: Send>(
        &self,
        question: Question,
        meant: impl FnOnce(Outcome) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        self.told(Request::Ask { namespace: self.options.namespace.clone(), question }, meant)
    }
}

impl Store for RaftStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { expiry: ExpiryJudge::Candidate, news: News::Push, sessions: Sessions::Anywhere }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.verb(Verb::Open(request), Outcome::opening)
    }

    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        if attempt > 1 {
            self.group.reset();
        }
        self.verb(Verb::Renew { session, sequence }, Outcome::renewal)
    }

    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.verb(Verb::Claim(request), Outcome::standing)
    }

    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.verb(Verb::Resign(request), Outcome::done)
    }

    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.verb(Verb::Close { session, cause }, Outcome::done)
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.question(Question::Read(election), Outcome::record)
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.verb(Verb::Delete { election, force }, Outcome::deletion)
    }

    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.verb(Verb::Petition { election, to }, Outcome::petitioned)
    }

    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.question(Question::Candidates(election), Outcome::candidates)
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.question(Question::Elections, Outcome::elections)
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.question(Question::Nodes, Outcome::nodes)
    }

    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.verb(Verb::Retire(over), Outcome::whether)
    }

    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.verb(Verb::Purge { older_than }, Outcome::count)
    }

    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.verb(Verb::Declare(declaration), Outcome::whether)
    }

    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.verb(Verb::ReportHealth(report), Outcome::whether)
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.question(Question::Events(query), Outcome::events)
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        Box::pin(examination::examine(self))
    }

    fn news(&self) -> Hints {
        self.listeners.subscribe()
    }

    fn ledger(&self) -> Option<&dyn Ledger> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Ledger for RaftStore {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.question(Question::Survey(election), Outcome::survey)
    }

    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.question(Question::Leaf(query), Outcome::leaf)
    }

    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.verb(Verb::Publish(publication), Outcome::published)
    }

    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.verb(Verb::Acknowledge(release), Outcome::count)
    }

    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.verb(Verb::Enlist(enlistment), Outcome::done)
    }

    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.verb(Verb::Arrange(arrangement), Outcome::arranged)
    }
}
