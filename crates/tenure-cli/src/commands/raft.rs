//! `tenure raft`: who belongs to the group, and changing that.

use std::sync::Arc;

use serde_json::json;
use tenure::Store;
use tenure::raft::{MemberInfo, RaftStore};

use crate::cli::{Global, Raft};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, GOOD, Table, styled};

pub async fn raft(store: Arc<dyn Store>, global: &Global, asked: &Raft) -> Result<Exit, Failure> {
    let Some(group) = store.as_any().downcast_ref::<RaftStore>() else {
        return Err(Failure::Usage(String::from(
            "only a store of Tenure's own nodes has members, such as --store raft://h1:7101,h2:7101,h3:7101",
        )));
    };
    match asked {
        Raft::Members(_) => show(&group.members().await?, global),
        Raft::Add(add) => {
            group.add(&add.address).await?;
            done(global, "added", &add.address, "votes now")
        }
        Raft::Remove(remove) => {
            group.remove(&remove.member).await?;
            done(global, "removed", &remove.member, "belongs to the group no more")
        }
        Raft::Snapshot(snapshot) => {
            group.snapshot(snapshot.address.as_deref()).await?;
            done(
                global,
                "snapshot",
                snapshot.address.as_deref().unwrap_or("every member"),
                "writes a snapshot",
            )
        }
    }
}

fn done(global: &Global, key: &str, who: &str, what: &str) -> Result<Exit, Failure> {
    match global.json {
        true => output::json(&json!({ key: who }))?,
        false => output::say(format!("{} {what}", output::harmless(who)))?,
    }
    Ok(Exit::DONE)
}

fn show(members: &[MemberInfo], global: &Global) -> Result<Exit, Failure> {
    if global.json {
        for member in members {
            output::json(&json!({
                "id": member.id, "address": member.address, "voter": member.voter, "leads": member.leads,
                "reached": member.version.is_some(), "version": member.version, "behind": member.behind,
            }))?;
        }
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["ADDRESS", "ID", "VOTES", "LEADS THE GROUP", "BEHIND", "VERSION"]);
    for member in members {
        let yes = |yes| String::from(if yes { "yes" } else { "no" });
        table.row(vec![
            output::harmless(&member.address),
            member.id.clone(),
            yes(member.voter),
            yes(member.leads),
            member.behind.map_or_else(|| String::from("-"), |behind| behind.to_string()),
            match &member.version {
                Some(version) => styled(GOOD, version),
                None => styled(BAD, "not reached"),
            },
        ]);
    }
    table.print().map(|()| Exit::DONE)
}
