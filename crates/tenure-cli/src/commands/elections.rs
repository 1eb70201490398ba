//! `tenure elections`: all that were ever stood for.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tenure::Store;

use super::sight::{Sight, State};
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::output::{self, GOOD, Table, styled};
use crate::store::ask;

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    sight: Sight,
    state: State,
}

pub async fn elections(store: Arc<dyn Store>, global: &Global) -> Result<Exit, Failure> {
    let nodes = ask(store.nodes()).await?;
    let rows: Vec<Row> = ask(store.elections())
        .await?
        .iter()
        .map(|(election, record)| {
            let sight = Sight::of(election, record, &nodes);
            Row { state: State::of(&sight, record), sight }
        })
        .collect();
    if global.json {
        rows.iter().try_for_each(output::json)?;
        return Ok(Exit::DONE);
    }
    let mut table = Table::new(&["ELECTION", "LEADER", "TERM", "STATE", "RENEWED"]);
    for Row { sight, state } in rows {
        let renewed = sight.age_ms.map(|age| format!("{} ago", output::length(Duration::from_millis(age))));
        let state = match state {
            State::Led => styled(GOOD, state.name()),
            _ => state.name().to_owned(),
        };
        table.row(vec![
            sight.election,
            sight.leader_id.unwrap_or_else(|| String::from("-")),
            sight.term.to_string(),
            state,
            renewed.unwrap_or_else(|| String::from("-")),
        ]);
    }
    table.print().map(|()| Exit::DONE)
}
