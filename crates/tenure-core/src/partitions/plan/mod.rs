//! The plan: who shall own what.
//!
//! A pure function of the task lists, the members and the current assignment. It is judged by, in this
//! order:
//!
//! 1. Whoever may not own a partition does not: labels, exclusions, limits, paused task lists.
//! 2. Every partition that somebody may own has an owner.
//! 3. No zone has more of a spread task list than its even part.
//! 4. The members are evenly full, counted over *all* task lists together: the sum of load² / capacity
//!    over all members is the least possible, up to a slack where weights differ.
//! 5. As few partitions as possible move.
//!
//! It works in five steps. *Keep* leaves everything where it is, if it may be there. *Shed* takes
//! away what exceeds a limit. *Place* gives what has no owner to the least full, the heaviest first.
//! *Spread* moves what exceeds a zone's part to other zones. *Balance* moves single partitions from the fullest to the least full, over others in
//! between where the one may not have what the other has. With equal weights the outcome of 4 is the optimum,
//! and without constraints that of 5 too; the tests compare both with all possible assignments.

mod balance;
mod draft;
mod groups;
mod keep;
mod level;
mod place;

use super::assignment::{Assignment, Move};
use super::member::Member;
use super::tasks::TaskList;
use draft::Draft;

/// What is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Who shall own what.
    pub next: Assignment,
    /// How it differs from the current assignment, in the order of the partitions.
    pub moves: Vec<Move>,
}

/// Plans the next assignment. Owners in `current` are indices into `members`; whoever is gone from there
/// must be nobody in `current`, or an index beyond the end of `members`.
#[must_use]
pub fn plan(lists: &[TaskList], members: &[Member], current: &Assignment) -> Plan {
    let mut draft = Draft::new(lists, members, current);
    draft.keep();
    draft.shed();
    loop {
        draft.place();
        let spread = draft.spread();
        let balanced = draft.balance();
        // Where somebody is less full now, there may be room for what found none.
        if !(spread || balanced) || draft.is_settled() {
            break;
        }
    }
    draft.stay();
    let next = draft.next;
    let moves = moves(current, &next);
    Plan { next, moves }
}

fn moves(current: &Assignment, next: &Assignment) -> Vec<Move> {
    let mut moves = Vec::new();
    let lists = u32::try_from(current.lists().max(next.lists())).unwrap_or(u32::MAX);
    for list in 0..lists {
        let before = &current.owners()[current.range(list)];
        let after = &next.owners()[next.range(list)];
        for number in 0..before.len().max(after.len()) {
            if before.get(number) != after.get(number) {
                let partition = super::Partition { list, number: u32::try_from(number).unwrap_or(u32::MAX) };
                let (from, to) = (current.owner(partition), next.owner(partition));
                if from != to {
                    moves.push(Move { partition, from, to });
                }
            }
        }
    }
    moves
}
