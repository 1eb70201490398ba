//! A task list as the plan sees it.

use super::member::Labels;

/// A task list, and where its partitions may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskList {
    /// How many partitions it has.
    pub partitions: u32,
    /// What each of them weighs, relative to those of other task lists. 0 counts as 1.
    pub weight: u32,
    /// A paused task list is owned by nobody.
    pub paused: bool,
    /// Labels that an owner must have.
    pub needs: Labels,
    /// Members that own nothing of it.
    pub excluded: Vec<u32>,
    /// Partitions that belong to a certain member as long as it is there, whatever else is asked.
    /// While it is not, they are like all others.
    pub pins: Vec<(u32, u32)>,
    /// No zone gets more than its even part, if it can be helped.
    pub spread: bool,
}

impl TaskList {
    /// An ordinary task list with this many partitions.
    #[must_use]
    pub fn new(partitions: u32) -> Self {
        Self {
            partitions,
            weight: 1,
            paused: false,
            needs: Labels::default(),
            excluded: Vec::new(),
            pins: Vec::new(),
            spread: false,
        }
    }

    pub(super) fn weight(&self) -> u64 {
        u64::from(self.weight.max(1))
    }
}
