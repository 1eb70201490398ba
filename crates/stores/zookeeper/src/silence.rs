//! How long a session had been silent when it ended: for the history. The servers forget its last renewal with it, so
//! it is told by whoever knows: its own process, or a candidate that waited behind it.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tenure_core::{Instant, SessionId};
use tenure_store::{Silence, clock};

use crate::documents::{self, HolderDocument};
use crate::inner::{Inner, Tenant, lock};
use crate::view::Pulses;

/// How many sessions are remembered: more would be those of nodes that are gone.
const MOST: usize = 1_000;

/// The last renewals of other nodes' sessions, as far as they were read.
#[derive(Debug, Default)]
pub(crate) struct Signs(HashMap<SessionId, Sign>);

/// A renewal as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    pub ttl: Duration,
    /// By the wall clock of a server.
    pub renewed_ms: i64,
}

impl Signs {
    pub(crate) fn note(&mut self, pulses: &Pulses) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.extend(pulses.signs());
    }
}

impl Sign {
    /// How long a session has been silent that the servers have just ended.
    ///
    /// They do so a ttl after they last heard of it. If all of them were away, they count anew once they are back; whoever
    /// takes over then has opened its own session after that, and has read the last renewal from before.
    fn silence(self, opened: Instant, now: Instant, wall_ms: i64) -> Duration {
        if now.since(opened) > 2 * self.ttl {
            return self.ttl;
        }
        let since = u64::try_from(wall_ms.saturating_sub(self.renewed_ms)).unwrap_or(0);
        self.ttl.max(Duration::from_millis(since))
    }
}

impl Inner {
    /// What is recorded of a holder whose session is over, by whoever takes over from it.
    pub(crate) fn loss(&self, lost: &HolderDocument, taker: Option<&Tenant>) -> Value {
        let session = documents::session("holder", &lost.session).ok();
        let reopened = taker.is_some_and(|taker| taker.node.as_str() == lost.node);
        let silence = session.and_then(|session| self.silence(session, reopened, taker));
        Value::Object(silence.unwrap_or_default().data())
    }

    /// The same for a session that its own process has superseded.
    pub(crate) fn superseded(&self, session: SessionId) -> Value {
        let silence = self.silence(session, true, None);
        Value::Object(silence.unwrap_or(Silence { reopened: true, ..Silence::default() }).data())
    }

    fn silence(&self, session: SessionId, reopened: bool, taker: Option<&Tenant>) -> Option<Silence> {
        let now = clock::now();
        if let Some(past) = lock(&self.former).find(session) {
            let silent = now.since(past.renewed);
            return Some(Silence { silent: Some(silent), ttl: Some(past.ttl), reopened });
        }
        let sign = lock(&self.signs).0.get(&session).copied()?;
        let wall_ms = i64::try_from(documents::now_us() / 1_000).unwrap_or(i64::MAX);
        let opened = taker.map_or(now, |taker| taker.opened);
        // Another process under the same node id: the former one may have died.
        Some(Silence {
            silent: Some(sign.silence(opened, now, wall_ms)),
            ttl: Some(sign.ttl),
            reopened: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_was_silent_for_its_ttl_unless_the_servers_were_away() {
        let (ttl, second) = (Duration::from_secs(4), 1_000_000_000);
        let sign = Sign { ttl, renewed_ms: 10_000 };
        let silence = |opened: u64, wall_ms| {
            sign.silence(Instant::from_nanos(opened * second), Instant::from_nanos(100 * second), wall_ms)
        };
        assert_eq!(silence(10, 30_000), ttl, "it has renewed since this was read");
        assert_eq!(silence(96, 30_000), Duration::from_secs(20), "the servers came back four seconds ago");
        assert_eq!(silence(96, 11_000), ttl, "the clocks differ");
    }
}
