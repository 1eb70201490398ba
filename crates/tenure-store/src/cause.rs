//! Why a term or a session ended, as it is recorded with the event that tells of it. Nothing is decided by it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::history::EventKind;

/// Why a node gives up a lease or closes a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cause {
    /// The node resigns: it was asked to, or it stops.
    #[default]
    Resigned,
    /// The program that it ran exited with this code.
    ProgramExited(i32),
    /// The program that it ran was killed by this signal.
    ProgramKilled(i32),
    /// Its process has ended. The kernel told so to another process, which closes the session in its place.
    ProcessEnded,
}

impl Cause {
    /// Whether the term was lost. A program that exited with 0 has done its work.
    #[must_use]
    pub const fn is_loss(self) -> bool {
        !matches!(self, Self::Resigned | Self::ProgramExited(0))
    }

    /// The event that records the end of a term.
    #[must_use]
    pub const fn event(self) -> EventKind {
        if self.is_loss() { EventKind::LeaderLost } else { EventKind::LeaderResigned }
    }

    /// The data of that event. It has a `reason` if and only if the term was lost.
    #[must_use]
    pub fn data(self) -> Map<String, Value> {
        let data = match self {
            Self::Resigned => json!({}),
            Self::ProgramExited(0) => json!({"exit_code": 0}),
            Self::ProgramExited(code) => json!({"reason": "program_failed", "exit_code": code}),
            Self::ProgramKilled(signal) => json!({"reason": "program_failed", "signal": signal}),
            Self::ProcessEnded => json!({"reason": "process_ended", "witnessed": true}),
        };
        object(data)
    }
}

/// What a store knows of a session that ended without a word of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// How long ago its last renewal was.
    pub silent: Option<Duration>,
    /// How long it was to live without a renewal.
    pub ttl: Option<Duration>,
    /// Its own process has opened another session in its place. Otherwise another node has retired it.
    pub reopened: bool,
}

impl Silence {
    /// The data of [`EventKind::LeaderLost`]. The reason is `superseded` only where the process gave the session up
    /// before its ttl was over.
    #[must_use]
    pub fn data(self) -> Map<String, Value> {
        let lasted = self.silent.zip(self.ttl).is_none_or(|(silent, ttl)| silent < ttl);
        let reason = if self.reopened && lasted { "superseded" } else { "lapsed" };
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let mut data = Map::from_iter([(String::from("reason"), json!(reason))]);
        data.extend(self.silent.map(|silent| (String::from("silent_ms"), json!(millis(silent)))));
        data.extend(self.ttl.map(|ttl| (String::from("ttl_ms"), json!(millis(ttl)))));
        data.extend(self.reopened.then(|| (String::from("reopened"), json!(true))));
        data
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_resignation_and_a_program_that_succeeded_are_no_loss() {
        let told = |cause: Cause| (cause.event().name(), Value::Object(cause.data()).to_string());
        assert_eq!(told(Cause::Resigned), ("leader_resigned", String::from("{}")));
        assert_eq!(told(Cause::ProgramExited(0)), ("leader_resigned", String::from(r#"{"exit_code":0}"#)));
        for cause in [Cause::ProgramExited(1), Cause::ProgramKilled(9), Cause::ProcessEnded] {
            assert_eq!(cause.event(), EventKind::LeaderLost);
            assert!(cause.data().contains_key("reason"));
        }
    }

    #[test]
    fn a_session_is_superseded_only_before_its_ttl_is_over() {
        let second = Duration::from_secs(1);
        let reason = |silent, reopened| {
            let data = Silence { silent, ttl: Some(4 * second), reopened }.data();
            data["reason"].as_str().unwrap().to_owned()
        };
        assert_eq!(reason(Some(3 * second), true), "superseded");
        assert_eq!(reason(Some(17 * second), true), "lapsed");
        assert_eq!(reason(None, true), "superseded");
        assert_eq!(reason(Some(5 * second), false), "lapsed");
        let data = Silence { silent: Some(17 * second), ttl: Some(4 * second), reopened: true }.data();
        assert_eq!(
            (&data["silent_ms"], &data["ttl_ms"], &data["reopened"]),
            (&json!(17_000), &json!(4_000), &json!(true))
        );
    }
}
