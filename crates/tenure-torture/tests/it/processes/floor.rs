//! What this machine can do at the moment: where it stands still, nothing can be said about who kept a lease.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::inotify;
use tenure::sqlite::rusqlite::Connection;
use tenure_core::Instant;
use tenure_store::clock;

/// Measures from when it is started: how long a thread oversleeps, how long a durable write takes,
/// and how long the kernel takes for chores that its own threads do.
pub struct Floor {
    over: Arc<AtomicBool>,
    chores: Vec<Arc<Chore>>,
    threads: Vec<JoinHandle<()>>,
}

/// Something that is done again and again.
struct Chore {
    /// The pause before it, which is no part of it.
    every: Duration,
    /// When the one under way was begun, in nanoseconds of the boot clock.
    begun: AtomicU64,
    /// How long the longest took that is done.
    longest: AtomicU64,
}

impl Floor {
    /// Measures in files of its own in `directory`, so that nobody waits for its locks.
    pub fn start(directory: &Path) -> Self {
        let database = Connection::open(directory.join("floor.db")).unwrap();
        database
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE floor (x)")
            .unwrap();
        let watched = directory.to_owned();
        let mut floor = Self { over: Arc::default(), chores: Vec::new(), threads: Vec::new() };
        floor.measure(Duration::from_millis(1), || {});
        floor.measure(Duration::from_millis(20), move || {
            database.execute("INSERT INTO floor VALUES (1)", []).unwrap();
        });
        // The end of a watch waits for a worker of the kernel, which other load may starve.
        floor.measure(Duration::from_millis(50), move || {
            let inotify = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
            inotify::add_watch(&inotify, &watched, inotify::WatchFlags::DELETE_SELF).unwrap();
        });
        floor
    }

    fn measure(&mut self, every: Duration, act: impl Fn() + Send + 'static) {
        let begun = AtomicU64::new(clock::now().as_nanos());
        let chore = Arc::new(Chore { every, begun, longest: AtomicU64::new(0) });
        self.chores.push(Arc::clone(&chore));
        let over = Arc::clone(&self.over);
        self.threads.push(std::thread::spawn(move || {
            while !over.load(Relaxed) {
                std::thread::sleep(chore.every);
                act();
                let took = u64::try_from(chore.under_way().as_nanos()).unwrap();
                chore.longest.fetch_max(took, Relaxed);
                chore.begun.store(clock::now().as_nanos(), Relaxed);
            }
        }));
    }

    /// The worst so far: the sum of the longest of each kind, done or under way.
    pub fn worst(&self) -> Duration {
        self.chores.iter().map(|chore| chore.under_way().max(chore.longest())).sum()
    }
}

impl Chore {
    fn under_way(&self) -> Duration {
        let begun = Instant::from_nanos(self.begun.load(Relaxed)) + self.every;
        clock::now().since(begun)
    }

    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest.load(Relaxed))
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
