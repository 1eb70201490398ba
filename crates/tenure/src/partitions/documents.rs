//! What is said of task lists and of workers: the text that a store keeps without looking into it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tenure_core::{NodeId, TaskListName};
use tenure_store::Labels;

/// A task list: work that is cut into numbered partitions, and where they may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskList {
    /// How many partitions it has. It may grow and shrink.
    pub partitions: u32,
    /// What each of them weighs, relative to those of other task lists.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// A paused task list is worked on by nobody.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// No zone gets more than its even part, if it can be helped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spread: bool,
    /// Labels that a node must have, as `key=value`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
    /// Nodes that get nothing of it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub excluded: BTreeSet<NodeId>,
    /// Partitions that belong to a certain node as long as it is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<u32, NodeId>,
}

impl TaskList {
    /// The most partitions of a task list: planning as many takes a fraction of a second (`cargo xtask bench plan`), and
    /// the coordinator keeps all of them in memory.
    pub const MOST_PARTITIONS: u32 = 1_000_000;

    /// An ordinary task list with this many partitions.
    #[must_use]
    pub const fn new(partitions: u32) -> Self {
        Self {
            partitions,
            weight: 1,
            paused: false,
            spread: false,
            needs: BTreeSet::new(),
            excluded: BTreeSet::new(),
            pins: BTreeMap::new(),
        }
    }
}

const fn one() -> u32 {
    1
}

const fn is_one(weight: &u32) -> bool {
    *weight == 1
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What a worker says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Worker {
    /// The task lists that it works on.
    pub lists: BTreeSet<TaskListName>,
    /// Its share of the work, relative to other nodes.
    pub capacity: u32,
    /// What it shares its fate with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What task lists can ask for, as `key=value`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
}

impl Worker {
    /// A node with these labels. `zone` and `capacity` are what the plan asks for; without a capacity, a node
    /// takes as much as any other.
    pub(crate) fn labelled(labels: &Labels) -> Self {
        let labels = labels.map();
        Self {
            lists: BTreeSet::new(),
            capacity: labels.get("capacity").and_then(|capacity| capacity.parse().ok()).unwrap_or(1),
            zone: labels.get("zone").cloned(),
            labels: labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        }
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("it has only text and numbers in it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_task_list_is_a_short_text_and_comes_back() {
        let list = TaskList::new(12);
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(text, r#"{"partitions":12}"#);
        assert_eq!(serde_json::from_str::<TaskList>(&text).unwrap(), list);
        let pinned = TaskList { pins: [(3, NodeId::new("a").unwrap())].into(), paused: true, ..list };
        let text = serde_json::to_string(&pinned).unwrap();
        assert_eq!(text, r#"{"partitions":12,"paused":true,"pins":{"3":"a"}}"#);
        assert_eq!(serde_json::from_str::<TaskList>(&text).unwrap(), pinned);
        assert!(serde_json::from_str::<TaskList>(r#"{"partitions":1,"wight":2}"#).is_err());
    }

    #[test]
    fn a_worker_tells_what_its_labels_say() {
        let labels = [("zone", "b"), ("capacity", "3")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let worker = Worker::labelled(&Labels::of(labels).unwrap());
        assert_eq!((worker.capacity, worker.zone.as_deref()), (3, Some("b")));
        assert!(worker.labels.contains("zone=b"));
        assert_eq!(serde_json::from_str::<Worker>(&worker.write()).unwrap(), worker);
    }
}
