//! Verbs on their way into the log. Those that come while one entry is under way share the next: so a thousand
//! claims at once cost a few writes to the disk, and never keep the group from its heartbeats.

use std::time::{Duration, SystemTime};

use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{mpsc, oneshot};

use crate::machine::{Command, Order};
use crate::state::State;
use crate::types::Raft;
use crate::verbs::Outcome;
use crate::wire::Response;

/// How long a member waits for the others to confirm something before it says that it does not know.
pub(crate) const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// So many verbs in one entry.
const BATCH: usize = 128;
/// So many wait for their turn; whoever comes then waits before the door.
const WAITING: usize = 4096;

/// What becomes of a verb; or what to answer instead.
pub(crate) type Fate = Result<Box<Outcome>, Response>;

/// The way to the log of the member that leads.
pub(crate) struct Batches {
    queue: mpsc::Sender<(Order, oneshot::Sender<Fate>)>,
}

impl Batches {
    /// They end with the member.
    pub(crate) fn start(raft: Raft, state: State) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write_all(raft, state, waiting));
        Self { queue }
    }

    pub(crate) async fn write(&self, order: Order) -> Fate {
        let (tell, told) = oneshot::channel();
        if self.queue.send((order, tell)).await.is_err() {
            return Err(Response::NotNow(String::from("the member has stopped")));
        }
        told.await.unwrap_or_else(|_| Err(Response::Unknown(String::from("the member has stopped"))))
    }
}

async fn write_all(raft: Raft, state: State, mut waiting: mpsc::Receiver<(Order, oneshot::Sender<Fate>)>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        // Whoever has gone away meanwhile has asked again since.
        batch.retain(|(_, tell)| !tell.is_closed());
        let (orders, tell): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        if orders.is_empty() {
            continue;
        }
        let fates = write(&raft, &state, orders).await;
        for (tell, fate) in tell.into_iter().zip(fates) {
            // It has gone away.
            let _ = tell.send(fate);
        }
    }
}

async fn write(raft: &Raft, state: &State, orders: Vec<Order>) -> Vec<Fate> {
    let all = orders.len();
    let not = |answer: &dyn Fn() -> Response| (0..all).map(|_| Err(answer())).collect();
    let command = Command { tick: state.tick(), wall: SystemTime::now(), orders };
    match tokio::time::timeout(CONFIRMED_WITHIN, raft.client_write(command)).await {
        Ok(Ok(written)) => written.data.into_iter().map(|outcome| Ok(Box::new(outcome))).collect(),
        Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
            let leader = forward.leader_node.map(|peer| peer.addr);
            not(&|| Response::Elsewhere { leader: leader.clone() })
        }
        Ok(Err(error)) => not(&|| Response::Unknown(error.to_string())),
        Err(_) => not(&|| Response::Unknown(String::from("a majority of the members has not confirmed it"))),
    }
}
