//! Where everything is: the paths of Tenure's znodes, and the names of candidates.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tenure_core::{ElectionName, Namespace, NodeId, SessionId};

/// Everything but letters, digits, `-` and `_` is written `%XX`: no name is a path, and no two are one.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

pub(crate) fn escaped(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

fn plain(name: &str) -> Option<String> {
    percent_decode_str(name).decode_utf8().ok().map(|name| name.into_owned())
}

/// The znodes of one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub base: String,
    space: String,
}

impl Paths {
    pub(crate) fn new(base: &str, namespace: &Namespace) -> Self {
        Self { base: base.to_owned(), space: format!("{base}/{}", escaped(namespace.as_str())) }
    }

    /// Made once, when Tenure first comes here: it tells one ensemble from another. Not a namespace's
    /// name, since those have their points escaped.
    pub(crate) fn identity(&self) -> String {
        format!("{}/.identity", self.base)
    }

    /// All that must be there before anything else is.
    pub(crate) fn folders(&self) -> Vec<String> {
        let below = [
            "sessions",
            "pulses",
            "grants",
            "notices",
            "nodes",
            "log",
            "elections",
            "lines",
            "history",
            "ledgers",
        ];
        std::iter::once(self.space.clone())
            .chain(below.iter().map(|folder| format!("{}/{folder}", self.space)))
            .collect()
    }

    pub(crate) fn sessions(&self) -> String {
        format!("{}/sessions", self.space)
    }

    /// Ephemeral: it is there as long as the session is. Its version counts the session's connections.
    pub(crate) fn session(&self, session: SessionId) -> String {
        format!("{}/{session}", self.sessions())
    }

    /// The last sign of life of a session.
    pub(crate) fn pulse(&self, session: SessionId) -> String {
        format!("{}/pulses/{session}", self.space)
    }

    /// Its version counts the terms that the session was granted.
    pub(crate) fn grants(&self, session: SessionId) -> String {
        format!("{}/grants/{session}", self.space)
    }

    /// Its version counts how often others have left word for the session.
    pub(crate) fn notices(&self, session: SessionId) -> String {
        format!("{}/notices/{session}", self.space)
    }

    pub(crate) fn nodes(&self) -> String {
        format!("{}/nodes", self.space)
    }

    pub(crate) fn node(&self, node: &NodeId) -> String {
        format!("{}/{}", self.nodes(), escaped(node.as_str()))
    }

    /// What happened to nodes.
    pub(crate) fn log(&self) -> String {
        format!("{}/log", self.space)
    }

    pub(crate) fn elections(&self) -> String {
        format!("{}/elections", self.space)
    }

    /// The record of an election.
    pub(crate) fn election(&self, election: &ElectionName) -> String {
        format!("{}/{}", self.elections(), escaped(election.as_str()))
    }

    /// Who stands: the holder and those who wait.
    pub(crate) fn line(&self, election: &ElectionName) -> String {
        format!("{}/lines/{}", self.space, escaped(election.as_str()))
    }

    /// What happened to an election.
    pub(crate) fn history(&self, election: &ElectionName) -> String {
        format!("{}/history/{}", self.space, escaped(election.as_str()))
    }

    /// The head of a ledger.
    pub(crate) fn ledger(&self, election: &ElectionName) -> String {
        format!("{}/ledgers/{}", self.space, escaped(election.as_str()))
    }

    /// Its entries.
    pub(crate) fn leaves(&self, election: &ElectionName) -> String {
        format!("{}/leaves", self.ledger(election))
    }

    /// Who works for its coordinator.
    pub(crate) fn workers(&self, election: &ElectionName) -> String {
        format!("{}/workers", self.ledger(election))
    }

    pub(crate) fn worker(&self, election: &ElectionName, session: SessionId) -> String {
        format!("{}/{session}", self.workers(election))
    }

    /// What work there is, by number.
    pub(crate) fn task_lists(&self, election: &ElectionName) -> String {
        format!("{}/lists", self.ledger(election))
    }

    pub(crate) fn event(&self, election: &ElectionName, sequence: u64) -> String {
        format!("{}/{sequence:010}", self.history(election))
    }
}

/// The election whose record this is.
pub(crate) fn election_of(path: &str) -> Option<ElectionName> {
    ElectionName::new(plain(path.rsplit('/').next()?)?).ok()
}

/// A candidate in line, as its znode's name tells: `c-PRIORITY-SESSION-SEQUENCE`.
///
/// The session in the name is what Curator calls protection: after a create whose answer was lost, the
/// candidate finds its own znode by it, so no place in line is ever left without an owner who knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub name: String,
    pub session: SessionId,
    pub priority: i32,
    pub sequence: i64,
}

impl Place {
    /// What the server puts the sequence behind.
    pub(crate) fn prefix(session: SessionId, priority: i32) -> String {
        // So that names order like priorities: for people who list them.
        let rank = i64::from(i32::MAX) - i64::from(priority);
        format!("c-{rank:08x}-{session}-")
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("c-")?.splitn(3, '-');
        let rank = i64::from_str_radix(parts.next()?, 16).ok()?;
        let session = SessionId::from_u128(u128::from_str_radix(parts.next()?, 16).ok()?);
        let sequence = parts.next()?.parse().ok()?;
        let priority = i32::try_from(i64::from(i32::MAX) - rank).ok()?;
        Some(Self { name: name.to_owned(), session, priority, sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_znodes_and_come_back() {
        for name in ["reports", ".", "..", "a/b", "100%", "日本語", "zookeeper", ".identity"] {
            let election = ElectionName::new(name).unwrap();
            let paths = Paths::new("/tenure", &Namespace::default());
            let path = paths.election(&election);
            assert!(path.is_ascii() && path.matches('/').count() == 4, "{path}");
            assert_eq!(election_of(&path), Some(election));
        }
    }

    #[test]
    fn fuzz_whatever_a_znode_is_called_it_is_a_place_in_line_or_none() {
        let name = format!("{}0000000012", Place::prefix(SessionId::from_u128(7 << 96), -5));
        tenure_testkit::fuzz::fuzz_text(&[&name, "/tenure/default/elections/a%2Fb"], |name| {
            let _ = (Place::parse(name), election_of(name));
        });
    }

    #[test]
    fn a_place_in_line_is_told_by_its_name() {
        let session = SessionId::from_u128(7 << 96);
        for priority in [0, 5, -5, i32::MIN, i32::MAX] {
            let name = format!("{}0000000012", Place::prefix(session, priority));
            let place = Place::parse(&name).unwrap();
            assert_eq!((place.session, place.priority, place.sequence), (session, priority, 12));
        }
        assert!(Place::prefix(session, 9) < Place::prefix(session, 1));
        assert_eq!(Place::parse("_c_3a-latch-0000000001"), None);
    }
}
