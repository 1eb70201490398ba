//! Work on partitions: each is watched like a leadership, and writes to the same register.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::json;
use tenure::Partition;

use crate::ledger::Entry;
use crate::report::say;
use crate::work::Desk;

/// Works on every partition that is this node's.
pub async fn work(desk: Arc<Desk>, list: String) {
    let partitions = match desk.node.partitions(&list) {
        Ok(partitions) => partitions,
        Err(error) => return say("failed", json!({ "message": error.to_string() })),
    };
    let at_it = Arc::clone(&desk);
    let ending = partitions.process_each(move |partition| write(Arc::clone(&at_it), partition)).await;
    say("works_no_more", json!({ "node": desk.args.node, "message": format!("{ending:?}") }));
}

async fn write(desk: Arc<Desk>, partition: Partition) -> Result<(), Infallible> {
    // However this task ends, the watcher lets go then: a partition is given away when the last guard is gone.
    let _watched = desk.watcher.watch_partition(&partition);
    let election = format!("{}/{}", partition.task_list().as_str(), partition.number());
    let cancelled = partition.cancellation();
    for seq in 1.. {
        let Ok(term) = partition.check() else { break };
        let entry = Entry {
            election: election.clone(),
            node: desk.args.node.clone(),
            term: term.number(),
            seq,
            note: "partition",
        };
        desk.register.write(entry).await;
        tokio::select! {
            () = cancelled.cancelled() => break,
            () = tokio::time::sleep(desk.args.write_every) => {}
        }
    }
    Ok(())
}
