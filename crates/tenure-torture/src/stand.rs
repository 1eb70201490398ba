//! Standing for an election again and again, in either form of the library.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::json;
use tenure::{Election, LeadError};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::orders::Order;
use crate::report::say;
use crate::work::{Desk, Next, serve};

/// Stands until the node is at its end.
pub async fn stand(desk: Arc<Desk>, election: String, orders: UnboundedReceiver<Order>) {
    let orders = Arc::new(Mutex::new(orders));
    // While there is a handle, the node remembers what it has seen of the election.
    let _kept = (!desk.args.new_handles).then(|| desk.node.election(&election));
    let ended = loop {
        let handle = match desk.node.election(&election) {
            Ok(handle) => handle,
            Err(error) => break error.to_string(),
        };
        say("stands", json!({ "election": election, "node": desk.args.node }));
        let led = if desk.args.lead {
            supervised(&desk, &handle, &orders).await
        } else {
            by_hand(&desk, &handle, &orders).await
        };
        match led {
            Ok(Next::Stand) => {}
            Ok(Next::Wait) => while !matches!(orders.lock().await.recv().await, Some(Order::Stand) | None) {},
            Err(message) => break message,
        }
    };
    say("ended", json!({ "election": election, "node": desk.args.node, "message": ended }));
}

async fn by_hand(
    desk: &Arc<Desk>,
    election: &Election,
    orders: &Mutex<UnboundedReceiver<Order>>,
) -> Result<Next, String> {
    let leadership = election.elected().await.map_err(|error| error.to_string())?;
    let next = serve(Arc::clone(desk), leadership.clone(), &mut *orders.lock().await).await;
    // The watcher keeps a clone, so that it sees whether the check ever passes again.
    leadership.stopped();
    Ok(next)
}

async fn supervised(
    desk: &Arc<Desk>,
    election: &Election,
    orders: &Arc<Mutex<UnboundedReceiver<Order>>>,
) -> Result<Next, String> {
    let led = election
        .lead(|leadership| {
            let (desk, orders) = (Arc::clone(desk), Arc::clone(orders));
            async move { Ok::<_, Infallible>(serve(desk, leadership, &mut *orders.lock().await).await) }
        })
        .await;
    match led {
        Ok(next) => Ok(next),
        Err(LeadError::CutOff) => Ok(Next::Stand),
        Err(error) => Err(error.to_string()),
    }
}
