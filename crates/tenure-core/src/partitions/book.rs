//! The ledger as the coordinator knows it.

use super::assignment::Partition;
use super::ledger::{Entry, Holding, Page, Revision};
use super::review::Review;
use crate::record::Renewed;

#[derive(Debug, Default)]
pub(super) struct Book {
    /// By task list and number.
    lists: Vec<Vec<Row>>,
    /// Everything up to this revision is in here, or is being read again.
    pub cursor: Revision,
    /// The highest revision that is known.
    revision: Revision,
    review: Review,
    /// The revision of the last publication.
    pub published: Revision,
}

/// A partition that was never written about is vacant, at revision 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub revision: Revision,
    pub holding: Holding,
}

impl Book {
    /// Takes note of what renewals told. Says whether something is to be read again.
    pub fn renewed(&mut self, renewed: Renewed) -> bool {
        !self.review.knows(renewed) && self.review.renewed(renewed, self.cursor, self.revision)
    }

    /// From where to read.
    pub fn open(&mut self) -> Revision {
        self.cursor = self.review.begin().unwrap_or(self.cursor);
        self.cursor
    }

    /// Takes a page of the ledger. `false`: the ledger went back in time.
    pub fn turn(&mut self, page: &Page) -> bool {
        let behind = page.revision < self.revision || page.published < self.published;
        if behind || page.entries.iter().any(|entry| self.contradicts(entry)) {
            return false;
        }
        for entry in &page.entries {
            self.review.read(entry.partition);
            self.write(entry);
        }
        self.published = page.published;
        self.revision = page.revision;
        let last = page.entries.last().map_or(page.revision, |entry| entry.revision);
        self.cursor = if page.more { last } else { page.revision };
        page.more || !self.has_lost_something()
    }

    /// Entries only ever get higher revisions, and another holding only with one.
    fn contradicts(&self, entry: &Entry) -> bool {
        let row = self.row(entry.partition);
        entry.revision < row.revision || (entry.revision == row.revision && entry.holding != row.holding)
    }

    /// Whether the ledger was read again, and something that is in here was not in it.
    fn has_lost_something(&mut self) -> bool {
        let Some((from, found)) = self.review.end() else { return false };
        self.rows().any(|(partition, row)| row.revision > from && !found.contains(&partition))
    }

    /// Whether a publication under this revision is from another past: what is written has the next one.
    pub fn knows(&self, revision: Revision) -> bool {
        revision <= self.revision
    }

    /// What is older than what is known changes nothing.
    pub fn write(&mut self, entry: &Entry) {
        let (list, number) = (entry.partition.list as usize, entry.partition.number as usize);
        if self.lists.len() <= list {
            self.lists.resize_with(list + 1, Vec::new);
        }
        let rows = &mut self.lists[list];
        if rows.len() <= number {
            rows.resize(number + 1, Row::default());
        }
        if entry.revision > rows[number].revision {
            rows[number] = Row { revision: entry.revision, holding: entry.holding };
        }
    }

    pub fn row(&self, partition: Partition) -> Row {
        let rows = self.lists.get(partition.list as usize);
        rows.and_then(|rows| rows.get(partition.number as usize)).copied().unwrap_or_default()
    }

    /// How many partitions of a task list were ever written about.
    pub fn count(&self, list: usize) -> u32 {
        self.lists.get(list).map_or(0, |rows| u32::try_from(rows.len()).unwrap_or(u32::MAX))
    }

    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    pub fn rows(&self) -> impl Iterator<Item = (Partition, Row)> + '_ {
        (0..).zip(&self.lists).flat_map(|(list, rows)| {
            (0..).zip(rows).map(move |(number, row)| (Partition { list, number }, *row))
        })
    }
}
