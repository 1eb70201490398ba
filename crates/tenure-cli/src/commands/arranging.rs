//! The task lists that a node is told of: it sees to it that they are there, as large as they were said to be.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Node, PartitionsError, TaskList, TaskLists};
use tokio::task::JoinHandle;

use crate::cli::Counted;
use crate::failure::{Failure, chain};
use crate::output;

/// How soon a store that gives no answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Makes and resizes them in the background: a node is not kept waiting for it.
pub fn arrange(
    node: &Node,
    election: &str,
    wanted: &[Counted],
    as_json: bool,
) -> Result<Option<JoinHandle<()>>, Failure> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let (lists, wanted) = (TaskLists::of(Arc::clone(node.store()), election)?, wanted.to_vec());
    Ok(Some(tokio::spawn(async move {
        for one in wanted {
            while let Err(error) = settle(&lists, &one).await {
                let problem = format!("the task list `{}` is not arranged yet: {}", one.list, chain(&error));
                output::notice(as_json, &problem);
                tokio::time::sleep(RETRY).await;
            }
        }
    })))
}

/// What else is said of a task list that is there stays as it is.
async fn settle(lists: &TaskLists, Counted { list, count }: &Counted) -> Result<(), PartitionsError> {
    match lists.create(list.as_str(), TaskList::new(*count)).await {
        Err(PartitionsError::Exists { .. }) => {
            lists.change(list.as_str(), |found| found.partitions = *count).await
        }
        made => made,
    }
}
