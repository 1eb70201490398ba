//! `tenure leader`: who leads, in one word.

use std::sync::Arc;

use tenure::Store;

use super::sight::Sight;
use super::unknown::unknown;
use crate::cli::{Global, Leader};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::store::ask;

pub async fn leader(store: Arc<dyn Store>, global: &Global, asked: &Leader) -> Result<Exit, Failure> {
    let sight = Sight::read(&store, &asked.election).await?;
    if global.json {
        output::json(&sight)?;
        return Ok(if sight.leader_id.is_some() { Exit::DONE } else { Exit::NO });
    }
    let known = || async {
        Ok::<_, Failure>(ask(store.elections()).await?.into_iter().any(|(name, _)| name == asked.election))
    };
    match sight.leader_id {
        None if sight.term == 0 && !known().await? => Err(unknown(&store, &asked.election).await?),
        Some(leader) => output::say(leader).map(|()| Exit::DONE),
        None => Err(Failure::No(format!("nobody leads `{}`", asked.election))),
    }
}
