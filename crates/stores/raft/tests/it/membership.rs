//! Who belongs to a group: one that grows, moves, shrinks, comes back; members in one process, on loopback.

use tenure_core::ElectionName;
use tenure_raft::{MemberInfo, RaftStore};
use tenure_store::{Enlistment, Options, Store, StoreError, StoreUrl};
use tenure_testkit::patience::HANG;

use crate::kit::{
    Trio, addresses, client_url, connect, directory, member_url, open, patiently, settled, term,
};

#[tokio::test]
async fn a_group_of_one_grows_to_three_and_survives_its_founder() {
    let peers = addresses(3);
    let directories = [directory(), directory(), directory()];
    let first = connect(&member_url(&peers[..1], directories[0].path(), &peers[0])).await;
    open(&first, "a").await;
    let first_term = term(&first, "a").await;
    let mut others = Vec::new();
    for number in [1, 2] {
        let member =
            connect(&member_url(&peers[..=number], directories[number].path(), &peers[number])).await;
        // It waits until it is asked in.
        patiently(async || first.add(&peers[number]).await).await;
        settled(&first, number + 1).await;
        others.push(member);
    }
    drop(first);
    let client = connect(&client_url(&peers[1..])).await;
    assert_eq!(patiently(async || client.members().await).await.len(), 3, "one of them is not reached");
    open(&others[0], "b").await;
    assert!(term(&others[0], "b").await > first_term);
}

#[tokio::test]
async fn whoever_was_not_asked_in_is_not_let_in() {
    let trio = Trio::start().await;
    settled(&trio.members[0], 3).await;
    let (stranger, directory) = (addresses(1), directory());
    let all: Vec<String> = trio.peers.iter().chain(&stranger).cloned().collect();
    let member = connect(&member_url(&all, directory.path(), &stranger[0])).await;
    // What the group has done since: the stranger had all the time to take part.
    for number in 0..20 {
        open(&trio.members[0], &format!("n{number}")).await;
    }
    assert_eq!(settled(&trio.members[0], 3).await.len(), 3);
    // But it may ask: everybody who reaches the group may.
    assert_eq!(patiently(async || member.nodes().await).await.value.len(), 20);
}

/// Takes a member out of the group; that may have happened although nobody said so.
async fn remove(client: &RaftStore, peer: &str) {
    patiently(async || match client.remove(peer).await {
        Err(StoreError::Misconfigured(gone)) if gone.to_string().contains("nobody in the group") => Ok(()),
        other => other,
    })
    .await;
}

#[tokio::test]
async fn a_machine_that_is_gone_for_good_is_replaced_by_another_and_the_group_stands_the_next_loss() {
    let mut trio = Trio::start().await;
    let client = trio.client(Options::default()).await;
    settled(&client, 3).await;
    open(&client, "a").await;
    let before = term(&client, "a").await;
    drop(trio.members.remove(2));
    let (address, directory) = (addresses(1).remove(0), directory());
    let peers = [trio.peers[0].clone(), trio.peers[1].clone(), address.clone()];
    let _newcomer = connect(&member_url(&peers, directory.path(), &address)).await;
    patiently(async || client.add(&address).await).await;
    remove(&client, &trio.peers[2]).await;
    assert!(settled(&client, 3).await.iter().any(|member| member.address == address));
    drop(trio.members.remove(0));
    let client = connect(&client_url(&peers[1..])).await;
    open(&client, "b").await;
    assert!(term(&client, "b").await > before);
}

#[tokio::test]
async fn a_member_that_is_removed_belongs_no_more_and_the_last_one_stays() {
    let trio = Trio::start().await;
    settled(&trio.members[0], 3).await;
    let client = trio.client(Options::default()).await;
    for peer in &trio.peers[..2] {
        remove(&client, peer).await;
    }
    let left = settled(&client, 1).await;
    assert_eq!(left[0].address, trio.peers[2]);
    let refused = client.remove(&trio.peers[2]).await.unwrap_err().to_string();
    assert!(refused.contains("the last member that votes"), "{refused}");
    let unknown = client.remove("127.0.0.1:1").await.unwrap_err().to_string();
    assert!(unknown.contains("nobody in the group is reached at 127.0.0.1:1"), "{unknown}");
}

#[tokio::test]
async fn a_member_that_moved_is_found_at_its_new_address_under_its_old_name() {
    moved(|member| !member.leads).await;
}

/// It leads on when it is back, and all others would look for it where it was.
#[tokio::test]
async fn a_member_that_led_and_moved_is_found_at_its_new_address() {
    moved(|member| member.leads).await;
}

async fn moved(who: impl Fn(&MemberInfo) -> bool) {
    let mut trio = Trio::start().await;
    let before = settled(&trio.members[0], 3).await;
    let name = |members: &[MemberInfo], address: &str| {
        members.iter().find(|member| member.address == address).map(|member| member.id.clone())
    };
    let old = before.iter().find(|member| who(member)).unwrap().address.clone();
    let index = trio.peers.iter().position(|peer| *peer == old).unwrap();
    drop(trio.members.remove(index));
    let new = addresses(1).remove(0);
    let url = member_url(&trio.peers, trio.directories[index].path(), &new);
    // The former process ends in a moment, and its lock with it.
    let _moved = patiently(async || RaftStore::connect(&StoreUrl::parse(&url).unwrap()).await).await;
    let after = patiently(async || {
        let members = trio.members[0].members().await.map_err(|error| error.to_string())?;
        let there = members.iter().any(|member| member.address == new && member.behind == Some(0));
        if there { Ok(members) } else { Err(format!("{members:?}")) }
    })
    .await;
    assert_eq!(name(&after, &new), name(&before, &old));
    assert_eq!(name(&after, &old), None);
}

#[tokio::test]
async fn a_snapshot_takes_the_place_of_the_log_and_a_newcomer_is_given_it() {
    let peers = addresses(2);
    let directories = [directory(), directory()];
    let first = connect(&member_url(&peers[..1], directories[0].path(), &peers[0])).await;
    // More than are kept for stragglers, in any number of entries.
    let session = open(&first, "a").await;
    for sequence in 2..700 {
        patiently(async || first.renew(session, sequence, 1).await).await;
    }
    first.snapshot(None).await.unwrap();
    let second = connect(&member_url(&peers, directories[1].path(), &peers[1])).await;
    patiently(async || first.add(&peers[1]).await).await;
    settled(&first, 2).await;
    // And it is the same state: also for the newcomer alone, from its own disk.
    assert_eq!(patiently(async || second.nodes().await).await.value.len(), 1);
    remove(&second, &peers[0]).await;
    drop(first);
    assert_eq!(patiently(async || second.nodes().await).await.value.len(), 1);
}

/// A snapshot of three parts. Documents of workers take up most room, so there are many of those.
#[tokio::test]
async fn a_newcomer_is_given_a_large_snapshot_in_parts() {
    const DOCUMENT: usize = 15 << 10;
    const DOCUMENTS: usize = (5 << 19) / DOCUMENT;
    let peers = addresses(2);
    let directories = [directory(), directory()];
    let first = connect(&member_url(&peers[..1], directories[0].path(), &peers[0])).await;
    let session = open(&first, "a").await;
    for number in 0..DOCUMENTS {
        let election = ElectionName::new(format!("e{number}")).unwrap();
        let enlistment = Enlistment { election, session, document: "x".repeat(DOCUMENT) };
        patiently(async || first.ledger().unwrap().enlist(enlistment.clone()).await).await;
    }
    // The log is short, so that the newcomer needs the snapshot: all but those that are kept for stragglers.
    for sequence in 2..600 {
        patiently(async || first.renew(session, sequence, 1).await).await;
    }
    first.snapshot(None).await.unwrap();
    patiently(async || match first.examine().await.unwrap().value.pop() {
        Some(size) if size.value.starts_with("2 MiB in the last snapshot") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let second = connect(&member_url(&peers, directories[1].path(), &peers[1])).await;
    patiently(async || first.add(&peers[1]).await).await;
    settled(&first, 2).await;
    // And it is the same state: also for the newcomer alone, from its own disk.
    remove(&second, &peers[0]).await;
    drop(first);
    let election = ElectionName::new(format!("e{}", DOCUMENTS - 1)).unwrap();
    let survey = patiently(async || second.ledger().unwrap().survey(election.clone()).await).await.value;
    assert_eq!(survey.workers[0].document.len(), DOCUMENT);
}

#[tokio::test]
async fn a_directory_is_used_by_one_member_at_a_time() {
    let (peers, directory) = (addresses(2), directory());
    let _first = connect(&member_url(&peers[..1], directory.path(), &peers[0])).await;
    let second = StoreUrl::parse(&member_url(&peers[1..], directory.path(), &peers[1])).unwrap();
    let refused = tokio::time::timeout(HANG, RaftStore::connect(&second)).await.unwrap();
    assert!(matches!(&refused, Err(StoreError::Misconfigured(_))));
    assert!(refused.err().unwrap().to_string().contains("another process uses it"));
}
