//! `tenure leader`: who leads, in one word.

use std::sync::Arc;

use tenure::Store;

use super::sight::Sight;
use super::unknown::if_unknown;
use crate::cli::{Global, Leader};
use crate::failure::{Exit, Failure};
use crate::output;

pub async fn leader(store: Arc<dyn Store>, global: &Global, asked: &Leader) -> Result<Exit, Failure> {
    let sight = Sight::read(&store, &asked.election).await?;
    if sight.leader_id.is_none()
        && sight.term == 0
        && let Some(absence) = if_unknown(&store, &asked.election).await?
    {
        return Err(absence);
    }
    if global.json {
        output::json(&sight)?;
        return Ok(if sight.leader_id.is_some() { Exit::DONE } else { Exit::NO });
    }
    match sight.leader_id {
        Some(leader) => output::say(leader).map(|()| Exit::DONE),
        None => Err(Failure::No(format!("nobody leads `{}`", asked.election))),
    }
}
