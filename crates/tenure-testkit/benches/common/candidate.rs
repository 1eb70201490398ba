//! A candidate in a process of its own, as most benches measure it. Those of other libraries, in the test kit's
//! `others`, speak the same words.

use std::thread::JoinHandle;
use std::time::Duration;

use tenure::{Leadership, Node};
use tenure_store::clock;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Outcome;
use super::process::say;

const ELECTION: &str = "bench";

/// Stands, and says `leads INSTANT` when elected, until stdin is closed. The order `resign` or
/// `transfer NODE` ends a leadership, and is answered with `resigned INSTANT`: when it was called.
/// After that it stands again only when told to `stand`, so that the successor is another. The order `watch` is
/// answered with `watches`, and, once its check fails, with `ceased INSTANT`: when it last passed.
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
    let mut watches = Vec::new();
    let order = loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            reason = leadership.lost() => {
                say("lost", reason.name());
                // They have seen it too, or do in a moment; whoever stands again has let go of what it had.
                watches.into_iter().try_for_each(JoinHandle::join).map_err(|_| "a watch panicked")?;
                return Ok(true);
            }
        };
        match order {
            None => return Ok(false),
            Some(order) if order == "watch" => {
                let leadership = leadership.clone();
                watches.push(watch(move || leadership.check().is_ok()));
            }
            Some(order) => break order,
        }
    };
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

/// Asks whether this process claims to lead until it does not, on a thread of its own, which nothing but the system
/// stops.
pub fn watch(claims: impl Fn() -> bool + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        // Before it says so: whoever hears it may stop it at once.
        let (mut asked, mut passed) = (clock::now(), clock::now());
        say("watches", "");
        while claims() {
            passed = asked;
            std::thread::sleep(Duration::from_millis(1));
            asked = clock::now();
        }
        say("ceased", passed.as_nanos());
    })
}

/// Lines of stdin, read by a thread of its own: reading a pipe cannot be cancelled.
pub fn orders() -> UnboundedReceiver<String> {
    let (tell, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    orders
}
