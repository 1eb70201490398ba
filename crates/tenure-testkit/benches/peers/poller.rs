//! A candidate that asks for a lock again and again, and asks again and again whether it still has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_store::clock;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::common::Outcome;
use crate::common::candidate::{orders, watch};
use crate::common::process::say;

/// A lock that a database keeps.
pub trait Lock {
    /// How long it is before one who was refused asks again, and before one who has it does.
    fn pauses(&self) -> Pauses;
    /// Whether it is ours now.
    async fn acquire(&mut self) -> Outcome<bool>;
    /// Whether it is still ours.
    async fn keep(&mut self) -> Outcome<bool>;
    async fn release(&mut self) -> Outcome<()>;
}

pub struct Pauses {
    pub refused: Duration,
    pub held: Duration,
}

/// Stands, and speaks as Tenure's candidates do, until stdin is closed.
pub fn run<L: Lock>(open: impl Future<Output = Outcome<L>>) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { stand(open.await?, orders()).await })
}

async fn stand(mut lock: impl Lock, mut orders: UnboundedReceiver<String>) -> Outcome<()> {
    loop {
        while !lock.acquire().await? {
            tokio::select! {
                order = orders.recv() => if order.is_none() { return Ok(()) },
                () = tokio::time::sleep(lock.pauses().refused) => {}
            }
        }
        let leads = Arc::new(AtomicBool::new(true));
        say("leads", clock::now().as_nanos());
        let ordered = lead(&mut lock, &mut orders, &leads).await;
        // Whatever it was, it is over.
        let called = clock::now();
        leads.store(false, Ordering::Relaxed);
        match ordered.as_deref() {
            Some("resign") => {
                lock.release().await?;
                say("resigned", called.as_nanos());
                if orders.recv().await.is_none() {
                    return Ok(());
                }
            }
            Some(why) => say("lost", why),
            None => return Ok(()),
        }
    }
}

/// Until it is told to resign, or has lost the lock; `None`: until nobody is there to tell it.
async fn lead(
    lock: &mut impl Lock,
    orders: &mut UnboundedReceiver<String>,
    leads: &Arc<AtomicBool>,
) -> Option<String> {
    loop {
        tokio::select! {
            order = orders.recv() => match order?.as_str() {
                "watch" => {
                    let leads = Arc::clone(leads);
                    drop(watch(move || leads.load(Ordering::Relaxed)));
                }
                order => return Some(order.to_owned()),
            },
            () = tokio::time::sleep(lock.pauses().held) => match lock.keep().await {
                Ok(true) => {}
                Ok(false) => return Some(String::from("refused")),
                Err(error) => return Some(error.to_string()),
            }
        }
    }
}
