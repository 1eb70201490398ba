//! `tenure nodes`: every process that ever registered, and what it leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tenure::{ElectionName, NodeRecord, NodeState, Store, Unhealthy};
use tenure_core::Record;
use tenure_store::newest;

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
    version: String,
    labels: BTreeMap<String, String>,
    joined_at: String,
    renewed_at: String,
    /// What its health probe has found.
    problem: Option<String>,
    unhealthy_since: Option<String>,
}

pub async fn nodes(store: Arc<dyn Store>, global: &Global) -> Result<Exit, Failure> {
    let nodes = newest(ask(store.nodes()).await?);
    let elections = ask(store.elections()).await?;
    if global.json {
        nodes.iter().try_for_each(|node| output::json(&row(node, &elections)))?;
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["NODE", "STATE", "HOST", "PID", "LEADS", "RENEWED", "ADDRESS"]);
    for node in &nodes {
        let row = row(node, &elections);
        let state = match node.state {
            NodeState::Live if row.problem.is_some() => styled(BAD, "unhealthy"),
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
    table.print()?;
    for line in problems(&nodes) {
        output::say(line)?;
    }
    Ok(Exit::DONE)
}

/// A line for every node that lives, and leads nothing because its health probe fails.
pub fn problems(nodes: &[NodeRecord]) -> Vec<String> {
    let live = nodes.iter().filter(|node| node.state == NodeState::Live);
    let problems = live.filter_map(|node| Some((&node.info.id, node.unhealthy.as_ref()?)));
    problems
        .map(|(id, Unhealthy { problem, since })| {
            let problem = harmless(problem.as_str());
            format!("{id} is {} since {}: {problem}", styled(BAD, "unhealthy"), output::moment(*since))
        })
        .collect()
}

fn row(node: &NodeRecord, elections: &[(ElectionName, Record)]) -> Row {
    let led = elections.iter().filter(|(election, record)| {
        let holder = record.holder.as_ref().filter(|holder| holder.pulse.stamp.session == node.session());
        holder.is_some() && Sight::of(election, record, &[]).leader_id.is_some()
    });
    let unhealthy = node.unhealthy.as_ref();
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
        session: node.session().to_string(),
        leads: led.count(),
        version: node.info.version.clone(),
        labels: node.info.labels.map().clone(),
        joined_at: output::timestamp(node.opened_at),
        renewed_at: output::timestamp(node.renewed_at),
        problem: unhealthy.map(|unhealthy| unhealthy.problem.to_string()),
        unhealthy_since: unhealthy.map(|unhealthy| output::timestamp(unhealthy.since)),
    }
}
