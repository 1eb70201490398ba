//! What a check is given: connections to one fresh store.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::{Capabilities, ExpiryJudge, News, Sessions};
use tenure_store::{Options, Store, StoreError};

use crate::patient::{patient, until_available};

/// How long a check may take before it counts as hung: far longer than any should.
const LIMIT: Duration = Duration::from_secs(300);

type Connecting = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>, StoreError>> + Send>>;

/// One fresh store, and the way to connect to it.
pub struct Fixture {
    connect: Box<dyn Fn(Options) -> Connecting + Send + Sync>,
}

impl Fixture {
    /// A fixture whose connections are made by `connect`, each as independent of the others as
    /// those of two processes. Whatever the store lives in (a directory, a server) is owned by
    /// the closure, and cleaned up with it.
    pub fn new<F>(connect: impl Fn(Options) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<dyn Store>, StoreError>> + Send + 'static,
    {
        Self { connect: Box::new(move |options| Box::pin(connect(options))) }
    }

    /// A connection with the default options.
    pub async fn connect(&self) -> Arc<dyn Store> {
        self.connect_with(Options::default()).await
    }

    /// A connection with these options.
    pub async fn connect_with(&self, options: Options) -> Arc<dyn Store> {
        let connected = until_available(async || (self.connect)(options.clone()).await).await;
        patient(connected.expect("the store can be connected to"))
    }

    async fn capabilities(&self) -> Capabilities {
        self.connect().await.capabilities()
    }

    /// Candidates retire silent sessions by their pulse. Where the store does so itself, no
    /// check can make it happen without waiting.
    pub(crate) async fn candidates_judge(&self) -> bool {
        self.capabilities().await.expiry == ExpiryJudge::Candidate
    }

    /// Candidates stand in line by priority and arrival. A store that retires sessions by itself keeps a line of its
    /// own, and its order is that of the line.
    pub(crate) async fn orders_by_priority(&self) -> bool {
        self.candidates_judge().await
    }

    /// Another connection that may speak for sessions opened over this one; the same where only that may.
    pub(crate) async fn elsewhere(&self, here: &Arc<dyn Store>) -> Arc<dyn Store> {
        match here.capabilities().sessions {
            Sessions::Anywhere => self.connect().await,
            Sessions::OwnConnection => Arc::clone(here),
        }
    }

    /// The store tells of changes by itself.
    pub(crate) async fn pushes_news(&self) -> bool {
        self.capabilities().await.news == News::Push
    }
}

/// A check, by name.
pub struct Check {
    /// Its promise.
    pub name: &'static str,
    /// Panics when that is broken.
    pub run: Box<dyn FnOnce() + Send>,
}

/// How many checks run at a time in one process.
const AT_ONCE: usize = 4;

/// Runs all checks in this process, and says of each whether its promise is kept.
///
/// # Panics
/// If one is broken.
pub fn run_together(checks: Vec<Check>) {
    let count = checks.len();
    let (checks, broken) = (Mutex::new(checks), Mutex::new(Vec::new()));
    let work = || {
        while let Some(Check { name, run }) = { checks.lock().expect("nobody panics under the lock").pop() } {
            let kept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok();
            println!("{} {name}", if kept { "kept  " } else { "BROKEN" });
            if !kept {
                broken.lock().expect("nobody panics under the lock").push(name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().expect("nobody panics under the lock");
    assert!(broken.is_empty(), "{} of {count} promises are broken: {broken:#?}", broken.len());
}

/// Runs one check on a runtime of its own, on several threads, so that connections truly compete.
///
/// # Panics
/// When the promise is broken, or when the check hangs.
pub fn run<C>(fixture: impl Future<Output = Fixture>, check: impl FnOnce(Arc<Fixture>) -> C)
where
    C: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let fixture = Arc::new(fixture.await);
        tokio::time::timeout(LIMIT, check(fixture)).await.expect("the check hangs: the store gave no answer");
    });
}
