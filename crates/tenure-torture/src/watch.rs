//! The witness: asks every leadership's check as fast as is sensible, and writes down the answers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tenure::Leadership;
use tenure_store::clock;

use crate::log::{Line, Log};
use crate::report::say;

const EVERY: Duration = Duration::from_millis(1);

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

/// A leadership under watch.
struct Seat {
    leadership: Leadership,
    slot: u64,
    from: u64,
    over: bool,
}

impl Watcher {
    pub fn start(log: Log, node: String, blind: bool) -> io::Result<Arc<Self>> {
        let watcher =
            Arc::new(Self { seats: Mutex::default(), log, node, blind, asked: AtomicBool::new(false) });
        let watching = Arc::clone(&watcher);
        // A plain thread: neither the application's runtime nor Tenure's decides when it looks.
        std::thread::Builder::new().name(String::from("watch")).spawn(move || {
            loop {
                let before = clock::now();
                watching.look();
                std::thread::sleep(EVERY);
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
        let mut seats = self.seats();
        let before = clock::now().as_nanos();
        if leadership.check().is_err() {
            return; // granted and lost before anybody could look: it never led
        }
        let slot = seats.lines;
        seats.lines += 1;
        let seat = Seat { leadership: leadership.clone(), slot, from: before, over: false };
        self.note(&seat, before);
        seats.all.push(seat);
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
        let is_over = |seat: &&Seat| seat.over || seat.leadership.check().is_err();
        let mut over = seats.all.iter().rev().filter(is_over);
        let ghost = over.find(|seat| seat.leadership.election().as_str() == election);
        ghost.map(|seat| seat.leadership.clone())
    }

    fn look(&self) {
        let mut seats = self.seats();
        for seat in &mut seats.all {
            let before = clock::now().as_nanos();
            let passes = self.blind || seat.leadership.check().is_ok();
            match (passes, seat.over) {
                (true, false) => self.note(seat, before),
                (false, false) => seat.over = true,
                // It is written down as well: then the checker sees it too.
                (true, true) => {
                    say("revived", json!({ "term": seat.leadership.term().number() }));
                    self.note(seat, before);
                }
                (false, true) => {}
            }
        }
        let ghosts = seats.all.iter().filter(|seat| seat.over).count();
        if ghosts > GHOSTS
            && let Some(oldest) = seats.all.iter().position(|seat| seat.over)
        {
            seats.all.remove(oldest);
        }
    }

    fn note(&self, seat: &Seat, until: u64) {
        let line = Line {
            election: seat.leadership.election().as_str(),
            node: &self.node,
            term: seat.leadership.term().number(),
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
