//! Who belongs to the group: asked in, sent away, replaced, moved. Decided by the member that leads, one change
//! after the other, and agreed on through the log like everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::error::{ClientWriteError, RaftError};

use crate::member::Member;
use crate::types::{MemberId, Peer};
use crate::wire::{Change, Request, Response, Who};

/// How long a new member may take to be given the log.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(60);

/// Why there is no change: what to answer instead.
type Stop = Response;

impl Member {
    pub(crate) async fn change(&self, change: Change) -> Response {
        if let Err(error) = self.raft.ensure_linearizable().await {
            return match error {
                RaftError::APIError(openraft::error::CheckIsLeaderError::ForwardToLeader(forward)) => {
                    self.elsewhere(forward)
                }
                error => Response::NotNow(error.to_string()),
            };
        }
        let _one_at_a_time = self.changing.lock().await;
        let changed = async {
            match change {
                Change::Settle { id, address } => self.settle(id, address).await,
                Change::Add { address } => self.add(address).await,
                Change::Remove { who } => self.remove(&who).await,
            }
        };
        match tokio::time::timeout(CAUGHT_UP_WITHIN, changed).await {
            Ok(Ok(())) => Response::Done,
            Ok(Err(stop)) => stop,
            Err(_) => Response::Unknown(String::from(
                "the change takes long: `tenure raft members` shows how far it is",
            )),
        }
    }

    fn nodes(&self) -> BTreeMap<MemberId, Peer> {
        let membership = self.raft.metrics().borrow().membership_config.clone();
        membership.membership().nodes().map(|(&id, peer)| (id, peer.clone())).collect()
    }

    fn voters(&self) -> BTreeSet<MemberId> {
        self.raft.metrics().borrow().membership_config.membership().voter_ids().collect()
    }

    /// A member has come up. It may be where it always was, or elsewhere, or have lost its disk.
    async fn settle(&self, id: MemberId, address: String) -> Result<(), Stop> {
        let nodes = self.nodes();
        let voters = self.voters();
        match nodes.get(&id) {
            Some(known) if known.addr == address && voters.contains(&id) => Ok(()),
            Some(known) if known.addr != address => {
                let moved = BTreeMap::from([(id, Peer::new(address))]);
                self.propose(ChangeMembers::SetNodes(moved), true).await
            }
            _ if nodes.values().any(|peer| peer.addr == address) => self.seat(id, address).await,
            _ => Err(Response::Refused(format!(
                "nobody has asked {address} into the group; `tenure raft add {address}` does"
            ))),
        }
    }

    async fn add(&self, address: String) -> Result<(), Stop> {
        let who = self.take_pledge(&address).await?;
        if self.voters().contains(&who.id) {
            return Ok(());
        }
        self.seat(who.id, address).await
    }

    /// Gives somebody a vote, in the place of whoever was at the same address before: that one's disk is gone.
    async fn seat(&self, id: MemberId, address: String) -> Result<(), Stop> {
        let who = self.take_pledge(&address).await?;
        if who.id != id {
            return Err(Response::NotNow(format!("somebody else answers at {address} now")));
        }
        // First the log, then the vote: a majority that has to wait for a newcomer is none.
        let learning = self.raft.add_learner(id, Peer::new(&address), true).await;
        learning.map(|_| ()).map_err(|error| self.stopped(error))?;
        let former = self.nodes().into_iter().find(|(other, peer)| *other != id && peer.addr == address);
        let mut voters = self.voters();
        voters.insert(id);
        if let Some((former, _)) = former {
            voters.remove(&former);
        }
        self.propose(ChangeMembers::ReplaceAllVoters(voters), false).await
    }

    async fn remove(&self, who: &str) -> Result<(), Stop> {
        let found = self.nodes().into_iter().find(|(id, peer)| peer.addr == who || format!("{id:x}") == who);
        let Some((id, _)) = found else {
            return Err(Response::Refused(format!("nobody in the group is reached at {who} or called so")));
        };
        let mut voters = self.voters();
        if !voters.remove(&id) {
            return self.propose(ChangeMembers::RemoveNodes(BTreeSet::from([id])), true).await;
        }
        if voters.is_empty() {
            return Err(Response::Refused(format!(
                "{who} is the last member that votes: without it there is no group"
            )));
        }
        self.propose(ChangeMembers::ReplaceAllVoters(voters), false).await
    }

    /// Asks whoever is at this address to belong to our group.
    async fn take_pledge(&self, address: &str) -> Result<Who, Stop> {
        let Some(group) = self.identity().group else {
            return Err(Response::NotNow(String::from("we belong to no group ourselves")));
        };
        if address == self.address {
            return Ok(self.who().await);
        }
        match self.lines.ask(address, &Request::Pledge { group }).await {
            Ok(Response::Who(who)) => Ok(*who),
            Ok(Response::Refused(why)) => Err(Response::Refused(why)),
            Ok(other) => Err(Response::NotNow(format!("{address} answers with {other:?}"))),
            Err(trouble) => Err(Response::NotNow(format!("{address} is not reached: {trouble:?}"))),
        }
    }

    async fn propose(&self, change: ChangeMembers<MemberId, Peer>, retain: bool) -> Result<(), Stop> {
        let changed = self.raft.change_membership(change, retain).await;
        changed.map(|_| ()).map_err(|error| self.stopped(error))
    }

    fn stopped(&self, error: RaftError<MemberId, ClientWriteError<MemberId, Peer>>) -> Stop {
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => self.elsewhere(forward),
            error => Response::NotNow(error.to_string()),
        }
    }
}
