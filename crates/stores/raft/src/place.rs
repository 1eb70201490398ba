//! Where a member is in this process: there, or coming back. A member whose disk has failed stops, and is
//! started again from what the disk has kept.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use tenure_store::StoreError;

use crate::address::{Address, Seat};
use crate::forming;
use crate::lines::Lines;
use crate::member::Member;
use crate::wire::{Request, Response};

/// How soon a member that has stopped is started again.
const AGAIN: Duration = Duration::from_secs(1);

/// The member of this process.
pub(crate) struct Place {
    seat: Seat,
    peers: Vec<String>,
    heartbeat: Duration,
    lines: Arc<Lines>,
    member: RwLock<Result<Arc<Member>, String>>,
}

impl Place {
    /// Starts the member.
    pub(crate) async fn take(address: &Address, seat: Seat, lines: Arc<Lines>) -> Result<Self, StoreError> {
        let heartbeat = address.heartbeat;
        let member = Member::start(&seat.data, seat.address.clone(), Arc::clone(&lines), heartbeat).await?;
        let member = RwLock::new(Ok(Arc::new(member)));
        Ok(Self { seat, peers: address.peers.clone(), heartbeat, lines, member })
    }

    /// Where the others reach it.
    pub(crate) fn address(&self) -> &str {
        &self.seat.address
    }

    /// The member, or why there is none now.
    pub(crate) fn member(&self) -> Result<Arc<Member>, String> {
        self.member.read().expect("nobody panics over the member").clone()
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        match self.member() {
            Ok(member) => member.answer(request).await,
            Err(why) => Response::NotNow(format!("the member at {} has stopped: {why}", self.address())),
        }
    }

    /// Founds or joins the group, and starts the member again whenever it has stopped.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            if let Ok(member) = self.member() {
                let mut metrics = member.raft.metrics();
                let stopped = async {
                    let stopped = metrics.wait_for(|metrics| metrics.running_state.is_err()).await;
                    stopped.map_or_else(
                        |error| error.to_string(),
                        |metrics| format!("{:?}", metrics.running_state),
                    )
                };
                let settled = async {
                    forming::settle(&member, &self.peers, self.heartbeat).await;
                    std::future::pending().await
                };
                let why: String = tokio::select! { why = stopped => why, never = settled => never };
                tracing::error!(member = %self.address(), %why, "the member has stopped, and is started again");
                *self.member.write().expect("nobody panics over the member") = Err(why);
            }
            tokio::time::sleep(AGAIN).await;
            let started = Member::start(
                &self.seat.data,
                self.seat.address.clone(),
                Arc::clone(&self.lines),
                self.heartbeat,
            );
            let started = started.await.map(Arc::new).map_err(|error| error.to_string());
            *self.member.write().expect("nobody panics over the member") = started;
        }
    }
}
