//! `tenure delete`: an election is ended, and its candidates are told.

use std::sync::Arc;

use serde_json::json;
use tenure::Store;
use tenure_store::Deletion;

use super::unknown::unknown;
use crate::cli::{Delete, Global};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::store::ask;

pub async fn delete(store: Arc<dyn Store>, global: &Global, asked: &Delete) -> Result<Exit, Failure> {
    let election = &asked.election;
    let before = ask(store.read(election.clone())).await?;
    let leader = before.holder.map(|holder| holder.node.to_string());
    match ask(store.delete(election.clone(), asked.force)).await? {
        Deletion::Ended => {}
        Deletion::Led => {
            let leader = leader.as_deref().unwrap_or("somebody");
            return Err(Failure::No(format!("{leader} leads it; --force ends it all the same")));
        }
        Deletion::Absent if before.ended.number() > 0 => {
            return Err(Failure::No(format!("`{election}` has ended already, and nobody has stood since")));
        }
        Deletion::Absent => return Err(unknown(&store, election).await?),
    }
    if global.json {
        output::json(&json!({"election": election.as_str(), "deleted": true, "leader_id": leader}))?;
        return Ok(Exit::DONE);
    }
    let told = match leader {
        Some(leader) => format!("{leader} is told to stop, and gives its term up when it has"),
        None => String::from("its candidates are told"),
    };
    let anew = "a node that is started for it later, or stands again by itself, begins it anew";
    output::say(format!("{election} is ended; {told}; {anew}")).map(|()| Exit::DONE)
}
