//! For people: who belongs to the group, and changing it.

use std::sync::Arc;

use tenure_core::Namespace;
use tenure_store::StoreError;

use crate::lines::Trouble;
use crate::store::RaftStore;
use crate::verbs::Question;
use crate::wire::{Change, Request, Response, Who};

/// A member of the group, as the one that leads sees it, and as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Names the life of its disk.
    pub id: String,
    /// Where the others reach it.
    pub address: String,
    /// Whether it votes.
    pub voter: bool,
    /// Whether it leads the group. That is another thing than leading an election.
    pub leads: bool,
    /// Its version, if it answers.
    pub version: Option<String>,
    /// How many entries of the log it is behind, if it answers.
    pub behind: Option<u64>,
}

impl RaftStore {
    /// Who belongs to the group.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if nobody leads it.
    pub async fn members(&self) -> Result<Vec<MemberInfo>, StoreError> {
        let leader = self.leader().await?;
        let mut members = Vec::new();
        for view in &leader.members {
            let who = self.who(&view.address).await.ok().filter(|who| who.id == view.id);
            let applied = who.as_ref().map(|who| who.log.applied.unwrap_or_default());
            members.push(MemberInfo {
                id: format!("{:x}", view.id),
                address: view.address.clone(),
                voter: view.voter,
                leads: view.id == leader.id,
                version: who.map(|who| who.version),
                behind: applied.map(|applied| leader.log.applied.unwrap_or_default().saturating_sub(applied)),
            });
        }
        Ok(members)
    }

    /// Gives a vote to whoever is reached there: a process that was started with that address and an empty
    /// directory, and waits.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if it is not reached, or nobody leads the group.
    pub async fn add(&self, address: &str) -> Result<(), StoreError> {
        self.change(Change::Add { address: address.to_owned() }).await
    }

    /// Takes somebody out of the group, named by address or id. It may be dead.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if there is no such member, or no other.
    pub async fn remove(&self, who: &str) -> Result<(), StoreError> {
        self.change(Change::Remove { who: who.to_owned() }).await
    }

    /// Has the member at this address write a snapshot now; every member, without one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if one of them is not reached.
    pub async fn snapshot(&self, address: Option<&str>) -> Result<(), StoreError> {
        let addresses = match address {
            Some(address) => vec![address.to_owned()],
            None => self.members().await?.into_iter().map(|member| member.address).collect(),
        };
        for address in addresses {
            match self.ask_at(&address, Request::Snapshot).await? {
                Response::Done => {}
                other => {
                    return Err(StoreError::unavailable(format!("{address} writes no snapshot: {other:?}")));
                }
            }
        }
        Ok(())
    }

    /// How many entries were ever written to the group's log.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if nobody leads it.
    pub async fn log_length(&self) -> Result<u64, StoreError> {
        Ok(self.leader().await?.log.last.unwrap_or_default())
    }

    async fn change(&self, change: Change) -> Result<(), StoreError> {
        match self.ask(Request::Change(change)).await? {
            Response::Done => Ok(()),
            other => Err(StoreError::misconfigured(format!("the group answers with {other:?}"))),
        }
    }

    /// How the member at this address sees the group.
    pub(crate) async fn who(&self, address: &str) -> Result<Who, StoreError> {
        match self.ask_at(address, Request::Who).await? {
            Response::Who(who) => Ok(*who),
            other => Err(StoreError::unavailable(format!("{address} answers with {other:?}"))),
        }
    }

    /// How the member that leads sees the group.
    pub(crate) async fn leader(&self) -> Result<Who, StoreError> {
        // A question that only the one that leads answers; so whoever did is asked who it is.
        let (namespace, question) = (Namespace::default(), Question::Elections);
        self.ask(Request::Ask { namespace, question }).await?;
        let leader =
            self.group.leader().ok_or_else(|| StoreError::unavailable("no member leads the group"))?;
        self.who(&leader).await
    }

    async fn ask_at(&self, address: &str, request: Request) -> Result<Response, StoreError> {
        let (group, address) = (Arc::clone(&self.group), address.to_owned());
        let asked = async move {
            group.ask_one(&address, &request).await.map_err(|trouble| match trouble {
                Trouble::NotSent(error) => {
                    StoreError::unavailable(format!("{address} is not reached: {error}"))
                }
                Trouble::Unanswered(error) => StoreError::indeterminate(format!("{address}: {error}")),
            })
        };
        self.engine.run(asked).await
    }
}
