//! What clients of a load balancer see through failovers, and what is executed where.

use super::balancer::Kind;
use super::drill::Drill;

/// How many of both. The project promises that nothing is wrong in 100 and 20: `TENURE_PLANNED=100
/// TENURE_CRASHES=20`.
const PLANNED: usize = 20;
const CRASHES: usize = 4;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

async fn drill(kind: Kind) {
    let (planned, crashes) = (setting("TENURE_PLANNED", PLANNED), setting("TENURE_CRASHES", CRASHES));
    let report = Drill::start(kind).await.run(planned, crashes).await;
    println!("{kind:?}: {report}");
    report.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_every_write_is_executed_once_and_by_the_leader() {
    drill(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_every_write_is_executed_once_and_by_the_leader() {
    drill(Kind::Haproxy).await;
}
