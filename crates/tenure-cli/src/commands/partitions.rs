//! `tenure partitions`: which task lists there are, and who owns which partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tenure::{NodeId, Owner, PartitionState, PartitionsError, Store, TaskList, TaskListName, TaskLists};

use crate::cli::{Create, Divided, Drain, Global, Move, Partitions, Pause, Resize};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, FAINT, GOOD, Table, harmless, styled};
use crate::store::{ask, within};

/// A task list, in figures.
#[derive(Serialize)]
struct Row {
    task_list: String,
    partitions: u32,
    owned: usize,
    revoking: usize,
    vacant: usize,
    paused: bool,
    weight: u32,
}

/// A partition, with the names that HTTP has.
#[derive(Serialize)]
struct OwnerRow {
    task_list: String,
    partition: u32,
    state: &'static str,
    node_id: Option<String>,
    term: u64,
}

pub async fn partitions(store: Arc<dyn Store>, global: &Global, asked: &Partitions) -> Result<Exit, Failure> {
    let divided = match asked {
        Partitions::Create(Create { divided, .. })
        | Partitions::Resize(Resize { divided, .. })
        | Partitions::Pause(Pause { divided, .. })
        | Partitions::Move(Move { divided, .. })
        | Partitions::Drain(Drain { divided, .. }) => divided,
        Partitions::List(list) => &list.divided,
        Partitions::Show(show) => &show.divided,
        Partitions::Drop(dropped) => &dropped.divided,
    };
    let Divided { election } = divided;
    if let Partitions::Move(Move { to: Some(node), .. }) | Partitions::Drain(Drain { node, .. }) = asked {
        warn_of_unknown_node(&store, global, node).await?;
    }
    let lists = TaskLists::of(store, election.as_str())?;
    match asked {
        Partitions::Create(create) => make(&lists, global, create).await,
        Partitions::List(_) => list(&lists, global).await,
        Partitions::Show(show) => owners(&lists, global, show.list.as_ref()).await,
        Partitions::Resize(Resize { list, count, .. }) => {
            change(&lists, list, |found| found.partitions = *count).await?;
            done(global, list, "partitions", json!(count), &format!("has {count} partitions now"))
        }
        Partitions::Drop(dropped) => {
            within(lists.remove(dropped.list.as_str())).await??;
            done(global, &dropped.list, "dropped", json!(true), "is dropped")
        }
        Partitions::Pause(Pause { list, resume, .. }) => {
            change(&lists, list, |found| found.paused = !resume).await?;
            let what = if *resume { "goes on" } else { "is paused" };
            done(global, list, "paused", json!(!resume), what)
        }
        Partitions::Move(asked) => pin(&lists, global, asked).await,
        Partitions::Drain(asked) => drain(&lists, global, asked).await,
    }
}

/// A node may be named before it is there, but most often that is a slip.
async fn warn_of_unknown_node(store: &Arc<dyn Store>, global: &Global, node: &NodeId) -> Result<(), Failure> {
    let nodes = ask(store.nodes()).await?;
    if !nodes.iter().any(|known| known.info.id == *node) {
        let node = harmless(node.as_str());
        let sentence = format!("warning: no node `{node}` is registered; `tenure nodes` lists them");
        output::notice(global.json, &sentence);
    }
    Ok(())
}

async fn change(lists: &TaskLists, list: &TaskListName, how: impl Fn(&mut TaskList)) -> Result<(), Failure> {
    Ok(within(lists.change(list.as_str(), how)).await??)
}

fn done(
    global: &Global,
    list: &TaskListName,
    key: &str,
    value: serde_json::Value,
    what: &str,
) -> Result<Exit, Failure> {
    match global.json {
        true => output::json(&json!({ "task_list": list.as_str(), key: value }))?,
        false => output::say(format!("`{}` {what}", harmless(list.as_str())))?,
    }
    Ok(Exit::DONE)
}

async fn make(lists: &TaskLists, global: &Global, asked: &Create) -> Result<Exit, Failure> {
    let Create { list, count, weight, needs, spread, .. } = asked;
    if let Some(wrong) = needs.iter().find(|need| !need.contains('=')) {
        return Err(Failure::Usage(format!("`{wrong}` is no label; write --needs NAME=VALUE")));
    }
    let made = TaskList {
        weight: *weight,
        spread: *spread,
        needs: needs.iter().cloned().collect(),
        ..TaskList::new(*count)
    };
    within(lists.create(list.as_str(), made)).await??;
    done(global, list, "partitions", json!(count), &format!("has {count} partitions"))
}

async fn pin(lists: &TaskLists, global: &Global, asked: &Move) -> Result<Exit, Failure> {
    let Move { list, partition, to, .. } = asked;
    let known = within(lists.all()).await??;
    if let Some((_, found)) = known.iter().find(|(name, _)| name == list)
        && *partition >= found.partitions
    {
        let count = found.partitions;
        return Err(Failure::No(format!("`{list}` has {count} partitions, and they are counted from 0")));
    }
    change(lists, list, |found| match to {
        Some(to) => _ = found.pins.insert(*partition, to.clone()),
        None => _ = found.pins.remove(partition),
    })
    .await?;
    let what = match to {
        Some(to) => format!("has its partition {partition} with {to}, as long as that is there"),
        None => format!("has its partition {partition} wherever balance asks for"),
    };
    done(global, list, "pinned", json!({ "partition": partition, "node_id": to }), &what)
}

/// Every task list that there is leaves the node out, or no longer.
async fn drain(lists: &TaskLists, global: &Global, asked: &Drain) -> Result<Exit, Failure> {
    let Drain { node, undo, .. } = asked;
    let mut count = 0;
    for (name, _) in within(lists.all()).await?? {
        let exclude = |found: &mut TaskList| match undo {
            true => _ = found.excluded.remove(node),
            false => _ = found.excluded.insert(node.clone()),
        };
        match within(lists.change(name.as_str(), exclude)).await? {
            // Dropped meanwhile.
            Err(PartitionsError::Absent { .. }) => {}
            changed => {
                changed?;
                count += 1;
            }
        }
    }
    let what = if *undo { "has its part again of" } else { "gives up what it owns of" };
    match global.json {
        true => output::json(&json!({ "node_id": node.as_str(), "drained": !undo, "task_lists": count }))?,
        false => output::say(format!("{} {what} {count} task lists", harmless(node.as_str())))?,
    }
    Ok(Exit::DONE)
}

async fn list(lists: &TaskLists, global: &Global) -> Result<Exit, Failure> {
    let (known, owners) = (within(lists.all()).await??, within(lists.owners()).await??);
    let mut counts: BTreeMap<TaskListName, [usize; 3]> = BTreeMap::new();
    for Owner { task_list, state, .. } in owners {
        counts.entry(task_list).or_default()[state as usize] += 1;
    }
    let row = |(name, list): (TaskListName, TaskList)| {
        let count = |state: PartitionState| counts.get(&name).map_or(0, |counts| counts[state as usize]);
        Row {
            partitions: list.partitions,
            owned: count(PartitionState::Owned),
            revoking: count(PartitionState::Revoking),
            vacant: count(PartitionState::Vacant),
            paused: list.paused,
            weight: list.weight,
            task_list: name.to_string(),
        }
    };
    let mut rows: Vec<Row> = known.into_iter().map(row).collect();
    rows.sort_by(|one, other| one.task_list.cmp(&other.task_list));
    if global.json {
        rows.iter().try_for_each(output::json)?;
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["TASK LIST", "PARTITIONS", "OWNED", "REVOKING", "VACANT", "STATE"]);
    for row in rows {
        let state = match row.paused {
            true => styled(FAINT, "paused"),
            false if row.vacant + row.revoking == 0 => styled(GOOD, "settled"),
            false => String::from("moving"),
        };
        table.row(vec![
            harmless(&row.task_list),
            row.partitions.to_string(),
            row.owned.to_string(),
            row.revoking.to_string(),
            row.vacant.to_string(),
            state,
        ]);
    }
    table.print().map(|()| Exit::DONE)
}

async fn owners(lists: &TaskLists, global: &Global, only: Option<&TaskListName>) -> Result<Exit, Failure> {
    if let Some(only) = only
        && !within(lists.all()).await??.iter().any(|(name, _)| name == only)
    {
        return Err(PartitionsError::Absent { list: only.clone() }.into());
    }
    let mut owners = within(lists.owners()).await??;
    owners.retain(|owner| only.is_none_or(|only| owner.task_list == *only));
    let rows = owners.into_iter().map(|owner| OwnerRow {
        task_list: owner.task_list.to_string(),
        partition: owner.partition,
        state: owner.state.name(),
        node_id: owner.node.map(|node| node.to_string()),
        term: owner.term.number(),
    });
    if global.json {
        rows.into_iter().try_for_each(|row| output::json(&row))?;
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["TASK LIST", "PARTITION", "NODE", "STATE", "TERM"]);
    for row in rows {
        let state = match row.state {
            "owned" => styled(GOOD, row.state),
            "vacant" => styled(BAD, row.state),
            other => other.to_owned(),
        };
        table.row(vec![
            harmless(&row.task_list),
            row.partition.to_string(),
            row.node_id.as_deref().map_or_else(|| String::from("-"), harmless),
            state,
            row.term.to_string(),
        ]);
    }
    table.print().map(|()| Exit::DONE)
}
