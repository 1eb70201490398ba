//! The history as it grows: read once by one task, and handed to everybody who follows it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use tenure::{ElectionName, EventKind, EventQuery, EventRecord, Limit, Store, StoreError, Term};
use tenure_core::StoreIdentity;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How far a follower may be behind before it has to read for itself.
const BACKLOG: usize = 256;
/// How many events are read at once.
pub(crate) const PAGE: u32 = 500;
/// How many streams read at a time what they have missed. The store is the same that sessions are renewed in: however
/// many streams there are, they ask it for no more than this, one after the other.
const CATCH_UP_AT_ONCE: usize = 2;
/// On some stores an event is visible only when those before it are settled: how soon to look again.
const SOON: Duration = Duration::from_millis(5);
/// How much of the history is looked at for the beginning of the present term.
const RECENT: u32 = 32;

/// The newest events, as they are recorded. Clones are cheap; the reading ends with the last one.
#[derive(Clone)]
pub(crate) struct Feed {
    store: Arc<dyn Store>,
    news: broadcast::Sender<Arc<EventRecord>>,
    last: Arc<Mutex<Last>>,
    turns: Arc<Semaphore>,
    _reading: Arc<DropGuard>,
}

/// What the feed remembers.
#[derive(Default)]
struct Last {
    /// The newest event that was handed on; `None` before the first look.
    id: Option<u64>,
    /// When the latest term that is known of began.
    elected: Option<(Term, SystemTime)>,
}

struct Reader {
    store: Arc<dyn Store>,
    election: ElectionName,
    news: broadcast::Sender<Arc<EventRecord>>,
    last: Arc<Mutex<Last>>,
    identity: Option<StoreIdentity>,
    each: Box<dyn Fn(&EventRecord) + Send>,
}

impl Feed {
    /// Reads from now on, on the caller's runtime: at news, and every `look_every` besides. `each` is
    /// told of every event.
    pub(crate) fn start(
        store: &Arc<dyn Store>,
        election: &ElectionName,
        look_every: Duration,
        each: impl Fn(&EventRecord) + Send + 'static,
    ) -> Self {
        let (news, _) = broadcast::channel(BACKLOG);
        let last = Arc::new(Mutex::new(Last::default()));
        let over = CancellationToken::new();
        let ended = over.clone();
        let reader = Reader {
            store: Arc::clone(store),
            election: election.clone(),
            news: news.clone(),
            last: Arc::clone(&last),
            identity: None,
            each: Box::new(each),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = reader.run(look_every) => {}
            }
        });
        let turns = Arc::new(Semaphore::new(CATCH_UP_AT_ONCE));
        Self { store: Arc::clone(store), news, last, turns, _reading: Arc::new(over.drop_guard()) }
    }

    /// What is recorded from now on. Whoever lags is told, and reads for itself.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<EventRecord>> {
        self.news.subscribe()
    }

    /// The newest event that was handed on.
    pub(crate) fn last_id(&self) -> Option<u64> {
        lock(&self.last).id
    }

    /// When this term began, if the history reaches back so far.
    pub(crate) fn elected_at(&self, term: Term) -> Option<SystemTime> {
        lock(&self.last).elected.filter(|(known, _)| *known == term).map(|(_, at)| at)
    }

    /// What came after an event, from the store: a page of it. Those who ask take turns, in the order in which they
    /// came.
    pub(crate) async fn after(&self, after: u64) -> Result<Vec<EventRecord>, StoreError> {
        let query = EventQuery { election: None, after, limit: Some(Limit::Oldest(PAGE)) };
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.map_err(StoreError::unavailable)?;
        Ok(self.store.events(query).await?.value)
    }
}

fn lock(last: &Mutex<Last>) -> std::sync::MutexGuard<'_, Last> {
    // What is guarded is whole after every statement.
    last.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    async fn run(mut self, look_every: Duration) {
        let mut hints = Some(self.store.news());
        // How soon to look again: at news that is not visible yet, soon, and less and less soon.
        let mut pause = look_every;
        loop {
            // A store that is away is asked again at the next turn.
            let found = self.read().await.unwrap_or(0);
            pause = if found > 0 { look_every } else { (pause * 2).min(look_every) };
            if found >= PAGE as usize {
                continue;
            }
            let hint = async {
                match &mut hints {
                    Some(hints) => hints.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                hint = hint => match hint {
                    None => hints = None,
                    Some(_) => pause = SOON,
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Hands on what is new. How much that was.
    async fn read(&mut self) -> Result<usize, StoreError> {
        let known = lock(&self.last).id;
        let after = match known {
            Some(id) => id,
            None => self.begin().await?,
        };
        let query = EventQuery { election: None, after, limit: Some(Limit::Oldest(PAGE)) };
        let told = self.store.events(query).await?;
        // Another history counts its events anew.
        if self.identity.replace(told.store).is_some_and(|known| known != told.store) {
            lock(&self.last).id = None;
            return Ok(PAGE as usize);
        }
        let found = told.value.len();
        for event in told.value {
            self.hand_on(event);
        }
        Ok(found)
    }

    /// Finds out where the history stands, and when the present term began.
    async fn begin(&mut self) -> Result<u64, StoreError> {
        let newest = |election, count| EventQuery { election, after: 0, limit: Some(Limit::Newest(count)) };
        let told = self.store.events(newest(None, 1)).await?;
        self.identity = Some(told.store);
        let recent = self.store.events(newest(Some(self.election.clone()), RECENT)).await?.value;
        let mut last = lock(&self.last);
        let id = told.value.last().map_or(0, |event| event.id);
        last.id = Some(id);
        let elected = recent.iter().rev().find(|event| event.kind == EventKind::LeaderElected);
        last.elected = elected.map(|event| (event.term, event.time));
        Ok(id)
    }

    fn hand_on(&self, event: EventRecord) {
        (self.each)(&event);
        let mut last = lock(&self.last);
        last.id = Some(event.id);
        if event.kind == EventKind::LeaderElected && event.election.as_ref() == Some(&self.election) {
            last.elected = Some((event.term, event.time));
        }
        drop(last);
        // Nobody may be following.
        let _ = self.news.send(Arc::new(event));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tenure::ElectionName;

    use super::*;

    #[tokio::test]
    async fn streams_that_catch_up_ask_the_store_a_few_at_a_time() {
        let store = tenure::connect("memory:").await.unwrap();
        let election = ElectionName::new("coordinator").unwrap();
        let feed = Feed::start(&store, &election, Duration::from_secs(3600), |_| {});
        // As many as may ask at a time are asking.
        let asking = feed.turns.acquire_many(u32::try_from(CATCH_UP_AT_ONCE).unwrap()).await.unwrap();
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(feed.after(0))).collect();
        for stream in &mut waiting {
            assert!(stream.now_or_never().is_none(), "it waits for its turn");
        }
        drop(asking);
        for stream in waiting {
            assert_eq!(stream.await.unwrap(), []);
        }
    }
}
