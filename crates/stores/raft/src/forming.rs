//! How a group begins, and how a member comes to belong to it.
//!
//! A group is founded once, by the member whose address comes first among those that the URL names, and only
//! when all of them are up, none of them belongs to a group, and all have promised to belong to this one. So
//! there are never two groups of the same members, and no member is needed twice afterwards: whoever comes
//! later, or comes back without its disk, finds a member that belongs to the group, and asks to be let in.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lines::Lines;
use crate::member::Member;
use crate::types::Peer;
use crate::wire::{Change, Request, Response, Who};

/// How often somebody who is not let in asks again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Returns when the member belongs to the group, and the group knows where it is.
pub(crate) async fn settle(member: &Member, peers: &[String], heartbeat: Duration) {
    loop {
        let known = if member.is_initialised().await {
            seated(member, peers).await
        } else {
            apply(member, peers).await
        };
        match known {
            Ok(()) => return,
            Err(Wait::Others(why)) => {
                tracing::debug!(member = %member.address, %why, "not settled yet");
                tokio::time::sleep(heartbeat).await;
            }
            Err(Wait::Someone(why)) => {
                tracing::warn!(member = %member.address, %why, "not let into the group");
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }
}

/// Why it is not settled yet.
enum Wait {
    /// The others are not ready.
    Others(String),
    /// A human has to do something.
    Someone(String),
}

/// It has a log: the group knows it. But does it know where it is now?
async fn seated(member: &Member, peers: &[String]) -> Result<(), Wait> {
    let who = member.who().await;
    let here = |view: &crate::wire::MemberView| view.id == who.id && view.address == who.address;
    if who.members.iter().any(here) {
        return Ok(());
    }
    let known: Vec<String> = who.members.into_iter().map(|view| view.address).collect();
    announce(member, known.iter().chain(peers)).await
}

/// Tells the member that leads where we are. Whoever is asked knows who leads; and that may be this member
/// itself, from before it was started again: then it decides, and all others look for it where it was.
async fn announce(member: &Member, peers: impl Iterator<Item = &String>) -> Result<(), Wait> {
    let settle =
        Request::Change(Change::Settle { id: member.identity().id, address: member.address.clone() });
    let mut next: Vec<String> = peers.filter(|peer| **peer != member.address).cloned().collect();
    next.push(member.address.clone());
    let mut why = String::from("nobody of the group is reached");
    let mut asked = 0;
    while let Some(peer) = next.pop() {
        asked += 1;
        if asked > 20 {
            break;
        }
        let answer = match peer == member.address {
            true => Ok(member.answer(settle.clone()).await),
            false => member.lines.ask(&peer, &settle).await,
        };
        match answer {
            Ok(Response::Done) => return Ok(()),
            Ok(Response::Elsewhere { leader: Some(leader) }) if leader != peer => next.push(leader),
            Ok(Response::Refused(why)) => return Err(Wait::Someone(why)),
            Ok(Response::NotNow(not) | Response::Unknown(not)) => why = not,
            Ok(_) => why = format!("{peer} knows of nobody who leads"),
            Err(trouble) => why = format!("{peer} is not reached: {trouble:?}"),
        }
    }
    Err(Wait::Others(why))
}

/// It has no log: it founds a group, or waits to be let into one.
async fn apply(member: &Member, peers: &[String]) -> Result<(), Wait> {
    let mut others = BTreeMap::new();
    for peer in peers.iter().filter(|peer| **peer != member.address) {
        others.insert(peer.clone(), ask_who(&member.lines, peer).await);
    }
    let grouped = |who: &Result<Who, String>| who.as_ref().is_ok_and(|who| who.initialised);
    if others.values().any(grouped) {
        announce(member, others.keys()).await?;
        // Let in; the log comes in a moment.
        return Err(Wait::Others(String::from("waiting for the log")));
    }
    if peers.first() != Some(&member.address) {
        return Err(Wait::Others(format!("waiting for {} to found the group", peers[0])));
    }
    if let Some((peer, Err(why))) = others.iter().find(|(_, who)| who.is_err()) {
        return Err(Wait::Others(format!("waiting for {peer}: {why}")));
    }
    found(member, others.into_keys().collect()).await
}

async fn ask_who(lines: &Lines, peer: &str) -> Result<Who, String> {
    match lines.ask(peer, &Request::Who).await {
        Ok(Response::Who(who)) => Ok(*who),
        Ok(other) => Err(format!("{other:?}")),
        Err(trouble) => Err(format!("{trouble:?}")),
    }
}

/// Founds the group, once all have promised to belong to it.
async fn found(member: &Member, others: Vec<String>) -> Result<(), Wait> {
    let group = match member.identity().group {
        Some(group) => group,
        None => {
            let random =
                || getrandom::u64().map(u128::from).map_err(|error| Wait::Someone(error.to_string()));
            random()? << 64 | random()?
        }
    };
    let mut members = BTreeMap::new();
    let ours = member.pledge(group).await;
    let Response::Who(us) = ours else { return Err(Wait::Others(format!("{ours:?}"))) };
    members.insert(us.id, Peer::new(member.address.clone()));
    for peer in others {
        match member.lines.ask(&peer, &Request::Pledge { group }).await {
            Ok(Response::Who(who)) if !who.initialised => {
                members.insert(who.id, Peer::new(peer));
            }
            other => return Err(Wait::Others(format!("{peer} makes no promise: {other:?}"))),
        }
    }
    tracing::info!(group = format!("{group:032x}"), members = members.len(), "founding the group");
    member.raft.initialize(members).await.map_err(|error| Wait::Others(error.to_string()))
}
