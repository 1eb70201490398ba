//! What clients of nginx and HAProxy see of a failover: from the last write under one leader to the first under
//! the next. The drill is that of the tests.
#![allow(clippy::unwrap_used, reason = "a drill that unwraps has failed")]
#![allow(dead_code, reason = "the tests use more of the drill")]

#[path = "../tests/it/sidecar/balancer.rs"]
mod balancer;
#[path = "../tests/it/sidecar/clients.rs"]
mod clients;
#[path = "../tests/it/sidecar/cluster.rs"]
mod cluster;
#[path = "../../tenure-testkit/benches/common/mod.rs"]
mod common;
#[path = "../tests/it/sidecar/drill.rs"]
mod drill;
#[path = "../tests/it/sidecar/ledger.rs"]
mod ledger;

use std::process::ExitCode;
use std::time::Duration;

use balancer::Kind;
use common::samples::{Samples, human, show};
use common::{Bench, Outcome};
use drill::Drill;

fn main() -> ExitCode {
    common::run("balancers", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (planned, crashes) = if bench.quick { (20, 3) } else { (100, 20) };
    for kind in [Kind::Nginx, Kind::Haproxy] {
        let report = runtime.block_on(async { Drill::start(kind).await.run(planned, crashes).await });
        println!("{kind:?}: {report}");
        report.judge();
        for (what, gaps) in [("planned", &report.planned), ("crash, ttl 1 s", &report.crashed)] {
            let samples = collect(gaps);
            show(&format!("{kind:?}, {what}: without a leader, as clients see it"), &samples);
            let figure = format!("{} / {}", human(samples.percentile(50)), human(samples.percentile(99)));
            bench.tell(
                &format!("gap seen by clients of {kind:?}, {what}, p50 / p99"),
                &figure,
                &format!("{} failovers", samples.len()),
            )?;
        }
    }
    Ok(())
}

fn collect(gaps: &[Duration]) -> Samples {
    let mut samples = Samples::default();
    gaps.iter().for_each(|gap| samples.push(*gap));
    samples
}
