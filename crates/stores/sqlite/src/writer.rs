//! The thread that writes. Verbs that wait for it share one transaction and one commit, so that a thousand claims at
//! once cost a few writes to the disk; renewals go first.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{Instant, StoreIdentity};
use tenure_store::{Options, Reply, StoreError, Told, clock};
use tokio::sync::oneshot;

use crate::database::Database;
use crate::error::{Phase, Stop};
use crate::moment::Moment;
use crate::verbs::Scope;
use crate::worker;

/// How much one transaction carries out beyond its first verb.
#[derive(Clone, Copy)]
struct Limits {
    verbs: usize,
    /// No verb begins after this time, so that the write lock is held briefly.
    time: Duration,
}

const LIMITS: Limits = Limits { verbs: 512, time: Duration::from_millis(10) };

/// A thread that has written without a pause for as long as one transaction may last makes this one. Other processes
/// look for the lock every 2 ms (`database::wait`), and would hardly ever find it free between two transactions.
const PAUSE: Duration = Duration::from_millis(1);

/// What a verb is, as far as its turn is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Goes before all others. From the second attempt on, it wants another connection.
    Renewal {
        attempt: u32,
    },
    Other,
}

/// Hands verbs to the thread, which ends after its present transaction when this is dropped. Nobody waits for it, since
/// it may be stuck in a disk that hangs.
pub(crate) struct Writer {
    verbs: Sender<(Kind, Box<dyn Verb>)>,
}

impl Writer {
    pub(crate) fn start(mut database: Database) -> Result<Self, StoreError> {
        let (verbs, arriving) = mpsc::channel();
        worker::spawn("tenure-sqlite", move || write_all(&mut database, Queue::new(arriving, LIMITS)))?;
        Ok(Self { verbs })
    }

    /// Carries out a verb, and answers when it is on the disk.
    ///
    /// If the answer is no longer waited for when its turn comes, the verb is not carried out; if
    /// it is dropped later, it is.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        kind: Kind,
        verb: impl Fn(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Reply<T> {
        let answer = self.send(kind, verb)?;
        answer.await.map_err(|_| StoreError::indeterminate("the store's thread died over the request"))?
    }

    fn send<T: Send + 'static>(
        &self,
        kind: Kind,
        verb: impl Fn(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Result<oneshot::Receiver<Reply<T>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let waiting = Box::new(Waiting { verb, value: None, reply });
        self.verbs
            .send((kind, waiting))
            .map_err(|_| StoreError::unavailable("the store's thread has died"))?;
        Ok(answer)
    }
}

/// A verb that waits, whatever its value is.
trait Verb: Send {
    fn is_awaited(&self) -> bool;
    /// Carries the verb out, and keeps its value until the commit.
    fn run(&mut self, scope: &Scope<'_>) -> Result<(), Stop>;
    /// Answers with that value if the transaction was committed.
    fn answer(self: Box<Self>, committed: Result<StoreIdentity, StoreError>);
}

/// Verbs that were carried out, and what stopped those that were refused.
type Done = Vec<(Box<dyn Verb>, Result<(), Stop>)>;

struct Waiting<F, T> {
    verb: F,
    value: Option<T>,
    reply: oneshot::Sender<Reply<T>>,
}

impl<F, T> Verb for Waiting<F, T>
where
    F: Fn(&Scope<'_>) -> Result<T, Stop> + Send,
    T: Send,
{
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, scope: &Scope<'_>) -> Result<(), Stop> {
        self.value = Some((self.verb)(scope)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<StoreIdentity, StoreError>) {
        let Self { value, reply, .. } = *self;
        let not_run = || StoreError::unavailable("the request was not carried out");
        // Nobody waits any more: then nobody is told.
        let _ = reply.send(committed.and_then(|store| Ok(Told { store, value: value.ok_or_else(not_run)? })));
    }
}

/// Verbs that wait, renewals before all others.
struct Queue {
    arriving: Receiver<(Kind, Box<dyn Verb>)>,
    renewals: VecDeque<Box<dyn Verb>>,
    others: VecDeque<Box<dyn Verb>>,
    /// Whether a renewal waits that was not answered over the present connection.
    distrust: bool,
    /// Whether the transaction before was lost with several verbs in it. A full disk, for one, may have room for a renewal
    /// and not for the rest: so the renewals that wait are committed without the others.
    lost: bool,
    limits: Limits,
}

impl Queue {
    fn new(arriving: Receiver<(Kind, Box<dyn Verb>)>, limits: Limits) -> Self {
        Self {
            arriving,
            renewals: VecDeque::new(),
            others: VecDeque::new(),
            distrust: false,
            lost: false,
            limits,
        }
    }

    fn push(&mut self, (kind, verb): (Kind, Box<dyn Verb>)) {
        match kind {
            Kind::Renewal { attempt } => {
                self.distrust |= attempt > 1;
                self.renewals.push_back(verb);
            }
            Kind::Other => self.others.push_back(verb),
        }
    }

    /// Takes in what has arrived; how many wait now.
    fn gather(&mut self) -> usize {
        while let Ok(arrived) = self.arriving.try_recv() {
            self.push(arrived);
        }
        self.renewals.len() + self.others.len()
    }

    /// Waits until a verb waits; `false` when none will come any more.
    fn wait(&mut self) -> bool {
        if self.gather() > 0 {
            return true;
        }
        self.arriving.recv().map(|arrived| self.push(arrived)).is_ok()
    }

    /// Whether a transaction may take one more verb.
    fn may_take(&self, done: usize, begun: Instant) -> bool {
        done == 0 || (done < self.limits.verbs && clock::now().since(begun) < self.limits.time)
    }

    fn pop(&mut self) -> Option<Box<dyn Verb>> {
        self.renewals.pop_front().or_else(|| self.others.pop_front())
    }
}

fn write_all(database: &mut Database, mut queue: Queue) {
    let mut paused = clock::now();
    loop {
        let idle = clock::now();
        if !queue.wait() {
            return;
        }
        let now = clock::now();
        if now.since(idle) >= PAUSE {
            paused = now;
        } else if now.since(paused) >= LIMITS.time {
            thread::sleep(PAUSE);
            paused = clock::now();
        }
        write(database, &mut queue);
    }
}

/// Carries out verbs that wait in one transaction, and answers them when it is committed.
fn write(database: &mut Database, queue: &mut Queue) {
    let waiting = queue.gather();
    if std::mem::take(&mut queue.distrust) {
        database.disconnect();
    }
    let mut done = Done::new();
    match database.write(|connection, options| carry_out(connection, options, queue, &mut done)) {
        Ok(store) => {
            for (verb, outcome) in done {
                verb.answer(outcome.map(|()| store).map_err(|stop| database.fail(stop, Phase::Work)));
            }
        }
        Err(error) => {
            // Where no transaction could begin, whoever has waited for it is told.
            let never_begun = if done.is_empty() { waiting } else { 0 };
            let rest = std::iter::from_fn(|| queue.pop()).take(never_begun);
            // Also one that was refused: its refusal may come from what another has written, which is void now.
            let all: Vec<_> = done.into_iter().map(|(verb, _)| verb).chain(rest).collect();
            queue.lost = all.len() > 1;
            let error = repeated(error);
            all.into_iter().for_each(|verb| verb.answer(Err(error())));
        }
    }
}

/// Runs one verb after the other, each in a savepoint, so that one that fails changes nothing for the others. Says
/// whether there is news.
///
/// What arrives meanwhile is carried out too, up to the limits of a transaction.
fn carry_out(
    connection: &Connection,
    options: &Options,
    queue: &mut Queue,
    done: &mut Done,
) -> Result<bool, Stop> {
    let (begun, mut news) = (clock::now(), false);
    let renewals_alone = std::mem::take(&mut queue.lost);
    while queue.may_take(done.len(), begun) {
        queue.gather();
        if renewals_alone && !done.is_empty() && queue.renewals.is_empty() {
            break;
        }
        let Some(mut verb) = queue.pop() else { break };
        if !verb.is_awaited() {
            continue;
        }
        let scope = Scope::new(connection, options, Moment::now());
        match in_savepoint(connection, &scope, &mut *verb) {
            Ok(outcome) => {
                news |= outcome.is_ok() && scope.transition();
                done.push((verb, outcome));
            }
            Err(lost) => {
                done.push((verb, Ok(())));
                return Err(lost);
            }
        }
    }
    Ok(news)
}

/// What becomes of one verb; an error, if the whole transaction is lost.
fn in_savepoint(
    connection: &Connection,
    scope: &Scope<'_>,
    verb: &mut dyn Verb,
) -> Result<Result<(), Stop>, Stop> {
    scope.execute("SAVEPOINT verb", [])?;
    let outcome = match verb.run(scope) {
        // A full disk, for one, ends the transaction.
        Err(stop) if connection.is_autocommit() => return Err(stop),
        Err(stop) => {
            scope.execute("ROLLBACK TO verb", [])?;
            Err(stop)
        }
        Ok(()) => Ok(()),
    };
    scope.execute("RELEASE verb", [])?;
    Ok(outcome)
}

/// One failure, told to each of the verbs that it has stopped.
fn repeated(error: StoreError) -> impl Fn() -> StoreError {
    type Reason = Box<dyn Error + Send + Sync>;
    let (class, reason): (fn(Reason) -> StoreError, Reason) = match error {
        StoreError::Unavailable(reason) => (StoreError::Unavailable, reason),
        StoreError::Indeterminate(reason) => (StoreError::Indeterminate, reason),
        StoreError::Misconfigured(reason) => (StoreError::Misconfigured, reason),
        // Of one verb, never of a transaction.
        StoreError::SessionLost => (StoreError::Indeterminate, Reason::from("the transaction was lost")),
    };
    let reason: Arc<dyn Error + Send + Sync> = Arc::from(reason);
    move || class(Box::new(Arc::clone(&reason)))
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};
    use tempfile::TempDir;
    use tenure_core::{ElectionName, NodeId, Opening, Renewal, SessionId, Standing, Term};
    use tenure_store::{Claim, NodeInfo, Open};
    use tokio::sync::oneshot::Receiver;

    use super::*;
    use crate::verbs;

    /// A writer whose turn comes when the test says so.
    struct Stage {
        writer: Writer,
        queue: Queue,
        database: Database,
        _dir: TempDir,
    }

    const SESSION: SessionId = SessionId::from_u128(1);

    impl Stage {
        /// One session is open, and the log is empty.
        fn new(limits: Limits) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut database = Database::new(dir.path().join("tenure.db"), Options::default());
            database.connect().unwrap();
            let (verbs, arriving) = mpsc::channel();
            let mut stage =
                Self { writer: Writer { verbs }, queue: Queue::new(arriving, limits), database, _dir: dir };
            let mut opened = stage.send(Kind::Other, move |scope| {
                let node = NodeInfo::new(NodeId::new("n1").unwrap(), "host");
                let ttl = Duration::from_secs(10);
                let open = Open { session: SESSION, sequence: 1, ttl, node, supersedes: None, over: None };
                verbs::open(scope, &open)
            });
            stage.write();
            assert!(matches!(opened.try_recv().unwrap().unwrap().value, Opening::Opened { .. }));
            stage.by_hand().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            stage
        }

        fn send<T: Send + 'static>(
            &self,
            kind: Kind,
            verb: impl Fn(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
        ) -> Receiver<Reply<T>> {
            self.writer.send(kind, verb).unwrap()
        }

        fn claim_above(&self, election: &str, above: u64) -> Receiver<Reply<Standing>> {
            let claim = Claim::plain(SESSION, ElectionName::new(election).unwrap(), 1);
            let claim = Claim { above: Term::new(above), ..claim };
            self.send(Kind::Other, move |scope| verbs::claim(scope, &claim))
        }

        /// Claims elections that nobody leads.
        fn claims(&self, count: usize) -> Vec<Receiver<Reply<Standing>>> {
            (0..count).map(|number| self.claim_above(&format!("e{number}"), 0)).collect()
        }

        fn renew(&self, sequence: u64) -> Receiver<Reply<Renewal<ElectionName>>> {
            let renew = move |scope: &Scope<'_>| verbs::renew(scope, SESSION, sequence);
            self.send(Kind::Renewal { attempt: 1 }, renew)
        }

        /// One transaction.
        fn write(&mut self) {
            write(&mut self.database, &mut self.queue);
        }

        fn by_hand(&self) -> Connection {
            Connection::open(self.database.path()).unwrap()
        }

        /// How many commits the log holds: the last page of each has the size of the database in its header.
        fn commits(&self) -> usize {
            let log = std::fs::read(format!("{}-wal", self.database.path().display())).unwrap();
            let frames = log.get(32..).unwrap_or_default().chunks_exact(24 + 4096);
            frames.filter(|frame| frame[4..8] != [0; 4]).count()
        }

        fn events(&self) -> Vec<(String, String)> {
            let connection = self.by_hand();
            let sql = "SELECT election, kind FROM tenure_events WHERE election IS NOT NULL ORDER BY id";
            let mut select = connection.prepare(sql).unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.map(Result::unwrap).collect()
        }
    }

    fn leads(answer: &mut Receiver<Reply<Standing>>) -> bool {
        answer.try_recv().is_ok_and(|reply| matches!(reply.unwrap().value, Standing::Leading { .. }))
    }

    const PLENTY: Limits = Limits { verbs: 10_000, time: Duration::from_secs(600) };

    #[test]
    fn verbs_that_wait_share_a_commit() {
        let mut stage = Stage::new(PLENTY);
        let mut claims = stage.claims(100);
        let mut renewal = stage.renew(2);
        stage.write();
        assert!(claims.iter_mut().all(leads));
        assert_eq!(renewal.try_recv().unwrap().unwrap().value.previous, 1);
        assert_eq!(stage.commits(), 1);
    }

    #[test]
    fn statements_are_compiled_once() {
        let mut stage = Stage::new(PLENTY);
        for sequence in 2..10 {
            let mut renewed = stage.renew(sequence);
            stage.write();
            renewed.try_recv().unwrap().unwrap();
        }
        let connection = &stage.database.current().unwrap().connection;
        for sql in verbs::RENEWAL {
            let statement = connection.prepare_cached(sql).unwrap();
            assert!(statement.get_status(StatementStatus::Run) > 1, "{sql}");
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }

    #[test]
    fn a_renewal_overtakes_a_thousand_waiting_claims() {
        let mut stage = Stage::new(Limits { verbs: 1, ..PLENTY });
        let mut claims = stage.claims(1_000);
        let mut renewal = stage.renew(2);
        stage.write();
        assert_eq!(renewal.try_recv().unwrap().unwrap().value.previous, 1);
        assert!(!claims.iter_mut().any(leads), "their turn comes later");
    }

    #[test]
    fn a_renewal_that_comes_while_a_transaction_is_under_way_is_the_next_in_it() {
        let mut stage = Stage::new(Limits { verbs: 2, ..PLENTY });
        let (verbs, (reply, mut renewed)) = (stage.writer.verbs.clone(), oneshot::channel());
        let reply = std::cell::Cell::new(Some(reply));
        let mut meanwhile = stage.send(Kind::Other, move |_| {
            let verb = |scope: &Scope<'_>| verbs::renew(scope, SESSION, 2);
            let renewal = Waiting { verb, value: None, reply: reply.take().unwrap() };
            Ok(verbs.send((Kind::Renewal { attempt: 1 }, Box::new(renewal))).is_ok())
        });
        let mut claim = stage.claim_above("later", 0);
        stage.write();
        assert!(meanwhile.try_recv().unwrap().unwrap().value);
        assert_eq!(renewed.try_recv().unwrap().unwrap().value.previous, 1);
        assert!(!leads(&mut claim));
    }

    #[test]
    fn a_transaction_takes_so_many_verbs_and_so_much_time_and_at_least_one_verb() {
        let led = |claims: &mut Vec<_>| {
            let before = claims.len();
            claims.retain_mut(|claim| !leads(claim));
            before - claims.len()
        };
        for (limits, most) in
            [(Limits { verbs: 4, ..PLENTY }, 4), (Limits { time: Duration::ZERO, ..PLENTY }, 1)]
        {
            let mut stage = Stage::new(limits);
            let mut claims = stage.claims(10);
            stage.write();
            assert_eq!(led(&mut claims), most);
            stage.write();
            assert_eq!(led(&mut claims), most);
        }
    }

    #[test]
    fn a_verb_that_fails_changes_nothing_for_the_others() {
        let mut stage = Stage::new(PLENTY);
        let mut first = stage.claim_above("first", 0);
        // It starts the election before it finds that there is no term left.
        let mut failing = stage.claim_above("failing", i64::MAX.unsigned_abs());
        let mut last = stage.claim_above("last", 0);
        stage.write();
        assert!(leads(&mut first) && leads(&mut last));
        let error = failing.try_recv().unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Misconfigured(_)), "{error:?}");
        let told = stage.events();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told.iter().all(|(election, _)| election != "failing"), "{told:?}");
    }

    #[test]
    fn a_statement_that_fails_changes_nothing_for_the_others() {
        let mut stage = Stage::new(PLENTY);
        let mut first = stage.claim_above("first", 0);
        let mut failing = stage.send(Kind::Other, |scope| {
            scope.execute("UPDATE tenure_sessions SET ttl_ms = 1", [])?;
            Ok(scope.execute("DELETE FROM tenure_elections", [])?)
        });
        let mut last = stage.claim_above("last", 0);
        stage.write();
        assert!(leads(&mut first) && leads(&mut last));
        let error = failing.try_recv().unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Misconfigured(_)), "{error:?}");
        let ttl: i64 =
            stage.by_hand().query_row("SELECT ttl_ms FROM tenure_sessions", [], |row| row.get(0)).unwrap();
        assert_eq!(ttl, 10_000);
    }

    #[test]
    fn a_commit_that_fails_is_told_to_all_and_nothing_has_changed() {
        let mut stage = Stage::new(PLENTY);
        let connection = &mut stage.database.current().unwrap().connection;
        connection.commit_hook(Some(|| true)).unwrap();
        let claims = stage.claims(3);
        let lost = stage.send(Kind::Other, |scope| {
            verbs::renew(scope, SessionId::from_u128(9), 2).map(|_| Standing::Leading { term: Term::NONE })
        });
        stage.write();
        for mut answer in claims.into_iter().chain([lost]) {
            let error = answer.try_recv().unwrap().unwrap_err();
            assert!(matches!(error, StoreError::Misconfigured(_)), "{error:?}");
        }
        assert_eq!(stage.events(), []);
        // It is let go, and so is its hook.
        let mut again = stage.claim_above("again", 0);
        stage.write();
        assert!(leads(&mut again));
    }

    #[test]
    fn whoever_waits_for_a_lock_in_vain_is_told_and_nothing_has_changed() {
        let mut stage = Stage::new(PLENTY);
        let other = stage.by_hand();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let claims = stage.claims(3);
        stage.write();
        for mut claim in claims {
            let error = claim.try_recv().unwrap().unwrap_err();
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            assert!(error.to_string().contains("holds its write lock"), "{error}");
        }
        other.execute_batch("COMMIT").unwrap();
        let mut again = stage.claim_above("again", 0);
        stage.write();
        assert!(leads(&mut again));
        assert_eq!(stage.events().len(), 2);
    }

    #[test]
    fn a_verb_that_nobody_waits_for_any_more_is_not_carried_out() {
        let mut stage = Stage::new(PLENTY);
        drop(stage.claims(3));
        let mut awaited = stage.claim_above("awaited", 0);
        stage.write();
        assert!(leads(&mut awaited));
        assert!(stage.events().iter().all(|(election, _)| election == "awaited"));
    }
}
