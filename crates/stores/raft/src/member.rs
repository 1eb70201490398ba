//! A member: its part of the group, and what it answers when it is asked.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::error::{CheckIsLeaderError, ForwardToLeader, RaftError};
use openraft::{Config, Snapshot, SnapshotPolicy};
use tenure_core::Namespace;
use tenure_store::StoreError;

use crate::batch::{Batches, CONFIRMED_WITHIN};
use crate::disk::{Disk, Identity, Write};
use crate::lines::Lines;
use crate::log::Log;
use crate::machine::Order;
use crate::network::Network;
use crate::snapshot::IncomingSnapshot;
use crate::state::State;
use crate::types::{MemberId, Peer, Raft};
use crate::verbs::{Question, Verb};
use crate::wire::{LogView, MemberView, Request, Response, Rpc, RpcResponse, Who};

/// A snapshot takes the place of the log after so many entries.
const SNAPSHOT_EVERY: u64 = 2000;
/// So many are kept nevertheless, for members that are only a little behind.
const KEPT: u64 = 500;
/// Far above an honest verb, and so far below a frame that a batch of batches of them fits into one.
const VERB_LIMIT: usize = 16 << 10;

/// One member, from the opening of its directory until its disk fails.
pub(crate) struct Member {
    /// Where the others reach it.
    pub(crate) address: String,
    pub(crate) lines: Arc<Lines>,
    pub(crate) raft: Raft,
    pub(crate) state: State,
    batches: Batches,
    disk: Disk,
    identity: Arc<Mutex<Identity>>,
    /// The snapshot that another member is sending.
    incoming: IncomingSnapshot,
    /// Changes of the membership, and of whom we belong to, come one after the other.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl Member {
    /// Opens its directory, and takes part in the group that it belongs to.
    pub(crate) async fn start(
        data: &Path,
        address: String,
        lines: Arc<Lines>,
        heartbeat: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |error: &dyn std::fmt::Display| {
            StoreError::misconfigured(format!("the member at {address} cannot start: {error}"))
        };
        let random = || getrandom::u64().map(u128::from).map_err(|error| failed(&error));
        let writer = random()? << 64 | random()?;
        let (disk, found) = Disk::open(data)?;
        let identity = Arc::new(Mutex::new(found.identity));
        let log = Log::new(disk.clone(), found.log, found.purged, found.vote);
        let state = State::new(disk.clone(), found.snapshot, writer).map_err(|error| failed(&error))?;
        let network =
            Network { lines: Arc::clone(&lines), identity: Arc::clone(&identity), again: heartbeat };
        let config = Arc::new(config(heartbeat).validate().map_err(|error| failed(&error))?);
        let raft = Raft::new(found.identity.id, config, network, log, state.clone()).await;
        let raft = raft.map_err(|error| failed(&error))?;
        let batches = Batches::start(raft.clone(), state.clone());
        Ok(Self {
            address,
            lines,
            raft,
            state,
            batches,
            disk,
            identity,
            incoming: IncomingSnapshot::default(),
            changing: tokio::sync::Mutex::new(()),
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        *self.identity.lock().expect("nobody panics over who we are")
    }

    /// Whether it has a log; without one it waits to be given one.
    pub(crate) async fn is_initialised(&self) -> bool {
        self.raft.is_initialized().await.unwrap_or(false)
    }

    /// Answers anything but [`Request::Watch`].
    pub(crate) async fn answer(&self, request: Request) -> Response {
        match request {
            Request::Raft { group, to, rpc } => self.rpc(group, to, rpc).await,
            Request::Verb(order) => self.write(order).await,
            Request::Ask { namespace, question } => self.ask(namespace, &question).await,
            Request::Who => Response::Who(Box::new(self.who().await)),
            Request::Pledge { group } => self.pledge(group).await,
            Request::Change(change) => self.change(change).await,
            Request::Snapshot => match self.raft.trigger().snapshot().await {
                Ok(()) => Response::Done,
                Err(error) => Response::NotNow(error.to_string()),
            },
            Request::Watch { .. } => Response::NotNow(String::from("a watch has a connection of its own")),
        }
    }

    // ----- the group's own words ------------------------------------------------------------

    async fn rpc(&self, group: u128, to: MemberId, rpc: Rpc) -> Response {
        let us = self.identity();
        if us.group != Some(group) || us.id != to {
            // The address was somebody else's, whose vote is not ours to give.
            return Response::Refused(format!(
                "this is member {:x} at {}, and not {to:x}",
                us.id, self.address
            ));
        }
        let answer = match rpc {
            Rpc::Append(rpc) => self
                .raft
                .append_entries(rpc)
                .await
                .map(RpcResponse::Append)
                .map_err(|error| error.to_string()),
            Rpc::Vote(rpc) => {
                self.raft.vote(rpc).await.map(RpcResponse::Vote).map_err(|error| error.to_string())
            }
            Rpc::Snapshot { vote, meta, chunk } => {
                let data = match self.incoming.receive(vote, &meta, chunk) {
                    Ok(Some(data)) => data,
                    Ok(None) => return Response::Raft(Box::new(RpcResponse::Received)),
                    Err(problem) => return Response::NotNow(problem),
                };
                let snapshot = Snapshot { meta, snapshot: Box::new(data) };
                let installed = self.raft.install_full_snapshot(vote, snapshot).await;
                installed.map(RpcResponse::Snapshot).map_err(|error| error.to_string())
            }
        };
        match answer {
            Ok(answer) => Response::Raft(Box::new(answer)),
            Err(problem) => Response::NotNow(problem),
        }
    }

    /// Belongs to this group from now on, if to no other. A promise may be replaced as long as nothing came of
    /// it: whoever founds a group needs the promise of all, and begins again if it was interrupted.
    pub(crate) async fn pledge(&self, group: u128) -> Response {
        let _one_at_a_time = self.changing.lock().await;
        let us = self.identity();
        if us.group != Some(group) {
            if self.is_initialised().await {
                return Response::Refused(format!("{} belongs to another group already", self.address));
            }
            let us = Identity { group: Some(group), ..us };
            if let Err(error) = self.disk.written(Write::Identity(us)).await {
                return Response::NotNow(error.to_string());
            }
            *self.identity.lock().expect("nobody panics over who we are") = us;
        }
        Response::Who(Box::new(self.who().await))
    }

    // ----- verbs and questions --------------------------------------------------------------

    async fn write(&self, order: Order) -> Response {
        let Some(group) = self.identity().group else { return self.homeless() };
        let size = postcard::experimental::serialized_size(&order).unwrap_or(usize::MAX);
        if size > VERB_LIMIT {
            return Response::Refused(too_large(&order.verb, size));
        }
        match self.batches.write(order).await {
            Ok(outcome) => Response::Told { group, outcome },
            Err(answer) => answer,
        }
    }

    /// Answers only once a majority has confirmed that this member leads, so from nothing older than the
    /// question.
    async fn ask(&self, namespace: Namespace, question: &Question) -> Response {
        let Some(group) = self.identity().group else { return self.homeless() };
        match tokio::time::timeout(CONFIRMED_WITHIN, self.raft.ensure_linearizable()).await {
            Ok(Ok(_)) => {
                let outcome = Box::new(self.state.answer(question, namespace));
                Response::Told { group, outcome }
            }
            Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(forward)))) => {
                self.elsewhere(forward)
            }
            Ok(Err(error)) => Response::NotNow(error.to_string()),
            Err(_) => Response::NotNow(String::from("a majority of the members does not answer")),
        }
    }

    fn homeless(&self) -> Response {
        Response::NotNow(format!("{} belongs to no group yet", self.address))
    }

    pub(crate) fn elsewhere(&self, forward: ForwardToLeader<MemberId, Peer>) -> Response {
        Response::Elsewhere {
            leader: forward.leader_node.map(|peer| peer.addr).filter(|leader| *leader != self.address),
        }
    }

    /// Whether this member knows of one that leads.
    pub(crate) fn is_led(&self) -> bool {
        self.raft.metrics().borrow().current_leader.is_some()
    }

    pub(crate) async fn who(&self) -> Who {
        let us = self.identity();
        let initialised = self.is_initialised().await;
        let metrics = self.raft.metrics().borrow().clone();
        let membership = metrics.membership_config.membership();
        let voters: Vec<MemberId> = membership.voter_ids().collect();
        let members = membership.nodes().map(|(&id, peer)| MemberView {
            id,
            address: peer.addr.clone(),
            voter: voters.contains(&id),
            matched: metrics
                .replication
                .as_ref()
                .and_then(|known| (*known.get(&id)?).map(|log_id| log_id.index)),
        });
        Who {
            id: us.id,
            address: self.address.clone(),
            group: us.group,
            initialised,
            version: String::from(env!("CARGO_PKG_VERSION")),
            term: metrics.current_term,
            leader: metrics.current_leader,
            members: members.collect(),
            log: LogView {
                last: metrics.last_log_index,
                applied: metrics.last_applied.map(|log_id| log_id.index),
                snapshot: metrics.snapshot.map(|log_id| log_id.index),
                purged: metrics.purged.map(|log_id| log_id.index),
                snapshot_bytes: self.state.snapshot_bytes(),
            },
            confirmed_ms: metrics.millis_since_quorum_ack,
        }
    }
}

/// What to do about a request that is larger than any may be.
fn too_large(verb: &Verb, size: usize) -> String {
    let hint = match verb {
        Verb::Enlist(_) => "use shorter labels, or let a node work on fewer task lists",
        Verb::Arrange(_) => "exclude or pin fewer nodes in one task list, or split the task list",
        Verb::Open(_) => "use fewer or shorter labels",
        _ => "shorten what it names",
    };
    format!("the request has {size} bytes, and on Raft none may have more than {VERB_LIMIT}; {hint}")
}

/// All patience follows from the heartbeat. A member that has heard nothing for six of them stops believing in
/// the one that leads; then it waits another three to six, as its own dice say, and stands.
fn config(heartbeat: Duration) -> Config {
    let beat = u64::try_from(heartbeat.as_millis()).unwrap_or(u64::MAX);
    Config {
        cluster_name: String::from("tenure"),
        heartbeat_interval: beat,
        election_timeout_min: beat.saturating_mul(3),
        election_timeout_max: beat.saturating_mul(6),
        // For each part of it; the last one is answered when all of it is on the disk.
        install_snapshot_timeout: 120_000,
        max_payload_entries: 16,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_EVERY),
        max_in_snapshot_log_to_keep: KEPT,
        ..Config::default()
    }
}
