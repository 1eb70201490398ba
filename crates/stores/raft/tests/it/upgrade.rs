//! Members of two versions: while they are replaced one by one, and when they do not understand each other.

use tenure_core::{ElectionName, Standing};
use tenure_raft::RaftStore;
use tenure_store::{Claim, Options, Store, StoreUrl};

use crate::kit::{Trio, client_url, member_url, open, patiently, settled, term};

/// The protocol of this version.
const OURS: u16 = 3;

/// Replaces a member by one that speaks these protocols, on the same disk.
async fn replace(trio: &mut Trio, number: usize, oldest: u16, newest: u16) {
    drop(trio.members.remove(number));
    let url = member_url(&trio.peers, trio.directories[number].path(), &trio.peers[number]);
    let url = StoreUrl::parse(&url).unwrap();
    // The former process ends in a moment, and its lock with it.
    let next = patiently(async || RaftStore::connect_as(&url, oldest, newest).await).await;
    trio.members.insert(number, next);
}

#[tokio::test]
async fn a_leader_holds_while_all_members_are_replaced_by_the_next_version_one_by_one() {
    let mut trio = Trio::start().await;
    let client = trio.client(Options::default()).await;
    let session = open(&client, "holder").await;
    let claim = Claim::plain(session, ElectionName::new("held").unwrap(), 1);
    let granted = patiently(async || client.claim(claim.clone()).await).await.value;
    assert!(matches!(granted, Standing::Leading { .. }), "{granted:?}");
    for (number, sequence) in [0, 1, 2].into_iter().zip(2..) {
        replace(&mut trio, number, OURS, OURS + 1).await;
        settled(&client, 3).await;
        let renewed = patiently(async || client.renew(session, sequence, 1).await).await.value;
        assert_eq!(renewed.grants, 1, "its lease is as it was");
    }
    // Those of the next version speak among themselves, and whoever still is of the old one is understood.
    assert_eq!(patiently(async || client.claim(claim.clone()).await).await.value, granted);
    // One version back is as good as one ahead.
    replace(&mut trio, 0, OURS, OURS).await;
    settled(&client, 3).await;
}

#[tokio::test]
async fn a_member_without_a_common_protocol_takes_no_part_and_says_why() {
    let mut trio = Trio::start().await;
    let client = trio.client(Options::default()).await;
    settled(&client, 3).await;
    replace(&mut trio, 2, 7, 9).await;
    let why = &format!("speaks protocol {OURS}, and we protocols 7 to 9; upgrade one version at a time");
    let refused = trio.members[2].nodes().await.unwrap_err().to_string();
    assert!(refused.contains(why), "{refused}");
    let stranger = StoreUrl::parse(&client_url(&trio.peers[..2])).unwrap();
    let refused = RaftStore::connect_as(&stranger, 7, 9).await.err().unwrap().to_string();
    assert!(refused.contains(why), "{refused}");
    // The others go on without it, and with it again once it is what it was.
    open(&client, "a").await;
    let before = term(&client, "a").await;
    replace(&mut trio, 2, OURS, OURS).await;
    settled(&client, 3).await;
    open(&client, "b").await;
    assert!(term(&client, "b").await > before);
}
