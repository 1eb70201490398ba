//! What an operator should know of the group.

use tenure_core::StoreIdentity;
use tenure_store::{Finding, Reply, StoreError, Told};

use crate::store::RaftStore;
use crate::wire::Who;

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
    Ok(Told { store: StoreIdentity(group), value: findings(&leader, &silent) })
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
