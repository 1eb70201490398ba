//! The layouts of other libraries: the exact names of their znodes, so that a service that uses Tenure can join
//! an election that others already run.

use tenure_core::SessionId;

/// Whose znodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Apache Curator's `LeaderLatch`.
    CuratorLatch,
    /// Apache Curator's `LeaderSelector`, which is a mutex of its.
    CuratorSelector,
    /// kazoo's `Election`, which is a `Lock` of its.
    Kazoo,
    /// Comcast's go-leaderelection.
    GoLeaderelection,
}

const ALL: [Layout; 4] =
    [Layout::CuratorLatch, Layout::CuratorSelector, Layout::Kazoo, Layout::GoLeaderelection];

/// What go-leaderelection makes when an election is over.
pub(crate) const DONE: &str = "DONE";

impl Layout {
    /// As the store URL calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CuratorLatch => "curator-latch",
            Self::CuratorSelector => "curator-selector",
            Self::Kazoo => "kazoo",
            Self::GoLeaderelection => "go-leaderelection",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// What stands directly before the sequence.
    const fn mark(self) -> &'static str {
        match self {
            Self::CuratorLatch => "latch-",
            Self::CuratorSelector => "lock-",
            Self::Kazoo => "__lock__",
            Self::GoLeaderelection => "le_",
        }
    }

    /// What the server puts the sequence behind. Go's candidates are compared as a whole, so they have no
    /// room for a name of their own.
    pub(crate) fn prefix(self, session: SessionId) -> String {
        let mark = self.mark();
        match self {
            Self::CuratorLatch | Self::CuratorSelector => format!("_c_{}-{mark}", uuid(session)),
            Self::Kazoo => format!("{session}{mark}"),
            Self::GoLeaderelection => mark.to_owned(),
        }
    }

    /// The sequence of a candidate; none if this is no candidate.
    pub(crate) fn sequence(self, name: &str) -> Option<i64> {
        let (_, sequence) = name.rsplit_once(self.mark())?;
        (sequence.len() >= 10).then(|| sequence.parse().ok())?
    }
}

fn uuid(session: SessionId) -> String {
    let hex = session.to_string();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_originals() {
        let session = SessionId::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let name = |layout: Layout| format!("{}0000000007", layout.prefix(session));
        assert_eq!(name(Layout::CuratorLatch), "_c_00112233-4455-6677-8899-aabbccddeeff-latch-0000000007");
        assert_eq!(name(Layout::CuratorSelector), "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000007");
        assert_eq!(name(Layout::Kazoo), "00112233445566778899aabbccddeeff__lock__0000000007");
        assert_eq!(name(Layout::GoLeaderelection), "le_0000000007");
        for layout in ALL {
            assert_eq!(layout.sequence(&name(layout)), Some(7));
            assert_eq!(layout.sequence(DONE), None);
            assert_eq!(Layout::named(layout.name()), Some(layout));
        }
    }
}
