//! How openraft reaches the other members: over the same connections as everybody else.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::error::{
    Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, Snapshot};

use crate::disk::Identity;
use crate::lines::{Lines, Trouble};
use crate::snapshot::chunks;
use crate::types::{MemberId, Peer, Types, Vote};
use crate::wire::{Request, Response, Rpc, RpcResponse};

/// Makes a [`Way`] to every member.
pub(crate) struct Network {
    pub lines: Arc<Lines>,
    pub identity: Arc<Mutex<Identity>>,
    /// How soon a member that was not reached is tried again.
    pub again: Duration,
}

/// The way to one member.
pub(crate) struct Way {
    lines: Arc<Lines>,
    identity: Arc<Mutex<Identity>>,
    again: Duration,
    to: MemberId,
    address: String,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Way;

    async fn new_client(&mut self, to: MemberId, peer: &Peer) -> Way {
        let (lines, identity) = (Arc::clone(&self.lines), Arc::clone(&self.identity));
        Way { lines, identity, again: self.again, to, address: peer.addr.clone() }
    }
}

type Failed<E> = RPCError<MemberId, Peer, E>;

impl Way {
    async fn call<E: std::error::Error>(&self, rpc: Rpc) -> Result<RpcResponse, Failed<E>> {
        let strange = |words: String| Failed::Network(NetworkError::new(&io::Error::other(words)));
        let group = self.identity.lock().expect("nobody panics over who we are").group;
        let group = group.ok_or_else(|| strange(String::from("we belong to no group yet")))?;
        let request = Request::Raft { group, to: self.to, rpc };
        match self.lines.ask(&self.address, &request).await {
            Ok(Response::Raft(answer)) => Ok(*answer),
            Ok(other) => Err(strange(format!("{} does not answer as a member: {other:?}", self.address))),
            Err(Trouble::NotSent(error)) => Err(Failed::Unreachable(Unreachable::new(&error))),
            Err(Trouble::Unanswered(error)) => Err(Failed::Network(NetworkError::new(&error))),
        }
    }
}

fn confused<E: std::error::Error>() -> Failed<E> {
    Failed::Network(NetworkError::new(&io::Error::other(
        "the member answers another question than was asked",
    )))
}

impl RaftNetwork<Types> for Way {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<MemberId>, Failed<RaftError<MemberId>>> {
        match self.call(Rpc::Append(rpc)).await? {
            RpcResponse::Append(answer) => Ok(answer),
            _ => Err(confused()),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<MemberId>,
        _option: RPCOption,
    ) -> Result<VoteResponse<MemberId>, Failed<RaftError<MemberId>>> {
        match self.call(Rpc::Vote(rpc)).await? {
            RpcResponse::Vote(answer) => Ok(answer),
            _ => Err(confused()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<Types>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<MemberId>, StreamingError<Types, Fatal<MemberId>>> {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            StreamingError::Network(NetworkError::new(&io::Error::other(error.to_string())))
        };
        let sent = async {
            for chunk in chunks(&snapshot.snapshot) {
                let rpc = Rpc::Snapshot { vote, meta: snapshot.meta.clone(), chunk };
                let answer = tokio::time::timeout(option.hard_ttl(), self.call::<Fatal<MemberId>>(rpc));
                match answer.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))? {
                    RpcResponse::Received => {}
                    RpcResponse::Snapshot(answer) => return Ok(answer),
                    _ => break,
                }
            }
            Err(failed(&io::Error::from(io::ErrorKind::InvalidData)))
        };
        tokio::select! {
            closed = cancel => Err(closed.into()),
            answer = sent => answer,
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(self.again))
    }
}
