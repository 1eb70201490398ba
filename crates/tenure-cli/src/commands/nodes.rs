//! `tenure nodes`: every process that ever registered, and what it leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tenure::{ElectionName, NodeId, NodeRecord, NodeState, Store};
use tenure_core::Record;

use super::sight::Sight;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, GOOD, Table, harmless, styled};
use crate::store::ask;

#[derive(Serialize)]
struct Row {
    node_id: String,
    state: &'static str,
    hostname: String,
    api_url: Option<String>,
    pid: u32,
    session: String,
    /// How many elections.
    leads: usize,
    renewed_at: String,
}

pub async fn nodes(store: Arc<dyn Store>, global: &Global) -> Result<Exit, Failure> {
    let nodes = ask(store.nodes()).await?;
    let elections = ask(store.elections()).await?;
    let newest = newest(&nodes);
    if global.json {
        newest.iter().try_for_each(|node| output::json(&row(node, &elections)))?;
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["NODE", "STATE", "HOST", "PID", "LEADS", "RENEWED", "ADDRESS"]);
    for node in newest {
        let row = row(node, &elections);
        let state = match node.state {
            NodeState::Live => styled(GOOD, row.state),
            NodeState::Left => row.state.to_owned(),
            NodeState::Expired => styled(BAD, row.state),
        };
        table.row(vec![
            row.node_id,
            state,
            harmless(&row.hostname),
            row.pid.to_string(),
            row.leads.to_string(),
            output::ago(node.renewed_at),
            row.api_url.as_deref().map_or_else(|| String::from("-"), harmless),
        ]);
    }
    table.print().map(|()| Exit::DONE)
}

/// The newest session of every node: a store may remember those before it.
fn newest(nodes: &[NodeRecord]) -> Vec<&NodeRecord> {
    let mut newest: BTreeMap<&NodeId, &NodeRecord> = BTreeMap::new();
    // A session that lives is newer than all that are over, whatever the wall clocks said.
    let rank = |node: &NodeRecord| (node.state == NodeState::Live, node.renewed_at);
    for node in nodes {
        let known = newest.entry(&node.info.id).or_insert(node);
        if rank(node) > rank(known) {
            *known = node;
        }
    }
    newest.into_values().collect()
}

fn row(node: &NodeRecord, elections: &[(ElectionName, Record)]) -> Row {
    let led = elections.iter().filter(|(election, record)| {
        let holder = record.holder.as_ref().filter(|holder| holder.pulse.stamp.session == node.session);
        holder.is_some() && Sight::of(election, record, &[]).leader_id.is_some()
    });
    Row {
        node_id: node.info.id.to_string(),
        state: match node.state {
            NodeState::Live => "live",
            NodeState::Left => "left",
            NodeState::Expired => "expired",
        },
        hostname: node.info.hostname.clone(),
        api_url: node.info.address.clone(),
        pid: node.info.pid,
        session: node.session.to_string(),
        leads: led.count(),
        renewed_at: output::timestamp(node.renewed_at),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use tenure::{NodeInfo, SessionId};

    use super::*;

    fn node(id: &str, session: u128, state: NodeState, at: u64) -> NodeRecord {
        let info =
            NodeInfo { id: NodeId::new(id).unwrap(), hostname: String::from("h"), address: None, pid: 1 };
        let renewed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        NodeRecord { info, session: SessionId::from_u128(session), state, renewed_at }
    }

    #[test]
    fn only_the_newest_session_of_a_node_is_shown_and_a_live_one_is_newest() {
        let nodes = [
            node("alpha", 1, NodeState::Expired, 5),
            node("alpha", 2, NodeState::Left, 7),
            node("beta", 3, NodeState::Live, 1),
            node("beta", 4, NodeState::Expired, 9),
        ];
        let shown: Vec<_> = newest(&nodes).iter().map(|node| node.session.as_u128()).collect();
        assert_eq!(shown, [2, 3]);
    }
}
