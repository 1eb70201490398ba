//! The health of the application: an unhealthy node leads nothing and waits in no line.

use crate::capabilities::News;
use crate::election::{Act, Candidacy, Phase, Role, Then};
use crate::event::Reason;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::request::ElectionKey;
use crate::time::Instant;

impl Machine {
    /// The health of the application. While it is unhealthy, this node leads nothing, and it is not a candidate
    /// for the store: a place in a queue that is never used would keep the lease from everybody behind it.
    pub fn health(&mut self, healthy: bool, now: Instant) {
        self.expire(now);
        if self.healthy == healthy || self.planted.has(Plant::HealthIgnored) {
            return;
        }
        self.healthy = healthy;
        if healthy {
            self.reopen_when_stopped(now);
        }
        for key in self.keys() {
            if healthy {
                self.return_to_line(key, now);
            } else {
                self.depose(key, Reason::Unhealthy, now);
                self.leave_line(key, now);
            }
        }
    }

    /// Withdraws the candidacy from the store, and goes on with it here. The resignation also voids a claim that
    /// is still on its way, and gives back a lease that such a claim, or a leader that passed it on, has won.
    pub(crate) fn leave_line(&mut self, key: ElectionKey, now: Instant) {
        let stands = matches!(self.election(key).role, Role::Standing(_));
        if !stands || !self.session.is_open() || self.planted.has(Plant::UnwellStaysInLine) {
            return;
        }
        self.become_resigning(key, None, None, now);
        if let Role::Resigning(resignation) = &mut self.election(key).role {
            resignation.then = Then::GoOn;
        }
    }

    fn return_to_line(&mut self, key: ElectionKey, now: Instant) {
        if let Role::Standing(Candidacy { phase: Phase::Waiting { .. }, .. }) = self.election(key).role {
            self.look_anew(key, now);
        }
    }

    /// What an unhealthy candidate does instead: it never claims, but it reads, so that it knows who leads and
    /// hears of the election's end; and it tells a store that went back of the terms that it remembers.
    pub(crate) fn without_claim(&self, act: Act) -> Act {
        match act {
            Act::Claim { .. } if !self.healthy => Act::Look,
            act => act,
        }
    }

    /// When an unhealthy candidate reads next.
    pub(crate) fn idle_look_at(&self, now: Instant) -> Instant {
        match self.capabilities.news {
            News::Push => now + self.settings.ttl,
            News::Poll => now + self.settings.poll_every,
        }
    }
}
