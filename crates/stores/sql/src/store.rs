//! The contract, verb by verb.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing, Term,
};
use tenure_store::{
    Candidate, Capabilities, Cause, Claim, Declaration, Deletion, EventQuery, EventRecord, ExpiryJudge,
    Finding, HealthReport, Hints, Ledger, Limit, Listeners, NodeRecord, Open, Options, Pending, Petitioned,
    Problem, Reply, Resign, Sessions, Store, StoreError, StoreUrl,
};

use crate::database::{Database, Value};
use crate::engine::Engine;
use crate::line::Line;
use crate::news;
use crate::words::{
    CandidateWords, ClaimWords, DeletionWords, Done, ElectionWords, EventWords, NodeWords, OpenWords,
    PetitionWords, PurgeWords, RenewWords, SeenWords, Whether, foreign,
};

/// Sessions and leases in an SQL database.
///
/// One connection stays open, for the session (opening, renewing, closing); where the database can listen on a
/// connection that is called over, it listens too. What an election waits for, a resignation, a take-over and a
/// successor's read, goes over it as well if it is not in use; if it is in use when the session is to be renewed, that
/// opens another for itself. All other requests about elections have a second one, and whoever reads the history shares
/// a third and takes turns on it, so that no reader keeps a claim waiting, and neither keeps a renewal waiting. These are
/// closed when nobody has used them for a while. The application's own transactions have one of their own.
/// Dropping the store ends all of them; a future that is dropped leaves its request in an unknown state, and the store
/// usable.
pub struct SqlStore<D: Database> {
    pub(crate) engine: Engine,
    database: Arc<D>,
    pub(crate) session: Arc<Line<D>>,
    pub(crate) elections: Arc<Line<D>>,
    history: Arc<Line<D>>,
    listeners: Arc<Listeners>,
    /// The session that was opened last.
    opened: Mutex<Option<SessionId>>,
    options: Options,
}

impl<D: Database> SqlStore<D> {
    /// Connects to the database that the URL names, and makes Tenure's tables if there are none, unless its
    /// options say otherwise.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the URL or the database cannot be used, with what to do;
    /// [`StoreError::Unavailable`] if it cannot be reached.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        Self::with_database(D::named(url)?, url.options.clone()).await
    }

    /// The same with a database that is known otherwise than by a URL.
    ///
    /// # Errors
    /// As for [`connect`](SqlStore::connect).
    pub async fn with_database(database: D, options: Options) -> Result<Self, StoreError> {
        let database = Arc::new(database);
        let engine = Engine::start(D::THREAD)?;
        let prepared = Arc::clone(&database);
        let setup = options.setup;
        engine.run(async move { prepared.prepare(setup).await }).await?;
        let listeners = Arc::new(Listeners::default());
        let session = Arc::new(Line::lasting(Arc::clone(&database)));
        let (listening, namespace) = (Arc::clone(&database), options.namespace.clone());
        engine.spawn(news::listen(listening, namespace, Arc::downgrade(&listeners), Arc::clone(&session)));
        let passing = || Arc::new(Line::passing(Arc::clone(&database)));
        let (elections, history) = (passing(), passing());
        let opened = Mutex::default();
        Ok(Self { engine, database, session, elections, history, listeners, opened, options })
    }

    /// What is particular to this database.
    #[must_use]
    pub fn database(&self) -> &Arc<D> {
        &self.database
    }

    /// Where its connections are driven.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the URL said that every store understands.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn namespace(&self) -> Value {
        text(self.options.namespace.as_str())
    }

    pub(crate) fn kept(&self) -> Value {
        number(i64::from(self.options.retention.events.max(1)))
    }
}

pub(crate) fn text(words: &str) -> Value {
    Value::Text(Some(words.to_owned()))
}

pub(crate) fn maybe(words: Option<&str>) -> Value {
    Value::Text(words.map(str::to_owned))
}

/// What is recorded of a cause.
fn recorded(cause: Cause) -> Value {
    Value::Text(Some(serde_json::Value::Object(cause.data()).to_string()))
}

pub(crate) const fn number(number: i64) -> Value {
    Value::Number(Some(number))
}

/// A number for a column. Databases count to 2^63 − 1, which no honest counter reaches.
pub(crate) fn whole(count: u64) -> Result<Value, StoreError> {
    let fits = i64::try_from(count).map_err(|_| {
        StoreError::misconfigured(format!(
            "the number {count} is beyond what the database can count; somebody made it up"
        ))
    })?;
    Ok(number(fits))
}

fn some(count: Option<u64>) -> Result<Value, StoreError> {
    count.map_or(Ok(Value::Number(None)), whole)
}

/// A request that cannot even be written down.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        match (|| Ok::<_, StoreError>(vec![$($value),*]))() {
            Ok(values) => values,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        }
    };
}
pub(crate) use values;

impl<D: Database> Store for SqlStore<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            expiry: ExpiryJudge::Candidate,
            news: self.database.news(),
            sessions: Sessions::Anywhere,
        }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.session);
        // Rounded up: rivals wait for what the row says, so it must not be less than was granted.
        let ttl = u64::try_from(request.ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let supersedes = request.supersedes.map(|session| session.to_string());
        let over = request.over.map(|stamp| stamp.session.to_string());
        let values = values![
            self.namespace(),
            self.kept(),
            text(&request.session.to_string()),
            whole(request.sequence)?,
            whole(ttl)?,
            text(request.node.id.as_str()),
            text(&request.node.hostname),
            maybe(request.node.address.as_deref()),
            number(i64::from(request.node.pid)),
            text(&request.node.version),
            text(&serde_json::json!(request.node.labels.map()).to_string()),
            maybe(supersedes.as_deref()),
            maybe(over.as_deref()),
            some(request.over.map(|stamp| stamp.sequence))?,
        ];
        self.call_at_once("open", values, false, |words: OpenWords| match (words.ttl_ms, words.occupant) {
            (Some(ttl), _) => Ok(Opening::Opened { ttl: Duration::from_millis(ttl) }),
            (None, Some(pulse)) => Ok(Opening::Occupied { pulse: pulse.meant()? }),
            (None, None) => Err(foreign("half an answer")),
        })
    }

    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        let values = values![self.namespace(), text(&session.to_string()), whole(sequence)?];
        self.call_at_once("renew", values, attempt > 1, |words: RenewWords| {
            let RenewWords { previous, notices, grants, waits_for } = words;
            let waits_for = waits_for.into_iter().map(ElectionWords::meant).collect::<Result<_, _>>()?;
            Ok(Renewal { previous, notices, grants, waits_for })
        })
    }

    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        let over = request.over.map(|stamp| stamp.session.to_string());
        let values = values![
            self.namespace(),
            self.kept(),
            text(&request.session.to_string()),
            text(request.election.as_str()),
            whole(request.attempt)?,
            Value::Small(request.priority),
            maybe(over.as_deref()),
            some(request.over.map(|stamp| stamp.sequence))?,
            Value::Flag(request.tell_only),
            whole(request.above.number())?,
            some(request.since.map(Term::number))?,
        ];
        let claimed = match request.over {
            Some(_) => self.call_soon("claim", values, ClaimWords::meant),
            None => self.call(&self.elections, "claim", values, ClaimWords::meant),
        };
        Box::pin(async move {
            let told = claimed.await?;
            if matches!(told.value, Standing::Waiting { .. }) {
                self.engine.spawn(Arc::clone(&self.session).rehearse());
            }
            Ok(told)
        })
    }

    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        let values = values![
            self.namespace(),
            self.kept(),
            text(&request.session.to_string()),
            text(request.election.as_str()),
            whole(request.attempt)?,
            some(request.term.map(Term::number))?,
            maybe(request.to.as_ref().map(NodeId::as_str)),
            recorded(request.cause),
        ];
        self.call_soon("resign", values, |_: Done| Ok(()))
    }

    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        let values = vec![self.namespace(), self.kept(), text(&session.to_string()), recorded(cause)];
        self.call_at_once("close", values, false, |_: Done| Ok(()))
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        let session =
            self.opened.lock().unwrap_or_else(PoisonError::into_inner).map(|session| session.to_string());
        let values = vec![self.namespace(), text(election.as_str()), maybe(session.as_deref())];
        self.call_soon("look", values, |words: SeenWords| {
            words.seen.map_or_else(|| Ok(Record::default()), |seen| seen.meant())
        })
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        let values = vec![self.namespace(), self.kept(), text(election.as_str()), Value::Flag(force)];
        self.call(&self.elections, "end_election", values, |words: DeletionWords| {
            match words.deletion.as_str() {
                "ended" => Ok(Deletion::Ended),
                "led" => Ok(Deletion::Led),
                "absent" => Ok(Deletion::Absent),
                other => Err(foreign(other)),
            }
        })
    }

    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        let to = maybe(to.as_ref().map(NodeId::as_str));
        let values = vec![self.namespace(), self.kept(), text(election.as_str()), to];
        self.call(&self.elections, "petition", values, |words: PetitionWords| match words.petition.as_str() {
            "noted" => words.noted().map(|(leader, term)| Petitioned::Noted { leader, term }),
            "nobody_leads" => Ok(Petitioned::NobodyLeads),
            "not_standing" => Ok(Petitioned::NotStanding),
            other => Err(foreign(other)),
        })
    }

    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        let values = vec![self.namespace(), text(election.as_str())];
        self.list(&self.elections, "list_candidates", values, CandidateWords::meant)
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.list(&self.elections, "list_elections", vec![self.namespace()], ElectionWords::meant)
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.list(&self.elections, "list_nodes", vec![self.namespace()], NodeWords::meant)
    }

    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        let session = text(&over.session.to_string());
        let values = values![self.namespace(), self.kept(), session, whole(over.sequence)?];
        self.call(&self.elections, "retire", values, |words: Whether| Ok(words.done))
    }

    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        let millis = number(i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX));
        let values = vec![self.namespace(), millis];
        self.call(&self.elections, "purge", values, |words: PurgeWords| Ok(words.gone))
    }

    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        let Declaration { lease, degraded, live, minimum } = declaration;
        let values = values![
            self.namespace(),
            self.kept(),
            text(&lease.session.to_string()),
            text(lease.election.as_str()),
            whole(lease.term.number())?,
            Value::Flag(degraded),
            number(i64::from(live)),
            number(i64::from(minimum)),
        ];
        self.call(&self.elections, "declare_degraded", values, |words: Whether| Ok(words.done))
    }

    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        let values = values![
            self.namespace(),
            self.kept(),
            text(&report.session.to_string()),
            whole(report.number)?,
            maybe(report.problem.as_ref().map(Problem::as_str)),
        ];
        // Not on the connection of the session: a renewal may be due.
        self.call(&self.elections, "report_health", values, |words: Whether| Ok(words.done))
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        let after = number(i64::try_from(query.after).unwrap_or(i64::MAX));
        let limit = Value::Number(query.limit.map(|limit| i64::from(limit.count())));
        let newest = Value::Flag(matches!(query.limit, Some(Limit::Newest(_))));
        let election = maybe(query.election.as_ref().map(ElectionName::as_str));
        let values = vec![self.namespace(), election, after, limit, newest];
        self.list(&self.history, "list_events", values, EventWords::meant)
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        let database = Arc::clone(&self.database);
        self.call(&self.elections, "examine", Vec::new(), move |seen| Ok(database.findings(seen)))
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
