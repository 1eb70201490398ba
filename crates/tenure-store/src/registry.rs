//! The list of nodes, as it is read.

use std::collections::BTreeMap;

use tenure_core::{NodeId, NodeState};

use crate::contract::NodeRecord;

/// Every node once, by id, with its newest session: a store may remember those before it.
#[must_use]
pub fn newest(nodes: Vec<NodeRecord>) -> Vec<NodeRecord> {
    let mut newest: BTreeMap<NodeId, NodeRecord> = BTreeMap::new();
    // A session that lives is newer than all that are over, whatever the wall clocks said.
    let rank = |node: &NodeRecord| (node.state == NodeState::Live, node.renewed_at);
    for node in nodes {
        match newest.get(&node.info.id) {
            Some(known) if rank(known) >= rank(&node) => {}
            _ => _ = newest.insert(node.info.id.clone(), node),
        }
    }
    newest.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use tenure_core::{Age, Pulse, SessionId, Stamp};

    use super::*;
    use crate::contract::NodeInfo;

    fn node(id: &str, session: u128, state: NodeState, at: u64) -> NodeRecord {
        let info = NodeInfo::new(NodeId::new(id).unwrap(), "h");
        let renewed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let stamp = Stamp { session: SessionId::from_u128(session), sequence: 1 };
        let pulse = Pulse { stamp, ttl: Duration::from_secs(10), age: Age::Unknown };
        NodeRecord { info, state, pulse, opened_at: renewed_at, renewed_at, unhealthy: None }
    }

    #[test]
    fn only_the_newest_session_of_a_node_is_shown_and_a_live_one_is_newest() {
        let nodes = vec![
            node("alpha", 1, NodeState::Expired, 5),
            node("alpha", 2, NodeState::Left, 7),
            node("beta", 3, NodeState::Live, 1),
            node("beta", 4, NodeState::Expired, 9),
        ];
        let shown: Vec<_> = newest(nodes).iter().map(|node| node.session().as_u128()).collect();
        assert_eq!(shown, [2, 3]);
    }
}
