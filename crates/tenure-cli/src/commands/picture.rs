//! An election as a picture in a terminal: who leads, the lease running down, who is there, what happened.

use super::line;
use super::scene::Scene;
use super::sight::age;
use crate::output::{BAD, FAINT, GOOD, HEAD, ago, harmless, length, styled};
use crate::screen::bar;
use tenure::{NodeRecord, NodeState};

/// What stands beside the bar takes so much, and no bar is shorter than that.
const BESIDE_BAR: usize = 32;
const SHORTEST_BAR: usize = 10;
/// Room for the id of a node, at least; and what the other columns take, with a page of usual length.
const SHORTEST_NAME: usize = 14;
const BESIDE_NAME: usize = 60;

/// Who leads, under which term, and for how long without another sign of life.
pub fn leader(scene: &Scene, columns: usize) -> Vec<String> {
    let Some(leader) = scene.leader() else {
        return vec![
            format!("  {}", styled(BAD.bold(), "nobody leads")),
            format!("  {}", styled(FAINT, format!("the last term was {}", scene.term()))),
        ];
    };
    let lease = scene.lease().map_or_else(
        || styled(FAINT, "this store cannot tell how old a lease is"),
        |(left, whole)| {
            let width = columns.saturating_sub(BESIDE_BAR).max(SHORTEST_BAR);
            let bar = bar(left.as_secs_f64(), whole.as_secs_f64(), width);
            format!("{bar}  {} left unless it renews", length(left))
        },
    );
    vec![
        format!("  {} leads under term {}", styled(GOOD.bold(), harmless(leader)), scene.term()),
        format!("  {lease}"),
    ]
}

/// Every node with its state, last sign of life, and page, on a screen of so many columns and at most so many rows; those
/// that live first. `plight` says what is known of one besides.
pub fn nodes(
    scene: &Scene,
    columns: usize,
    most: usize,
    plight: impl Fn(&str) -> Option<&'static str>,
) -> Vec<String> {
    let longest = scene.nodes.iter().map(|node| node.info.id.as_str().chars().count()).max().unwrap_or(0);
    let width = longest.min(columns.saturating_sub(BESIDE_NAME)).max(SHORTEST_NAME);
    let head = format!("  {:<width$} {:<10} {:<16} {}", "node", "state", "last sign", "page");
    let mut lines = vec![styled(HEAD, head)];
    let mut sorted: Vec<&NodeRecord> = scene.nodes.iter().collect();
    sorted.sort_by_key(|node| (node.state != NodeState::Live, is_silent(node)));
    for node in sorted.into_iter().take(most) {
        let name = node.info.id.as_str();
        let silent = is_silent(node);
        let leads = scene.leader() == Some(name);
        let unhealthy = node.unhealthy.as_ref().filter(|_| node.state == NodeState::Live && !silent);
        let (style, state) = match (plight(name), node.state) {
            (Some(plight), _) => (BAD, plight),
            (None, NodeState::Live) if leads => (GOOD, "leader"),
            (None, NodeState::Live) if silent => (BAD, "silent"),
            (None, NodeState::Live) if unhealthy.is_some() => (BAD, "unhealthy"),
            (None, NodeState::Live) if scene.stands(name) => (HEAD, "follower"),
            (None, NodeState::Live) => (FAINT, "live"),
            (None, NodeState::Left) => (FAINT, "left"),
            (None, NodeState::Expired) => (BAD, "expired"),
        };
        // A page of one that is gone is none.
        let page = node.info.address.as_deref().filter(|_| node.state == NodeState::Live && !silent);
        let page = page.map(|page| format!("{}/", harmless(page))).unwrap_or_default();
        let state = styled(style, format!("{state:<10}"));
        lines.push(format!("  {:<width$} {state} {:<16} {page}", harmless(name), ago(node.renewed_at)));
        if let Some(unhealthy) = unhealthy {
            let (problem, since) = (harmless(unhealthy.problem.as_str()), ago(unhealthy.since));
            lines.push(styled(BAD, format!("    since {since}: {problem}")));
        }
    }
    if scene.nodes.len() > most {
        lines.push(styled(FAINT, format!("  and {} more", scene.nodes.len() - most)));
    }
    lines
}

/// Whether a node was silent for its whole ttl.
fn is_silent(node: &NodeRecord) -> bool {
    age(node.pulse.age).is_some_and(|age| age >= node.pulse.ttl)
}

/// How the work is divided, if there is any to divide.
pub fn division(scene: &Scene) -> Vec<String> {
    let Some(division) = scene.division.filter(|division| division.all() > 0) else { return Vec::new() };
    let moving = if division.revoking > 0 { BAD } else { FAINT };
    let given_up = styled(moving, format!("{} being given up", division.revoking));
    let vacant = styled(if division.vacant > 0 { BAD } else { FAINT }, format!("{} vacant", division.vacant));
    vec![format!("  {} partitions: {} owned, {given_up}, {vacant}", division.all(), division.owned)]
}

/// The newest events, oldest first.
pub fn events(scene: &Scene, most: usize) -> Vec<String> {
    let mut lines = vec![styled(HEAD, "  events")];
    let newest = &scene.events[scene.events.len().saturating_sub(most)..];
    let columns = line::Columns::of(newest);
    lines.extend(newest.iter().map(|event| format!("  {}", line::text(event, columns))));
    lines
}
