//! A candidate in a process of its own, as `handover` and `failover` measure it.

use std::time::Duration;

use tenure::{Leadership, Node};
use tenure_store::clock;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Outcome;
use super::process::say;

const ELECTION: &str = "bench";

/// Stands, and says `leads INSTANT` when elected, until stdin is closed. The order `resign` or
/// `transfer NODE` ends a leadership, and is answered with `resigned INSTANT`: when it was called.
/// After that it stands again only when told to `stand`, so that the successor is another.
pub fn part(words: &[&str]) -> Outcome<()> {
    let [name, url, ttl] = words else { return Err("usage: part NAME URL TTL_MS".into()) };
    let ttl = Duration::from_millis(ttl.parse()?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(stand(name, url, ttl))
}

async fn stand(name: &str, url: &str, ttl: Duration) -> Outcome<()> {
    let store = tenure::connect(url).await?;
    let node = Node::builder(name).ttl(ttl).start(store).await?;
    let election = node.election(ELECTION)?;
    let mut orders = orders();
    loop {
        let leadership = tokio::select! {
            elected = election.elected() => elected?,
            _ = orders.recv() => return Ok(()),
        };
        say("leads", clock::now().as_nanos());
        if !lead(leadership, &mut orders).await? {
            return Ok(());
        }
    }
}

/// False if there is nothing more to do.
async fn lead(leadership: Leadership, orders: &mut UnboundedReceiver<String>) -> Outcome<bool> {
    let order = tokio::select! {
        order = orders.recv() => order,
        reason = leadership.lost() => {
            say("lost", reason.name());
            return Ok(true);
        }
    };
    let Some(order) = order else { return Ok(false) };
    let called = clock::now();
    let given_up = match order.split_once(' ') {
        Some(("transfer", to)) => leadership.transfer(to).await.map_err(|error| error.to_string()),
        _ => leadership.resign().await.map_err(|error| error.to_string()),
    };
    if let Err(error) = given_up {
        say("lost", error);
        return Ok(true);
    }
    say("resigned", called.as_nanos());
    drop(leadership);
    Ok(orders.recv().await.is_some())
}

/// Lines of stdin, read by a thread of its own: reading a pipe cannot be cancelled.
fn orders() -> UnboundedReceiver<String> {
    let (tell, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    orders
}
