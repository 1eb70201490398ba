//! What a service manager is told (`Type=notify`): ready, what goes on, still alive.

use std::time::Duration;

use sd_notify::NotifyState;

/// The line to the service manager, if there is one.
pub struct Service;

impl Service {
    /// This node stands.
    pub fn ready(&self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// What goes on, for `systemctl status`.
    pub fn status(&self, text: &str) {
        self.tell(&[NotifyState::Status(text)]);
    }

    /// On the way out.
    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Says that we are alive, as often as the service manager wants to hear it. Never returns.
    pub async fn keep_alive(&self) {
        let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| *limit > Duration::ZERO) else {
            return std::future::pending().await;
        };
        loop {
            self.tell(&[NotifyState::Watchdog]);
            tokio::time::sleep(limit / 3).await;
        }
    }

    fn tell(&self, state: &[NotifyState<'_>]) {
        // Without a service manager this does nothing, and with one that does not listen it is no
        // reason to stop.
        let _ = sd_notify::notify(state);
    }
}
