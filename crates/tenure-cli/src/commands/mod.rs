//! One file per subcommand, and what several of them share:
//!
//! | file | what it is |
//! |---|---|
//! | `sight` | an election as it is now |
//! | `scene`, `picture` | an election with its nodes and events, and how `demo` and `top` show it |
//! | `source`, `remote` | where a scene is read: in a store, or from a node's API |
//! | `line` | an event as a line of text or JSON |
//! | `ending` | how a term ended, as the history tells it |
//! | `handover` | a leader is asked to make way: `resign` and `transfer` |
//! | `follow` | waiting for news, and for a store that is away |
//! | `measure` | how fast a store answers: `check` and `bench` |
//! | `crew` | nodes of our own, as processes: `demo` and `bench` |
//! | `arranging` | the task lists that `node` is told of |
//! | `unknown` | an election that nobody ever stood for, and the one that may have been meant |

mod arranging;
mod bench;
mod check;
mod completions;
mod config;
mod crew;
mod delete;
mod demo;
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
mod node;
mod nodes;
mod partitions;
mod picture;
#[cfg(feature = "raft")]
mod raft;
mod remote;
mod resign;
mod scene;
mod sight;
mod source;
mod status;
mod top;
mod transfer;
mod unknown;
mod version;
mod watch;
mod witness;

use std::future::Future;
use std::sync::Arc;

use tenure::Store;

use config::balancer::{Kind, print};

use crate::cli::{Command, Config, Global, Partitions};
use crate::failure::{Exit, Failure};
use crate::settings::Loaded;
use crate::{run, store};

/// Does what was asked.
pub fn carry_out(loaded: Loaded) -> Result<Exit, Failure> {
    let global = loaded.cli.global.clone();
    match &loaded.cli.command {
        Command::Run(run) => run::run(&global, run),
        Command::Node(asked) => node::node(&global, asked),
        Command::Demo(asked) => demo::demo(&global, asked),
        Command::Leader(leader) => on_store(&global, |store| leader::leader(store, &global, leader)),
        Command::Status(status) => on_store(&global, |store| status::status(store, &global, status)),
        Command::Elections(_) => on_store(&global, |store| elections::elections(store, &global)),
        Command::Nodes(_) => on_store(&global, |store| nodes::nodes(store, &global)),
        Command::Events(events) => on_store(&global, |store| events::events(store, &global, events)),
        Command::Watch(watch) => on_store(&global, |store| watch::watch(store, &global, watch)),
        Command::Top(asked) => top::top(&global, asked),
        Command::Resign(resign) => on_store(&global, |store| resign::resign(store, &global, resign)),
        Command::Transfer(transfer) => {
            on_store(&global, |store| transfer::transfer(store, &global, transfer))
        }
        Command::Delete(delete) => on_store(&global, |store| delete::delete(store, &global, delete)),
        Command::Check(asked) => check::check(&global, asked),
        Command::Bench(asked) => bench::bench(&global, asked),
        Command::Explain(explain) => on_store(&global, |store| explain::explain(store, &global, explain)),
        Command::Partitions(asked @ Partitions::Create(_)) => crate::runtime()?.block_on(async {
            partitions::partitions(store::connect_or_create(&global).await?, &global, asked).await
        }),
        Command::Partitions(asked) => {
            on_store(&global, |store| partitions::partitions(store, &global, asked))
        }
        #[cfg(feature = "raft")]
        Command::Raft(raft) => on_store(&global, |store| raft::raft(store, &global, raft)),
        Command::Witness(witness) => witness::witness(&global, witness),
        Command::Config(Config::Show(_)) => config::show(&loaded),
        Command::Config(Config::Nginx(asked)) => on_store(&global, |store| print(store, asked, Kind::Nginx)),
        Command::Config(Config::Haproxy(asked)) => {
            on_store(&global, |store| print(store, asked, Kind::Haproxy))
        }
        Command::Config(Config::Envoy(asked)) => on_store(&global, |store| print(store, asked, Kind::Envoy)),
        Command::Completions(completions) => completions::completions(completions),
        Command::Man(man) => man::man(man),
        Command::Version(_) => version::version(&global),
    }
}

/// Connects to a store that is there, and asks.
fn on_store<F>(global: &Global, ask: impl FnOnce(Arc<dyn Store>) -> F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    crate::runtime()?.block_on(async { ask(store::connect(global).await?).await })
}
