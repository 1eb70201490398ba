//! What an operator should know of the group.

use tenure_core::StoreIdentity;
use tenure_store::{Finding, NodeState, Reply, Store, StoreError, Told};

use crate::store::RaftStore;
use crate::wire::Who;

/// Above this size of a snapshot somebody should know.
const LARGE: u64 = 64 << 20;

/// Asks every member how it sees the group. Nothing is changed.
pub(crate) async fn examine(store: &RaftStore) -> Reply<Vec<Finding>> {
    let leader = store.leader().await?;
    let group = leader.group.ok_or_else(|| StoreError::unavailable("there is no group yet"))?;
    let mut silent = Vec::new();
    for member in &leader.members {
        if store.who(&member.address).await.is_err() {
            silent.push(member.address.clone());
        }
    }
    let nodes = store.nodes().await?.value;
    let past = nodes.iter().filter(|node| node.state != NodeState::Live).count();
    let mut findings = findings(&leader, &silent);
    findings.push(size(leader.log.snapshot_bytes, past));
    Ok(Told { store: StoreIdentity(group), value: findings })
}

/// How much a member that was away is given.
fn size(snapshot_bytes: u64, past_nodes: usize) -> Finding {
    let megabytes = snapshot_bytes >> 20;
    Finding::new(
        "size",
        snapshot_bytes <= LARGE,
        format!(
            "{megabytes} MiB in the last snapshot, with {past_nodes} nodes of this namespace that are no more"
        ),
        "every member keeps it in memory, and one that was away is given all of it; `history=N` in the store \
         URL keeps less history, and `tenure elections` and `tenure partitions list` show what else there is",
    )
}

fn findings(leader: &Who, silent: &[String]) -> Vec<Finding> {
    let voters = leader.members.iter().filter(|member| member.voter).count();
    let names: Vec<&str> = leader.members.iter().map(|member| member.address.as_str()).collect();
    let spare = voters.saturating_sub(1) / 2;
    let survive = match voters {
        1 => "one machine: when it is lost, everything is; add two more with `tenure raft add`",
        2 => {
            "two members cannot lose one: the other one could not tell a dead machine from a cut network; \
              a third, however small, can be a witness (`tenure witness`)"
        }
        _ => "an even number survives no more losses than one less; add one, or remove one",
    };
    let log = leader.log.last.unwrap_or_default().saturating_sub(leader.log.purged.unwrap_or_default());
    vec![
        Finding::new("members", true, names.join(", "), ""),
        Finding::new(
            "losses",
            voters > 2 && voters % 2 == 1,
            format!("{spare} of {voters} may be lost"),
            survive,
        ),
        Finding::new(
            "reached",
            silent.is_empty(),
            match silent {
                [] => String::from("all"),
                silent => format!("not {}", silent.join(", ")),
            },
            "start it again; if its machine is gone for good, `tenure raft remove` and `tenure raft add` another",
        ),
        Finding::new("durable", true, String::from("fdatasync before every answer, on a majority"), ""),
        Finding::new(
            "log",
            true,
            format!("{log} entries since the last snapshot and those kept for stragglers"),
            "",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_has_grown_large_is_found() {
        let small = size(3 << 20, 12);
        assert!(small.fine, "{small:?}");
        assert!(small.value.starts_with("3 MiB in the last snapshot, with 12 nodes"), "{small:?}");
        assert!(!size(65 << 20, 0).fine);
    }
}
