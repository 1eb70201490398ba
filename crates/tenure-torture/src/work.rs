//! What a leader does: it writes, and obeys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Leadership, Node, Reason};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, COORDINATOR};
use crate::ledger::{self, Entry};
use crate::orders::Order;
use crate::register::Register;
use crate::report::say;
use crate::watch::Watcher;

/// What all work of this process shares.
pub struct Desk {
    pub args: Args,
    pub node: Node,
    pub watcher: Arc<Watcher>,
    pub register: Register,
    /// Whoever dwells inside a transaction is to leave it.
    pub leave: AtomicBool,
}

/// Whether to stand again after the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Stand,
    /// Only when told so.
    Wait,
}

/// Leads until leadership is lost or given up.
pub async fn serve(desk: Arc<Desk>, leadership: Leadership, orders: &mut UnboundedReceiver<Order>) -> Next {
    desk.watcher.watch(&leadership);
    // Meant for a leadership before this one. Whoever hears of this one may give its first order at once.
    while orders.try_recv().is_ok() {}
    tell(&desk, "elected", &leadership, json!({}));
    if leadership.election().as_str() == COORDINATOR
        && let Err(error) = leadership.coordinate()
    {
        tell(&desk, "failed", &leadership, json!({ "message": error.to_string() }));
    }
    let mut writer = Writer::start(&desk, &leadership);
    loop {
        let order = tokio::select! {
            reason = leadership.lost() => {
                tell(&desk, "lost", &leadership, json!({ "reason": reason.name() }));
                if desk.args.stubborn && reason != Reason::Closing {
                    tokio::time::sleep(desk.args.ttl * 2).await;
                }
                writer.stop().await;
                return Next::Stand;
            }
            Some(order) = orders.recv() => order,
        };
        match order {
            Order::Stand => {}
            Order::Dwell => dwell(&desk, &leadership).await,
            Order::Resign => {
                writer.stop().await;
                if leadership.resign().await.is_ok() {
                    tell(&desk, "resigned", &leadership, json!({}));
                    return Next::Wait;
                }
            }
            Order::Transfer(to) => {
                writer.stop().await;
                match leadership.transfer(to.as_str()).await {
                    Ok(()) => {
                        tell(&desk, "resigned", &leadership, json!({ "to": to }));
                        return Next::Stand;
                    }
                    Err(error) => {
                        tell(&desk, "kept", &leadership, json!({ "message": error.to_string() }));
                        writer = Writer::start(&desk, &leadership);
                    }
                }
            }
        }
    }
}

fn tell(desk: &Desk, event: &str, leadership: &Leadership, mut more: Value) {
    more["election"] = json!(leadership.election().as_str());
    more["node"] = json!(desk.args.node);
    more["term"] = json!(leadership.term().number());
    say(event, more);
}

/// Says when it is inside, and stays there until it is told to leave: so that a test can stop the process right
/// there.
async fn dwell(desk: &Arc<Desk>, leadership: &Leadership) {
    let entry = Entry::of(leadership, &desk.args.node, 0, "dwelt");
    let (desk, leadership) = (Arc::clone(desk), leadership.clone());
    let inside = {
        let (desk, leadership) = (Arc::clone(&desk), leadership.clone());
        move || tell(&desk, "inside", &leadership, json!({}))
    };
    let desk_inside = Arc::clone(&desk);
    let outcome = leadership
        .transaction(move |transaction| {
            entry.write(transaction)?;
            inside();
            while !desk_inside.leave.load(Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok::<_, tenure::sqlite::rusqlite::Error>(())
        })
        .await;
    let outcome = outcome.map_or_else(|error| error.to_string(), |()| String::from("accepted"));
    tell(&desk, "dwelt", &leadership, json!({ "outcome": outcome }));
}

/// The work itself: a task of its own, so that it can be told to stop, or refuse to.
struct Writer {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(desk: &Arc<Desk>, leadership: &Leadership) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(write(Arc::clone(desk), leadership.clone(), stop.clone()));
        Self { stop, task: Some(task) }
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await; // it does not panic, and is not aborted
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Writes to both registers until told to stop, whatever they answer.
async fn write(desk: Arc<Desk>, leadership: Leadership, stop: CancellationToken) {
    for seq in 1.. {
        let entry = Entry::of(&leadership, &desk.args.node, seq, "work");
        ledger::write(&leadership, entry.clone()).await;
        desk.register.write(entry).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(desk.args.write_every) => {}
        }
    }
}
