//! What a check is given: connections to one fresh store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Capabilities, ExpiryJudge, News, Succession};
use tenure_store::{Options, Store};

/// How long a check may take before it counts as hung: far longer than any should.
const LIMIT: Duration = Duration::from_secs(120);

type Connecting = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>>;

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
        F: Future<Output = Arc<dyn Store>> + Send + 'static,
    {
        Self { connect: Box::new(move |options| Box::pin(connect(options))) }
    }

    /// A connection with the default options.
    pub async fn connect(&self) -> Arc<dyn Store> {
        self.connect_with(Options::default()).await
    }

    /// A connection with these options.
    pub async fn connect_with(&self, options: Options) -> Arc<dyn Store> {
        (self.connect)(options).await
    }

    async fn capabilities(&self) -> Capabilities {
        self.connect().await.capabilities()
    }

    /// Candidates retire silent sessions by their pulse. Where the store does so itself, no
    /// check can make it happen without waiting.
    pub(crate) async fn candidates_judge(&self) -> bool {
        self.capabilities().await.expiry == ExpiryJudge::Candidate
    }

    /// Claims hold no place. On a queue the order of succession is the queue's.
    pub(crate) async fn is_a_race(&self) -> bool {
        self.capabilities().await.succession == Succession::Race
    }

    /// The store tells of changes by itself.
    pub(crate) async fn pushes_news(&self) -> bool {
        self.capabilities().await.news == News::Push
    }
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
