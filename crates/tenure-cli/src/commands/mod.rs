//! One file per subcommand, and what several of them share:
//!
//! | file | what it is |
//! |---|---|
//! | `sight` | an election as it is now |
//! | `line` | an event as a line of text or JSON |
//! | `ending` | how a term ended, as the history tells it |
//! | `handover` | a leader is asked to make way: `resign` and `transfer` |
//! | `follow` | waiting for news, and for a store that is away |
//! | `measure` | how fast a store answers, for `check` |
//! | `unknown` | an election that nobody ever stood for, and the one that may have been meant |

mod check;
mod completions;
mod config;
mod delete;
mod elections;
mod ending;
mod events;
mod explain;
mod follow;
mod handover;
mod leader;
mod line;
mod man;
mod measure;
mod nodes;
mod resign;
mod sight;
mod status;
mod transfer;
mod unknown;
mod version;
mod watch;

use std::future::Future;
use std::sync::Arc;

use tenure::Store;

use crate::cli::{Command, Config, Global};
use crate::failure::{Exit, Failure};
use crate::settings::Loaded;
use crate::{run, store};

/// Does what was asked.
pub fn carry_out(loaded: Loaded) -> Result<Exit, Failure> {
    let global = loaded.cli.global.clone();
    match &loaded.cli.command {
        Command::Run(run) => run::run(&global, run),
        Command::Leader(leader) => on_store(&global, |store| leader::leader(store, &global, leader)),
        Command::Status(status) => on_store(&global, |store| status::status(store, &global, status)),
        Command::Elections(_) => on_store(&global, |store| elections::elections(store, &global)),
        Command::Nodes(_) => on_store(&global, |store| nodes::nodes(store, &global)),
        Command::Events(events) => on_store(&global, |store| events::events(store, &global, events)),
        Command::Watch(watch) => on_store(&global, |store| watch::watch(store, &global, watch)),
        Command::Resign(resign) => on_store(&global, |store| resign::resign(store, &global, resign)),
        Command::Transfer(transfer) => {
            on_store(&global, |store| transfer::transfer(store, &global, transfer))
        }
        Command::Delete(delete) => on_store(&global, |store| delete::delete(store, &global, delete)),
        Command::Check(_) => on_store(&global, |store| check::check(store, &global)),
        Command::Explain(explain) => on_store(&global, |store| explain::explain(store, &global, explain)),
        Command::Config(Config::Show(_)) => config::show(&loaded),
        Command::Completions(completions) => completions::completions(completions),
        Command::Man(man) => man::man(man),
        Command::Version(_) => version::version(&global),
    }
}

/// Connects, and asks.
fn on_store<F>(global: &Global, ask: impl FnOnce(Arc<dyn Store>) -> F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    crate::runtime()?.block_on(async { ask(store::connect(global).await?).await })
}
