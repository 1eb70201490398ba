//! What this machine can do at the moment: bounds on time are derived from it, not from hope.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure::sqlite::rusqlite::Connection;
use tenure_store::clock;

/// What no measurement of a few seconds can exclude.
const LEAST: Duration = Duration::from_millis(250);

/// Measures from when it is started: how long a thread oversleeps, and how long a durable write
/// takes.
pub struct Floor {
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    over: AtomicBool,
    hiccup: AtomicU64,
    write: AtomicU64,
}

impl Floor {
    /// Measures writes in a file of its own in `directory`, so that nobody waits for its locks.
    pub fn start(directory: &Path) -> Self {
        let seen = Arc::new(Seen::default());
        let database = Connection::open(directory.join("floor.db")).unwrap();
        database
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE floor (x)")
            .unwrap();
        let (sleeping, writing) = (Arc::clone(&seen), Arc::clone(&seen));
        let sleeper = move || {
            while !sleeping.over.load(Relaxed) {
                measure(&sleeping.hiccup, || std::thread::sleep(Duration::from_millis(1)));
            }
        };
        let writer = move || {
            while !writing.over.load(Relaxed) {
                measure(&writing.write, || {
                    database.execute("INSERT INTO floor VALUES (1)", []).unwrap();
                });
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        Self { seen, threads: vec![std::thread::spawn(sleeper), std::thread::spawn(writer)] }
    }

    /// How much later than promised something may be seen here: a few times the worst that was
    /// measured so far, since each of several processes may have had as bad a moment.
    pub fn slack(&self) -> Duration {
        LEAST + 4 * self.worst()
    }

    /// The worst that was measured so far: the longest hiccup, and the longest durable write.
    pub fn worst(&self) -> Duration {
        Duration::from_nanos(self.seen.hiccup.load(Relaxed) + self.seen.write.load(Relaxed))
    }
}

fn measure(worst: &AtomicU64, act: impl FnOnce()) {
    let before = clock::now();
    act();
    let took = clock::now().since(before).as_nanos();
    worst.fetch_max(u64::try_from(took).unwrap(), Relaxed);
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.seen.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
