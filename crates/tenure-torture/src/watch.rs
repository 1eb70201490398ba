//! The witness: asks every check as fast as is sensible, that of leaderships and of partitions, and writes down the
//! answers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tenure::{Leadership, Partition};
use tenure_store::clock;

use crate::args::Args;
use crate::log::{Line, Log};
use crate::report::say;

/// A longer time between two looks is told: this process, or the machine, has stood still.
const PAUSE: Duration = Duration::from_millis(50);

/// How many leaderships that are over are still asked whether they really are.
const GHOSTS: usize = 32;

pub struct Watcher {
    seats: Mutex<Seats>,
    log: Log,
    node: String,
    blind: bool,
    asked: AtomicBool,
}

#[derive(Default)]
struct Seats {
    all: Vec<Seat>,
    /// Lines of the log that are taken.
    lines: u64,
}

/// Something under watch.
struct Seat {
    held: Held,
    slot: u64,
    from: u64,
    over: bool,
}

/// What passes a check, or does not.
enum Held {
    Leadership(Leadership),
    Partition(Partition),
    /// What a blind one still takes for its own.
    Imagined {
        name: String,
        term: u64,
    },
}

impl Held {
    fn passes(&self) -> bool {
        match self {
            Self::Leadership(leadership) => leadership.check().is_ok(),
            Self::Partition(partition) => partition.check().is_ok(),
            Self::Imagined { .. } => false,
        }
    }

    /// The election; for a partition `domain/list/number`, which is judged like one.
    fn name(&self) -> String {
        match self {
            Self::Leadership(leadership) => leadership.election().as_str().to_owned(),
            Self::Partition(partition) => {
                format!("{}/{}", partition.task_list().as_str(), partition.number())
            }
            Self::Imagined { name, .. } => name.clone(),
        }
    }

    fn term(&self) -> u64 {
        match self {
            Self::Leadership(leadership) => leadership.term().number(),
            Self::Partition(partition) => partition.term().number(),
            Self::Imagined { term, .. } => *term,
        }
    }
}

/// Watched until this is dropped.
pub struct Watched {
    watcher: Arc<Watcher>,
    slot: Option<u64>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut seats = self.watcher.seats();
        if !self.watcher.blind {
            seats.all.retain(|seat| seat.slot != slot);
        } else if let Some(seat) = seats.all.iter_mut().find(|seat| seat.slot == slot) {
            seat.held = Held::Imagined { name: seat.held.name(), term: seat.held.term() };
        }
    }
}

impl Watcher {
    pub fn start(log: Log, args: &Args) -> io::Result<Arc<Self>> {
        let (node, blind, every) = (args.node.clone(), args.blind, args.watch_every);
        let watcher =
            Arc::new(Self { seats: Mutex::default(), log, node, blind, asked: AtomicBool::new(false) });
        let watching = Arc::clone(&watcher);
        // A plain thread: neither the application's runtime nor Tenure's decides when it looks.
        std::thread::Builder::new().name(String::from("watch")).spawn(move || {
            loop {
                let before = clock::now();
                watching.look();
                std::thread::sleep(every);
                watching.tell_of_pauses(clock::now().since(before));
            }
        })?;
        Ok(watcher)
    }

    /// Watches a leadership that was just granted.
    ///
    /// The clock is read *before* each check, and an answer counts for that reading: a check that
    /// passes also passed at every instant before it, back to the grant. So whatever the log says
    /// is certain, even if this process is stopped between any two of these lines.
    pub fn watch(&self, leadership: &Leadership) {
        self.seat(Held::Leadership(leadership.clone()));
    }

    /// The same for a partition, until what is returned is dropped: whoever has a guard keeps it from others.
    pub fn watch_partition(self: &Arc<Self>, partition: &Partition) -> Watched {
        Watched { watcher: Arc::clone(self), slot: self.seat(Held::Partition(partition.clone())) }
    }

    fn seat(&self, held: Held) -> Option<u64> {
        let mut seats = self.seats();
        let before = clock::now().as_nanos();
        if !held.passes() {
            return None; // granted and lost before anybody could look: it never led
        }
        let slot = seats.lines;
        seats.lines += 1;
        let seat = Seat { held, slot, from: before, over: false };
        self.note(&seat, before);
        seats.all.push(seat);
        Some(slot)
    }

    /// Answers after the next look: by then, every pause until now has been told.
    pub fn ping(&self) {
        self.asked.store(true, Relaxed);
    }

    fn tell_of_pauses(&self, took: Duration) {
        if took > PAUSE {
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            say("paused", json!({ "node": self.node, "nanos": nanos }));
        }
        if self.asked.swap(false, Relaxed) {
            say("pong", json!({ "node": self.node }));
        }
    }

    /// The last leadership of an election that is over.
    pub fn ghost(&self, election: &str) -> Option<Leadership> {
        let seats = self.seats();
        // Asked here again: the thread may not have looked since it was lost.
        let over = seats.all.iter().rev().filter(|seat| seat.over || !seat.held.passes());
        let mut led = over.filter_map(|seat| match &seat.held {
            Held::Leadership(leadership) => Some(leadership),
            Held::Partition(_) | Held::Imagined { .. } => None,
        });
        led.find(|leadership| leadership.election().as_str() == election).cloned()
    }

    fn look(&self) {
        let mut seats = self.seats();
        for seat in &mut seats.all {
            let before = clock::now().as_nanos();
            let passes = self.blind || seat.held.passes();
            match (passes, seat.over) {
                (true, false) => self.note(seat, before),
                (false, false) => seat.over = true,
                // It is written down as well: then the checker sees it too.
                (true, true) => {
                    say("revived", json!({ "term": seat.held.term() }));
                    self.note(seat, before);
                }
                (false, true) => {}
            }
        }
        let ghost = |seat: &Seat| seat.over && matches!(seat.held, Held::Leadership(_));
        if seats.all.iter().filter(|seat| ghost(seat)).count() > GHOSTS
            && let Some(oldest) = seats.all.iter().position(ghost)
        {
            seats.all.remove(oldest);
        }
    }

    fn note(&self, seat: &Seat, until: u64) {
        let line = Line {
            election: &seat.held.name(),
            node: &self.node,
            term: seat.held.term(),
            from: seat.from,
            until,
        };
        if let Err(error) = self.log.write(seat.slot, &line) {
            // Evidence that is missing would look like innocence.
            eprintln!("candidate: the log cannot be written: {error}");
            std::process::abort();
        }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
