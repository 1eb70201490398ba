//! A second thread that does nothing but look at the clock. When the driver is stalled past the
//! session's deadline, it tells the work to stop in the driver's place.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Instant, Reason};
use tenure_store::clock::{self, Timer};

use crate::link::Status;
use crate::office::Roster;
use crate::page::{Page, Sight};

/// The driver's end of it. Dropping it ends the watch.
pub(crate) struct Watchdog {
    timer: Arc<Timer>,
    status: Arc<Status>,
}

impl Watchdog {
    /// Watches `page` on a thread of its own. After the deadline, the work has `grace` until it is
    /// cut off.
    pub(crate) fn start(
        page: Arc<Page>,
        roster: Arc<Roster>,
        status: Arc<Status>,
        grace: Duration,
    ) -> io::Result<Self> {
        let timer = Arc::new(Timer::blocking()?);
        let watch = Watch { timer: Arc::clone(&timer), page, roster, status: Arc::clone(&status), grace };
        std::thread::Builder::new().name(String::from("tenure-watch")).spawn(move || watch.run())?;
        Ok(Self { timer, status })
    }

    /// The deadline has moved.
    pub(crate) fn expect(&self, deadline: Instant) {
        // The timer was made to be set; should the system refuse, every check is still right.
        let _ = self.timer.set((deadline != Instant::ZERO).then_some(deadline));
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The end is said before; if not, the driver died, and has closed every office itself.
        let _ = self.status.ending.set(crate::error::Ending::DriverDied);
        let _ = self.timer.set(Some(Instant::ZERO));
    }
}

struct Watch {
    timer: Arc<Timer>,
    page: Arc<Page>,
    roster: Arc<Roster>,
    status: Arc<Status>,
    grace: Duration,
}

impl Watch {
    fn run(self) {
        let mut cut_off_at = None;
        while self.timer.wait().is_ok() && self.status.ending.get().is_none() {
            if let Sight::Held = self.page.look() {
                cut_off_at = None; // the driver will set the timer anew
                continue;
            }
            let now = clock::now();
            let at = *cut_off_at.get_or_insert(now + self.grace);
            self.roster.close_lapsed();
            if at <= now {
                self.roster.cut_off_all();
                cut_off_at = None;
            } else {
                let _ = self.timer.set(Some(at));
            }
        }
    }
}

impl Roster {
    /// Closes every office that the page does not support any more.
    fn close_lapsed(&self) {
        for office in self.all() {
            if let Err(lost) = office.check()
                && lost.reason != Reason::Forked
            {
                office.close(lost.reason);
            }
        }
    }
}
