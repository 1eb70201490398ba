//! Who owns which partition: one number per partition, and nothing else.

use std::fmt;

/// One partition of one task list. Both numbers count from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Partition {
    /// The task list.
    pub list: u32,
    /// Which of its partitions.
    pub number: u32,
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.list, self.number)
    }
}

/// Nobody, in a place where a member's index is meant.
const NOBODY: u32 = u32::MAX;

/// The owner of every partition, by the member's index. All task lists lie in one dense vector, one
/// after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    owners: Vec<u32>,
    /// Where each task list begins, and at the end where the last one ends.
    begins: Vec<usize>,
}

impl Assignment {
    /// Nobody owns anything of task lists with these counts.
    #[must_use]
    pub fn vacant(counts: impl IntoIterator<Item = u32>) -> Self {
        let mut begins = vec![0];
        let mut end = 0;
        for count in counts {
            end += count as usize;
            begins.push(end);
        }
        Self { owners: vec![NOBODY; end], begins }
    }

    /// How many task lists there are.
    #[must_use]
    pub fn lists(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// How many partitions there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are no partitions at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// How many partitions a task list has here; 0 if it is not known.
    #[must_use]
    pub fn count(&self, list: u32) -> u32 {
        u32::try_from(self.range(list).len()).unwrap_or(u32::MAX)
    }

    /// The owner of a partition: none if it has none, or is not known here.
    #[must_use]
    pub fn owner(&self, partition: Partition) -> Option<u32> {
        let range = self.range(partition.list);
        let owner = *self.owners.get(range)?.get(partition.number as usize)?;
        (owner != NOBODY).then_some(owner)
    }

    /// Gives a partition to a member, or takes it away. A partition that is not known here is not changed.
    pub fn set(&mut self, partition: Partition, owner: Option<u32>) {
        let range = self.range(partition.list);
        if let Some(slot) = self.owners[range].get_mut(partition.number as usize) {
            *slot = owner.unwrap_or(NOBODY);
        }
    }

    /// Every partition with its owner.
    pub fn iter(&self) -> impl Iterator<Item = (Partition, Option<u32>)> + '_ {
        (0..).zip(self.begins.windows(2)).flat_map(|(list, ends)| {
            let owners = &self.owners[ends[0]..ends[1]];
            (0..).zip(owners).map(move |(number, owner)| {
                (Partition { list, number }, (*owner != NOBODY).then_some(*owner))
            })
        })
    }

    pub(super) fn range(&self, list: u32) -> std::ops::Range<usize> {
        let list = list as usize;
        match (self.begins.get(list), self.begins.get(list + 1)) {
            (Some(begin), Some(end)) => *begin..*end,
            _ => 0..0,
        }
    }

    /// The partition at a place of the dense vector.
    pub(super) fn at(&self, place: usize) -> Partition {
        let list = self.begins.partition_point(|begin| *begin <= place) - 1;
        let number = u32::try_from(place - self.begins[list]).unwrap_or(u32::MAX);
        Partition { list: u32::try_from(list).unwrap_or(u32::MAX), number }
    }

    pub(super) fn owners(&self) -> &[u32] {
        &self.owners
    }

    pub(super) fn put(&mut self, place: usize, owner: u32) {
        self.owners[place] = owner;
    }
}

/// One partition changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub partition: Partition,
    /// Who owns it now.
    pub from: Option<u32>,
    /// Who shall own it; nobody if its task list has shrunk or is paused, or if nobody may.
    pub to: Option<u32>,
}
