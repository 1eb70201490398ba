//! The contract, verb by verb.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tenure_core::{ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Standing, Term};
use tenure_store::{
    Candidate, Capabilities, Claim, Deletion, EventQuery, EventRecord, ExpiryJudge, Finding, Hints, Lease,
    Listeners, News, NodeRecord, Open, Options, Pending, Petitioned, Reply, Resign, Store, StoreError,
    StoreUrl, Succession, Told, TransactionError,
};
use tokio::sync::Mutex;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::connect::connect;
use crate::engine::Engine;
use crate::error::classify;
use crate::examination::{EXAMINATION, ExaminationWords};
use crate::fence::Held;
use crate::line::{Line, Value};
use crate::words::{
    Answer, CandidateWords, ClaimWords, DeletionWords, Done, ElectionWords, EventWords, ListWords, NodeWords,
    OpenWords, PetitionWords, RenewWords, SeenWords, foreign,
};
use crate::{fence, news, setup};

/// Sessions and leases in a PostgreSQL database.
///
/// Three connections: one that is kept for the session alone (opening, renewing, closing), one for
/// elections, one that listens; and a fourth for the application's own transactions, if there are any.
/// Dropping the store ends them; a future that is dropped leaves its request in an unknown state, and the
/// store usable.
pub struct PostgresStore {
    engine: Engine,
    session: Arc<Line>,
    elections: Arc<Line>,
    /// Of the application's own transactions.
    fence: Mutex<Option<Client>>,
    listeners: Arc<Listeners>,
    address: Arc<Address>,
    options: Options,
}

impl PostgresStore {
    /// Connects to `postgres://user@host/database`, and makes Tenure's schema if there is none.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the URL or the database cannot be used, with what to do;
    /// [`StoreError::Unavailable`] if it cannot be reached.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Arc::new(Address::of(url).map_err(StoreError::misconfigured)?.equipped()?);
        let engine = Engine::start()?;
        let prepared = Arc::clone(&address);
        engine.run(async move { setup::prepare(&prepared).await }).await?;
        let listeners = Arc::new(Listeners::default());
        let namespace = url.options.namespace.clone();
        engine.spawn(news::listen(Arc::clone(&address), namespace, Arc::downgrade(&listeners)));
        let line = || Arc::new(Line::new(Arc::clone(&address)));
        Ok(Self {
            engine,
            session: line(),
            elections: line(),
            fence: Mutex::new(None),
            listeners,
            options: url.options.clone(),
            address,
        })
    }

    /// Writes to the application's own tables in this database, if and only if the lease is held.
    ///
    /// `work` runs in one transaction, on a connection of its own. The lease's row is locked in that
    /// transaction before the work and looked at again before the commit, and `still` (the leader's own
    /// clock) with it. So what is committed was written by the leader of that term, and no successor can
    /// have been granted a term before the commit: it waits. Keep it short.
    ///
    /// # Errors
    /// [`TransactionError`].
    ///
    /// # Cancel safety
    /// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
    pub async fn transaction<T, E>(
        &self,
        lease: Lease,
        still: impl Fn() -> bool,
        work: impl AsyncFnOnce(&tokio_postgres::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, TransactionError<E>> {
        let address = Arc::clone(&self.address);
        let idle = self.fence.lock().await.take().filter(|client| !client.is_closed());
        let mut client = match idle {
            Some(client) => client,
            None => self.engine.run(async move { connect(&address, None).await }).await?,
        };
        let (schema, namespace) = (self.address.quoted(), self.options.namespace.as_str());
        let held = Held { schema: &schema, namespace, lease: &lease };
        let transaction = client.transaction().await.map_err(classify)?;
        let outcome = fence::fenced(transaction, &held, still, work).await;
        // After an error, nobody knows what is still on its way there.
        if outcome.is_ok() {
            *self.fence.lock().await = Some(client);
        }
        outcome
    }

    /// Calls a function of the schema with these values.
    fn call<T, R>(
        &self,
        line: &Arc<Line>,
        function: &str,
        values: Vec<Value>,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<R>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let places: Vec<String> = (1..=values.len()).map(|place| format!("${place}")).collect();
        let sql = format!("SELECT {}.{function}({})::text", self.address.quoted(), places.join(", "));
        self.ask(line, sql, values, meant)
    }

    /// Asks for a list of what a query gives, as JSON objects.
    fn list<T, R>(
        &self,
        query: &str,
        values: Vec<Value>,
        meant: impl Fn(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<Vec<R>>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let schema = self.address.quoted();
        let query = query.replace("{schema}", &schema);
        let sql = format!(
            "SELECT jsonb_build_object('store', {schema}.identity(),
                 'list', (SELECT coalesce(jsonb_agg(to_jsonb(q)), '[]') FROM ({query}) q))::text"
        );
        self.ask(&self.elections, sql, values, move |words: ListWords<T>| {
            words.list.into_iter().map(&meant).collect()
        })
    }

    fn ask<T, R>(
        &self,
        line: &Arc<Line>,
        sql: String,
        values: Vec<Value>,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<R>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let line = Arc::clone(line);
        Box::pin(async move {
            let asked = async move { line.call::<Answer<T>>(&sql, &values).await };
            let told = self.engine.run(asked).await?.told()?;
            Ok(Told { store: told.store, value: meant(told.value)? })
        })
    }

    fn namespace(&self) -> Value {
        text(self.options.namespace.as_str())
    }

    fn kept(&self) -> Value {
        number(i64::from(self.options.retention.events.max(1)))
    }
}

fn value(value: impl ToSql + Sync + Send + 'static, kind: Type) -> Value {
    (Box::new(value), kind)
}

fn text(words: &str) -> Value {
    value(words.to_owned(), Type::TEXT)
}

fn maybe(words: Option<&str>) -> Value {
    value(words.map(str::to_owned), Type::TEXT)
}

fn number(number: i64) -> Value {
    value(number, Type::INT8)
}

/// A number for a column. PostgreSQL counts to 2^63 − 1, which no honest counter reaches.
fn whole(count: u64) -> Result<Value, StoreError> {
    let fits = i64::try_from(count).map_err(|_| {
        StoreError::misconfigured(format!(
            "the number {count} is beyond what PostgreSQL can count; somebody made it up"
        ))
    })?;
    Ok(number(fits))
}

fn some(count: Option<u64>) -> Result<Value, StoreError> {
    count.map_or_else(|| Ok(value(None::<i64>, Type::INT8)), whole)
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

impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { succession: Succession::Race, expiry: ExpiryJudge::Candidate, news: News::Push }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
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
            maybe(supersedes.as_deref()),
            maybe(over.as_deref()),
            some(request.over.map(|stamp| stamp.sequence))?,
        ];
        self.call(&self.session, "open", values, |words: OpenWords| match (words.ttl_ms, words.occupant) {
            (Some(ttl), _) => Ok(Opening::Opened { ttl: Duration::from_millis(ttl) }),
            (None, Some(pulse)) => Ok(Opening::Occupied { pulse: pulse.meant()? }),
            (None, None) => Err(foreign("half an answer")),
        })
    }

    fn renew(&self, session: SessionId, sequence: Sequence, attempt: u32) -> Pending<'_, Reply<Renewal>> {
        let values = values![self.namespace(), text(&session.to_string()), whole(sequence)?];
        let renewed = self.call(&self.session, "renew", values, |words: RenewWords| {
            Ok(Renewal { previous: words.previous, notices: words.notices, grants: words.grants })
        });
        let line = Arc::clone(&self.session);
        Box::pin(async move {
            if attempt > 1 {
                line.reset().await;
            }
            renewed.await
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
            value(request.priority, Type::INT4),
            value(request.courteous, Type::BOOL),
            maybe(over.as_deref()),
            some(request.over.map(|stamp| stamp.sequence))?,
            some(request.disinherit.map(Term::number))?,
            value(request.tell_only, Type::BOOL),
            whole(request.above.number())?,
            some(request.since.map(Term::number))?,
        ];
        self.call(&self.elections, "claim", values, |words: ClaimWords| match (words.granted, words.seen) {
            (Some(term), _) => Ok(Standing::Leading { term: Term::new(term) }),
            (None, Some(seen)) => Ok(Standing::Refused { seen: seen.meant()?, outranked: words.outranked }),
            (None, None) => Err(foreign("half an answer")),
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
        ];
        self.call(&self.elections, "resign", values, |_: Done| Ok(()))
    }

    fn close(&self, session: SessionId) -> Pending<'_, Reply<()>> {
        let values = vec![self.namespace(), self.kept(), text(&session.to_string())];
        self.call(&self.session, "close", values, |_: Done| Ok(()))
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        let schema = self.address.quoted();
        let sql = format!(
            "SELECT jsonb_build_object('store', {schema}.identity(), 'seen',
                 (SELECT {schema}.record(e) FROM {schema}.elections e WHERE e.namespace = $1 AND e.election = $2))::text"
        );
        let values = vec![self.namespace(), text(election.as_str())];
        self.ask(&self.elections, sql, values, |words: SeenWords| {
            words.seen.map_or_else(|| Ok(Record::default()), |seen| seen.meant())
        })
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        let values = vec![self.namespace(), self.kept(), text(election.as_str()), value(force, Type::BOOL)];
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
        self.list("SELECT node, priority FROM {schema}.standing($1, $2)", values, CandidateWords::meant)
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        let query = "SELECT e.election, {schema}.record(e) AS record FROM {schema}.elections e
                     WHERE e.namespace = $1 AND e.events > 0 ORDER BY e.election COLLATE \"C\"";
        self.list(query, vec![self.namespace()], ElectionWords::meant)
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        let query = "SELECT id, node, hostname, address, pid, state,
                            (extract(epoch FROM renewed_at) * 1000000)::bigint AS renewed_us
                     FROM {schema}.sessions WHERE namespace = $1 ORDER BY node COLLATE \"C\", opened_at";
        self.list(query, vec![self.namespace()], NodeWords::meant)
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        let after = number(i64::try_from(query.after).unwrap_or(i64::MAX));
        let limit = value(query.limit.map(i64::from), Type::INT8);
        const COLUMNS: &str =
            "SELECT id, sequence, (extract(epoch FROM time) * 1000000)::bigint AS time_us, kind,
                                      election, node, term, data FROM {schema}.events";
        match query.election {
            Some(election) => {
                let sql = format!(
                    "{COLUMNS} WHERE namespace = $1 AND election = $4 AND id > $2 ORDER BY sequence LIMIT $3"
                );
                let values = vec![self.namespace(), after, limit, text(election.as_str())];
                self.list(&sql, values, EventWords::meant)
            }
            // Ids are given before transactions end, and not in that order. Whoever goes on after the
            // last one must not miss an earlier one that comes later, so nothing is told that a
            // transaction under way may still come before.
            None => {
                let sql = format!(
                    "{COLUMNS} WHERE id > $2 AND namespace = $1
                     AND written < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY id LIMIT $3"
                );
                self.list(&sql, vec![self.namespace(), after, limit], EventWords::meant)
            }
        }
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        let sql = format!("SELECT {}::text", EXAMINATION.replace("{schema}", &self.address.quoted()));
        self.ask(&self.elections, sql, Vec::new(), |words: ExaminationWords| Ok(words.findings()))
    }

    fn news(&self) -> Hints {
        self.listeners.subscribe()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
