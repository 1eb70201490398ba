//! For how many nodes a server has connections.

use tenure_store::Finding;

/// So many free connections are little.
const LITTLE: i64 = 10;

/// The connections of a server.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How many it accepts, from users like ours.
    pub most: i64,
    /// How many there are.
    pub used: i64,
    /// How many of these are Tenure's.
    pub ours: i64,
    /// How many a node has that has nothing to do.
    pub per_node: i64,
}

impl Room {
    /// What an operator should know of it. More room is made as `how` says.
    #[must_use]
    pub fn finding(self, how: &str) -> Finding {
        let Self { most, used, ours, per_node } = self;
        let nodes = (most - (used - ours)).max(0) / per_node;
        let advice = format!(
            "every node holds {per_node}, and while it is busy up to two more; all else that uses the server takes \
             some, too: {how}"
        );
        let found = format!("{used} of {most} in use; room for {nodes} nodes in all");
        Finding::new("connections", most - used >= LITTLE, found, &advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_find_room_beside_what_others_use() {
        let finding = Room { most: 97, used: 45, ours: 5, per_node: 1 }.finding("raise the limit");
        assert!(finding.fine);
        assert_eq!(finding.value, "45 of 97 in use; room for 57 nodes in all");
    }

    #[test]
    fn a_server_that_is_almost_full_is_a_problem() {
        let finding = Room { most: 151, used: 142, ours: 40, per_node: 2 }.finding("raise the limit");
        assert!(!finding.fine);
        assert_eq!(finding.value, "142 of 151 in use; room for 24 nodes in all");
        assert!(finding.advice.unwrap().ends_with("raise the limit"));
    }
}
