//! The term: a number that rises with every grant, and so fences every write.

use std::fmt;

/// Counts the grants of one election. Whoever shows a lower term than one already seen is too late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Term(u64);

impl Term {
    /// Before the first grant.
    pub const NONE: Self = Self(0);

    /// The term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number to store beside what the leader writes.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The term after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Term({})", self.0)
    }
}

/// Guards a resource that Tenure does not own: it remembers the highest term that came by, and
/// refuses lower ones.
///
/// Keep it where the resource is (in the service that does the writing, persisted with what is
/// written). It closes the one gap that no lock can close: a leader that pauses between its check
/// and its write.
///
/// ```
/// use tenure_core::{Fence, Term};
/// let mut fence = Fence::default();
/// assert!(fence.admit(Term::new(4)).is_ok());
/// assert!(fence.admit(Term::new(4)).is_ok()); // the same leader writes again
/// assert!(fence.admit(Term::new(5)).is_ok()); // its successor
/// assert!(fence.admit(Term::new(4)).is_err()); // the old one wakes up: too late
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    highest: Term,
}

/// A write came from a leader that has since been succeeded. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("term {shown} is over: term {highest} has already written here")]
pub struct Fenced {
    /// The term that the writer showed.
    pub shown: Term,
    /// The highest term that this resource has seen.
    pub highest: Term,
}

impl Fence {
    /// A fence that has already seen `highest`, as read back from where it was persisted.
    #[must_use]
    pub const fn resume(highest: Term) -> Self {
        Self { highest }
    }

    /// The highest term admitted so far: what to persist.
    #[must_use]
    pub const fn highest(&self) -> Term {
        self.highest
    }

    /// Admits `term` unless a higher one was admitted before.
    ///
    /// # Errors
    /// [`Fenced`] if the term is over. The fence is unchanged.
    pub fn admit(&mut self, term: Term) -> Result<(), Fenced> {
        if term < self.highest {
            return Err(Fenced { shown: term, highest: self.highest });
        }
        self.highest = term;
        Ok(())
    }
}
