//! What a leader does: it writes, and obeys.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Leadership, Node, Reason, TransactionError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, COORDINATOR};
use crate::ledger::{self, Entry};
use crate::orders::Order;
use crate::register::Register;
use crate::report::say;
use crate::watch::Watcher;

/// Long enough to be stopped between two statements.
const MOMENT: Duration = Duration::from_millis(300);

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

/// Says when it is inside a fenced transaction, and stays there: so that the process can be stopped right there.
async fn dwell(desk: &Arc<Desk>, leadership: &Leadership) {
    let outcome = match in_file(desk, leadership).await {
        Err(TransactionError::NotSql) => in_database(desk, leadership).await,
        outcome => outcome.map_err(|error| error.to_string()),
    };
    let outcome = outcome.map_or_else(|error| error, |()| String::from("accepted"));
    tell(desk, "dwelt", leadership, json!({ "outcome": outcome }));
}

/// Until it is told to leave.
async fn in_file(
    desk: &Arc<Desk>,
    leadership: &Leadership,
) -> Result<(), TransactionError<tenure::sqlite::rusqlite::Error>> {
    let entry = Entry::of(leadership, &desk.args.node, 0, "dwelt");
    let (desk, inside) = (Arc::clone(desk), leadership.clone());
    let work = move |transaction: &tenure::sqlite::rusqlite::Transaction<'_>| {
        entry.write(transaction)?;
        tell(&desk, "inside", &inside, json!({}));
        while !desk.leave.load(Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    leadership.transaction(work).await
}

/// Between two statements of a transaction on PostgreSQL or MySQL, for a moment: whoever is not stopped in it goes on.
async fn in_database(desk: &Arc<Desk>, leadership: &Leadership) -> Result<(), String> {
    let stay = async || {
        tell(desk, "inside", leadership, json!({}));
        tokio::time::sleep(MOMENT).await;
        Ok::<_, Infallible>(())
    };
    match leadership.postgres_transaction(async |_| stay().await).await {
        Err(TransactionError::NotSql) => {
            leadership.mysql_transaction(async |_| stay().await).await.map_err(|error| error.to_string())
        }
        outcome => outcome.map_err(|error| error.to_string()),
    }
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
