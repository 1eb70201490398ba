//! How often each kind of fault met each role: what the simulation has really tried.

use crate::fault::Kind;

/// The roles that a fault can meet.
pub const ROLES: [&str; 8] =
    ["none", "idle", "parked", "waiting", "asking", "leading", "stopping", "resigning"];

/// Counts by kind and role.
#[derive(Clone, Debug)]
pub struct Coverage {
    met: Vec<[u64; ROLES.len()]>,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { met: vec![[0; ROLES.len()]; Kind::ALL.len()] }
    }
}

impl Coverage {
    /// A fault of this kind met this role.
    pub fn meet(&mut self, kind: Kind, role: &str) {
        let row = Kind::ALL.iter().position(|known| *known == kind);
        let column = ROLES.iter().position(|known| *known == role);
        if let (Some(row), Some(column)) = (row, column) {
            self.met[row][column] += 1;
        }
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.met.iter_mut().zip(&other.met) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
    }

    /// The count of a kind over all roles.
    #[must_use]
    pub fn total(&self, kind: Kind) -> u64 {
        let row = Kind::ALL.iter().position(|known| *known == kind);
        row.map_or(0, |row| self.met[row].iter().sum())
    }

    /// The table as text.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{:<16}", "fault \\ role");
        for role in ROLES {
            text.push_str(&format!("{role:>11}"));
        }
        for (kind, counts) in Kind::ALL.iter().zip(&self.met) {
            text.push_str(&format!("\n{:<16}", kind.name()));
            for count in counts {
                text.push_str(&format!("{count:>11}"));
            }
        }
        text
    }
}
