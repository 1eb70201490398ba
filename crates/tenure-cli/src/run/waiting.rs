//! Why a worker has nothing to do: said when the wait is long, and again when the reason is another.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Election, NodeId, PartitionsError, TaskListName, TaskLists};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::failure::chain;

/// After so long a wait is a long one.
const LONG: Duration = Duration::from_secs(2);
/// How often it is looked again.
const EVERY: Duration = Duration::from_secs(5);

pub struct Waiting {
    election: Election,
    lists: TaskLists,
    list: TaskListName,
    node: NodeId,
    looks: Interval,
    said: Option<String>,
}

impl Waiting {
    pub fn new(
        node: &tenure::Node,
        election: &Election,
        list: TaskListName,
    ) -> Result<Self, PartitionsError> {
        let lists = TaskLists::of(Arc::clone(node.store()), election.name().as_str())?;
        let mut looks = interval_at(Instant::now() + LONG, EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { election: election.clone(), lists, list, node: node.id().clone(), looks, said: None })
    }

    /// There is something to do: the next wait is another.
    pub fn over(&mut self) {
        self.said = None;
        self.looks.reset_after(LONG);
    }

    /// What people should know, once it is not what was said before.
    ///
    /// # Cancel safety
    /// Safe: it looks again.
    pub async fn next(&mut self) -> String {
        loop {
            self.looks.tick().await;
            let why = self.look().await.unwrap_or_else(|error| format!("the store gives no answer: {error}"));
            if self.said.as_ref() != Some(&why) {
                self.said = Some(why.clone());
                return why;
            }
        }
    }

    async fn look(&self) -> Result<String, String> {
        let (list, election) = (&self.list, self.election.name());
        let lists = self.lists.all().await.map_err(|error| chain(&error))?;
        let Some((_, found)) = lists.into_iter().find(|(name, _)| name == list) else {
            return Ok(format!(
                "there is no task list `{list}`; `tenure partitions create {list} --count NUMBER` makes it"
            ));
        };
        let leader = self.election.leader().await.map_err(|error| chain(&error))?;
        let Some(leader) = leader else {
            return Ok(format!(
                "nobody leads `{election}`, so nobody divides the work; start a `tenure node`, which does"
            ));
        };
        Ok(if found.paused {
            format!("`{list}` is paused; `tenure partitions pause {list} --resume` lets it go on")
        } else if found.excluded.contains(&self.node) {
            format!(
                "this node is drained; `tenure partitions drain {} --undo` lets it have its part",
                self.node
            )
        } else {
            format!(
                "`{}` divides the work, and has given this node no partition of `{list}` so far (it has {})",
                leader.node, found.partitions
            )
        })
    }
}
