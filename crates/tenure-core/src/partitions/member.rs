//! A node as the plan sees it.

/// A node that partitions can be given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its share of the work, relative to the others: with twice the capacity it gets twice as
    /// much. With 0 it gets nothing.
    pub capacity: u32,
    /// The most weight that it may ever carry, whatever the others carry.
    pub limit: Option<u64>,
    /// What it shares its fate with: a rack, an availability zone.
    pub zone: u16,
    /// What task lists can ask for.
    pub labels: Labels,
    /// What it takes and gives at the moment.
    pub readiness: Readiness,
}

impl Default for Member {
    fn default() -> Self {
        Self { capacity: 1, limit: None, zone: 0, labels: Labels::default(), readiness: Readiness::Open }
    }
}

/// What a member takes and gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// Takes and gives as balance asks for.
    #[default]
    Open,
    /// Keeps what it has, and gets nothing more: it is expected back in a moment, or has come and gone
    /// too often lately.
    Held,
    /// Gives away all that others can take, and gets nothing more.
    Draining,
}

/// A set of labels, each a number that the caller has given to a word.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<u32>);

impl Labels {
    /// Whether all of `needed` are among these.
    #[must_use]
    pub fn satisfy(&self, needed: &Self) -> bool {
        needed.0.iter().all(|label| self.0.binary_search(label).is_ok())
    }
}

impl FromIterator<u32> for Labels {
    fn from_iter<T: IntoIterator<Item = u32>>(labels: T) -> Self {
        let mut labels: Vec<u32> = labels.into_iter().collect();
        labels.sort_unstable();
        labels.dedup();
        Self(labels)
    }
}
