//! Disks: lost, full, damaged at the end of the log.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use tenure::raft::{MemberInfo, RaftStore};
use tenure::{NodeId, NodeInfo, SessionId, Store as _};
use tenure_store::Open;
use tenure_testkit::patience::{patiently, until};
use tenure_testkit::server::Disk;

use super::crew::Crew;

const TTL: Duration = Duration::from_secs(2);

#[test]
fn a_member_that_lost_its_disk_comes_back_under_another_name_in_its_old_place() {
    let mut crew = Crew::of_three(TTL);
    let leader = crew.leader_above(0);
    let other = (0..3).find(|&number| number != leader.machine).unwrap();
    let address = crew.address(other);
    let before = crew.members();
    crew.kill(other);
    std::fs::remove_dir_all(crew.place(&format!("data{other}"))).unwrap();
    crew.start(other);
    let old = before.iter().find(|member| member.address == address).unwrap().id.clone();
    let is_new = |member: &MemberInfo| {
        member.address == address && member.id != old && member.voter && member.behind == Some(0)
    };
    until("the old name is gone, and the new one votes", || {
        let members = crew.members();
        members.len() == 3 && members.iter().any(is_new)
    });
    crew.verdict();
}

#[test]
fn a_member_whose_log_is_damaged_at_its_end_does_not_vote_with_what_is_left() {
    let mut crew = Crew::of_three(TTL);
    let leader = crew.leader_above(0);
    let other = (0..3).find(|&number| number != leader.machine).unwrap();
    crew.kill(other);
    let path = crew.place(&format!("data{other}/raft.redb"));
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    // The header stays; of everything behind it, every page that is in use is damaged.
    let size = file.metadata().unwrap().len();
    let mut page = vec![0; 4096];
    for at in (4096..size).step_by(4096) {
        file.read_exact_at(&mut page, at).unwrap();
        if page.iter().any(|byte| *byte != 0) {
            page.iter_mut().skip(64).for_each(|byte| *byte = !*byte);
            file.write_all_at(&page, at).unwrap();
        }
    }
    let pid = crew.start(other);
    let said = crew.wait("it says what is wrong", |events| {
        events.iter().find(|event| event.is("failed", pid)).map(|event| event.text("message").to_owned())
    });
    assert!(said.contains("is damaged") && said.contains("move the directory away"), "{said}");
    crew.kill(other);
    crew.verdict();
}

/// Has the group write until this member takes part no more.
async fn write_until_it_fails(store: RaftStore, address: String) {
    for number in 1.. {
        let session = SessionId::from_u128(number);
        let node = NodeInfo::new(NodeId::new(format!("ballast-{number}")).unwrap(), "x".repeat(4000));
        let ttl = Duration::from_secs(600);
        let open = Open { session, sequence: 1, ttl, node, supersedes: None, over: None };
        patiently(async || store.open(open.clone()).await).await;
        let members = patiently(async || store.members().await).await;
        let behind = |member: &MemberInfo| member.behind.is_none_or(|behind| behind > 20);
        if members.iter().any(|member| member.address == address && behind(member)) {
            return;
        }
    }
}

#[test]
fn a_member_whose_disk_is_full_takes_no_part_and_the_group_goes_on_until_there_is_room_again() {
    let mut crew = Crew::nobody(TTL);
    let data = crew.place("data0");
    std::fs::create_dir(&data).unwrap();
    let disk = Disk::mounted(&data, 4);
    for machine in 0..3 {
        crew.start(machine);
    }
    crew.leader_above(0);
    disk.fill();
    let address = crew.address(0);
    let full = address.clone();
    crew.ask(async move |store| write_until_it_fails(store, full).await);
    // The group decides without it, and the candidate on its machine asks the others.
    assert_ne!(crew.head(), 0);
    disk.free();
    let caught_up =
        |member: &MemberInfo| member.address == address && member.behind.is_some_and(|behind| behind < 5);
    until("it has caught up", || crew.members().iter().any(caught_up));
    crew.verdict();
}
