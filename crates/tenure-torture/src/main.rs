//! A candidate for tests: one process that stands for elections, works under them, and leaves
//! evidence that survives `kill -9`.
//!
//! It says what happens to it as lines of JSON on stdout, obeys orders on stdin (see `orders`), and
//! closes its node when stdin is closed. The evidence is kept apart from what it says:
//!
//! * the log (`log`, `watch`): for every leadership the first and the last instant at which its check
//!   passed, asked every millisecond on a thread that does nothing else;
//! * the ledger (`ledger`): rows in the store's own file, written by fenced transactions;
//! * the register (`register`): a resource in a file of its own, that compares terms.

mod args;
mod ledger;
mod log;
mod orders;
mod partitions;
mod register;
mod report;
mod stand;
mod watch;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use tenure::{Node, NodeBuilder};

use args::Args;
use report::say;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("candidate: {problem}\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say("failed", json!({ "message": error.to_string() }));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(args: Args) -> Outcome<()> {
    let store = tenure::connect(&args.store).await?;
    say("connected", json!({ "node": args.node }));
    let builder = Node::builder(&args.node).ttl(args.ttl);
    let builder = args.renew_every.into_iter().fold(builder, NodeBuilder::renew_every);
    let builder = builder.priority(args.priority).takeover_delay(args.takeover_delay);
    let node = builder.start(store).await?;
    say("joined", json!({ "node": args.node }));
    let watcher = watch::Watcher::start(log::Log::create(&args.log)?, &args)?;
    let register = register::Register::open(&args.register)?;
    let desk =
        Arc::new(work::Desk { args, node: node.clone(), watcher, register, leave: AtomicBool::new(false) });

    let (orders, quit) = orders::listen(&desk);
    let mut standing = tokio::task::JoinSet::new();
    if let Some(list) = desk.args.task_list.clone() {
        standing.spawn(partitions::work(Arc::clone(&desk), list));
    }
    for (election, orders) in orders {
        standing.spawn(stand::stand(Arc::clone(&desk), election, orders));
    }
    tokio::select! {
        () = quit.cancelled() => {}
        // All candidacies end only if the node is at its end.
        () = async { while standing.join_next().await.is_some() {} } => {}
    }
    node.close().await;
    say("closed", json!({}));
    // Threads of the registers may still be at it, and nobody needs them any more.
    std::process::exit(0);
}
