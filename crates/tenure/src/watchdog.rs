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
            cut_off_at = match self.page.look() {
                Sight::Held => None,
                Sight::Over(_) => self.over(cut_off_at),
            };
            self.arm(cut_off_at);
            // Said while the timer was set here: the one that `Drop` set may have been overwritten.
            if self.status.ending.get().is_some() {
                return;
            }
        }
    }

    /// Tells the work to stop, and cuts it off once its time is over. Gives the instant of that, if it is to come.
    fn over(&self, cut_off_at: Option<Instant>) -> Option<Instant> {
        let now = clock::now();
        let at = cut_off_at.unwrap_or(now + self.grace);
        self.roster.close_lapsed();
        if at <= now {
            self.roster.cut_off_all();
            return None;
        }
        Some(at)
    }

    /// Sets the timer for what is due next: the end of the grace, or the published deadline. The driver publishes a
    /// deadline before it sets the timer, and here the timer is set before the deadline is read; so whichever of the
    /// two is last, the timer fires no later than the deadline.
    fn arm(&self, cut_off_at: Option<Instant>) {
        let _ = self.timer.set(cut_off_at);
        if let Some(deadline) = self.page.deadline() {
            let next = cut_off_at.map_or(deadline, |at| at.min(deadline));
            let _ = self.timer.set(Some(next));
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

#[cfg(test)]
mod tests {
    use tenure_core::{ElectionName, SessionId, Term};
    use tenure_testkit::patience::until;

    use super::*;
    use crate::office::Office;

    const GRACE: Duration = Duration::from_millis(20);

    struct Stalled {
        page: Arc<Page>,
        office: Arc<Office>,
        watchdog: Watchdog,
    }

    /// A driver that has published a deadline, and then does nothing any more.
    fn stalled(deadline: Instant) -> Stalled {
        let page = Arc::new(Page::new().unwrap());
        assert!(page.publish(Instant::ZERO, deadline));
        let roster = Arc::new(Roster::default());
        let election = ElectionName::new("jobs").unwrap();
        let office = Office::new(1, election, Term::new(1), SessionId::from_u128(1), Arc::clone(&page));
        roster.enter(Arc::clone(&office));
        let status = Arc::new(Status::default());
        let watchdog = Watchdog::start(Arc::clone(&page), roster, status, GRACE).unwrap();
        Stalled { page, office, watchdog }
    }

    #[test]
    fn a_watchdog_that_was_woken_too_early_arms_itself_for_the_published_deadline() {
        let deadline = clock::now() + Duration::from_millis(150);
        let stalled = stalled(deadline);
        stalled.watchdog.expect(deadline - Duration::from_millis(149));
        until("the work is told to stop", || stalled.office.lost().is_cancelled());
        assert!(clock::now() >= deadline, "not before the deadline");
    }

    #[test]
    fn a_watchdog_that_waits_to_cut_off_the_work_of_one_session_still_watches_the_next() {
        let first = stalled(clock::now() + Duration::from_millis(1));
        first.watchdog.expect(clock::now());
        until("the first session is over", || first.office.lost().is_cancelled());
        // The driver opens another session; the watchdog's own timer for the grace overwrites the one it sets.
        let deadline = clock::now() + GRACE * 5;
        assert!(first.page.publish(Instant::ZERO, deadline));
        first.watchdog.expect(clock::now() + GRACE);
        let page = Arc::clone(&first.page);
        until("the deadline of the second session is noticed", || page.deadline().is_none());
        assert!(clock::now() >= deadline);
    }
}
