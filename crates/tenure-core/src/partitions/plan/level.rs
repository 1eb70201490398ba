//! How full a member is, compared exactly.
//!
//! Members are evenly full if the sum of load² / capacity over all of them is the least possible.
//! A partition of weight w changes that sum by (2·load + w) · w / capacity where it comes, and by
//! (2·load − w) · w / capacity where it leaves. So it is better off elsewhere if the first without the last
//! factor, there, is less than the second, here. (For whole numbers of equal weight this is the
//! apportionment of Sainte-Laguë.)

use std::cmp::Ordering;

/// Twice a load, with or without what comes or goes, on a capacity. Two of them compare like the
/// fractions that they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    twice: i64,
    capacity: u32,
}

impl Level {
    /// With a partition of this weight more.
    pub fn with(load: u64, weight: u64, capacity: u32) -> Self {
        Self { twice: twice(load).saturating_add_unsigned(weight), capacity }
    }

    /// With a partition of this weight less.
    pub fn without(load: u64, weight: u64, capacity: u32) -> Self {
        Self { twice: twice(load).saturating_sub_unsigned(weight), capacity }
    }

    /// As a number, to compare gains.
    pub fn as_f64(self) -> f64 {
        self.twice as f64 / f64::from(self.capacity)
    }
}

fn twice(load: u64) -> i64 {
    i64::try_from(load).unwrap_or(i64::MAX).saturating_mul(2)
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.capacity == other.capacity {
            return self.twice.cmp(&other.twice);
        }
        let mine = i128::from(self.twice) * i128::from(other.capacity);
        let theirs = i128::from(other.twice) * i128::from(self.capacity);
        mine.cmp(&theirs)
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}
