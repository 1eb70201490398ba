//! A leader in a network of its own, whose packets are lost on their way to the server, or back, or both.

use std::net::Ipv4Addr;

use crate::common::{Witness, brief, by_hand, calm, lead, renewals, soon, stand, start, until};
use tenure::Reason;
use tenure_store::clock;
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::lan::{Lan, Machine};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::Postgres;
use tokio::runtime::{Builder, Handle};

/// Two machines: one with the server and a candidate, and one with the leader that is cut off.
fn cut_off(cut: fn(&Lan, &Machine)) {
    let lan = Lan::new(2);
    let (here, there) = (lan.machines()[0].clone(), lan.machines()[1].clone());
    let mut far = Builder::new_multi_thread();
    let far = there.within(move || far.worker_threads(1).enable_all().build().unwrap());
    here.clone().within(move || {
        let near = Builder::new_current_thread().enable_all().build().unwrap();
        near.block_on(is_succeeded(here.address(), far.handle(), || cut(&lan, &there), || lan.heal()));
    });
}

async fn is_succeeded(here: Ipv4Addr, there: &Handle, cut: impl FnOnce(), heal: impl FnOnce()) {
    let server = Postgres::start();
    // Passes everything: the server itself listens on the loopback only.
    let way = Proxy::at(here, server.port());
    let url = format!("postgres://postgres@{here}:{}/postgres?sslmode=disable", way.port());
    let far = there.spawn(async move { start(brief("far"), &url).await }).await.unwrap();
    let near = start(calm("near"), &server.url()).await;
    let first = lead(&far).await;
    let first_watch = Witness::of(&far, &first);
    let successor = stand(&near);
    let person = by_hand(&server.url()).await;
    until(&person, "SELECT EXISTS (SELECT 1 FROM tenure.candidates)").await;
    let due = far.held().now().until;
    cut();
    assert_eq!(soon(first.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    let second = soon(successor).await.unwrap();
    let second_watch = Witness::of(&near, &second);
    // What the kernels kept sending arrives now, late.
    heal();
    drop(first);
    let third = stand(&far);
    renewals(&near, 3).await;
    assert!(!third.is_finished());
    soon(second.resign()).await.unwrap();
    let third = soon(third).await.unwrap();
    let told = [first_watch.tell(), second_watch.tell(), Witness::of(&far, &third).tell()];
    assert_eq!(check_leaderships(&told), []);
    assert_eq!(told.map(|one| one.term), [1, 2, 3]);
}

#[test]
fn a_leader_whose_network_is_cut_is_succeeded_without_overlap_and_stands_again_when_it_is_healed() {
    cut_off(|lan, far| lan.part(&[far]));
}

#[test]
fn a_leader_that_is_not_heard_is_succeeded_without_overlap_and_stands_again_when_it_is_healed() {
    cut_off(|_, far| far.mute());
}

#[test]
fn a_leader_that_hears_nothing_is_succeeded_without_overlap_and_stands_again_when_it_is_healed() {
    cut_off(|_, far| far.deafen());
}
