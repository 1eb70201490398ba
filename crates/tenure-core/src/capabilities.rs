//! What stores do differently, as data.

/// What a store can do. The one machine handles every combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// Who decides that a session is over.
    pub expiry: ExpiryJudge,
    /// How candidates learn of changes.
    pub news: News,
    /// Who may speak for a session.
    pub sessions: Sessions,
}

/// Who decides that a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpiryJudge {
    /// The store's own timer retires it.
    Store,
    /// Rivals time its silence, and retire it by compare-and-set on the pulse that they saw.
    Candidate,
}

/// How candidates learn of changes. News only shortens waits; it never carries truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// The store tells.
    Push,
    /// Candidates look.
    Poll,
}

/// Who may speak for a session: open it again, renew it, claim and resign under it. Closing it is open to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sessions {
    /// Whoever knows its id, over any connection.
    Anywhere,
    /// Only the connection that opened it: the store keeps it for as long as that one says so.
    OwnConnection,
}
