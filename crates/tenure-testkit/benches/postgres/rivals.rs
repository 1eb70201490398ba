//! What people use today, beside Tenure in the same run: facts to compare with, not verdicts.

use std::time::Duration;

use tenure_testkit::server::{Etcd, Postgres};

use crate::common::cast::{Cast, Peer, Way};
use crate::common::samples::{Samples, human, show};
use crate::common::{Bench, Outcome};
use crate::peers::etcd::EtcdElection;
use crate::peers::{Part, advisory};

/// Of etcd's lease. The lock has none.
const TTL: Duration = Duration::from_secs(10);
/// etcd lets a watch that is new catch up every 100 ms, and tells it of changes at once only afterwards.
const CATCH_UP: Duration = Duration::from_millis(250);

/// The hand-over of an advisory lock: to one who waits for it in the server, and to one who polls.
pub fn advisory_lock(bench: &Bench, rounds: usize) -> Outcome<()> {
    let server = Postgres::start_with(&[]);
    for (name, part) in [
        ("advisory lock, one who waits in the server", advisory::WAITS),
        ("advisory lock, one who polls every 100 ms", advisory::POLLS),
    ] {
        let url = Box::new(|port| server.url_by(port));
        hand_over(bench, &Part { name, part, server: server.port(), url }, rounds)?;
    }
    Ok(())
}

/// The hand-over of etcd's own election, in Go, on a server of its own.
pub fn etcd_election(bench: &Bench, rounds: usize) -> Outcome<()> {
    let server = Etcd::start();
    hand_over(bench, &EtcdElection::on(server.port()), rounds)
}

fn hand_over(bench: &Bench, peer: &dyn Peer, rounds: usize) -> Outcome<()> {
    let mut cast = Cast::open(peer, TTL, Way::Direct, 2)?;
    let mut gaps = Samples::default();
    while gaps.len() < rounds {
        // Until the other waits; and pollers are met at any instant of their pause.
        std::thread::sleep(CATCH_UP + advisory::POLL / 7 * u32::try_from(gaps.len() % 7)?);
        gaps.push(cast.troupe.hand_over(&mut cast.leader)?);
    }
    println!("\n{}", peer.name());
    show("called → the successor leads", &gaps);
    bench.tell(&format!("{}: hand-over, p50", peer.name()), &human(gaps.percentile(50)), "–")
}
