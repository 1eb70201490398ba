//! What clients of a load balancer see through failovers, and what is executed where.

use super::balancer::Kind;
use super::drill::Drill;

/// What the project promises, of both.
const PLANNED: usize = 100;
const CRASHES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_every_write_is_executed_once_and_by_the_leader() {
    let report = Drill::start(Kind::Nginx).await.run(PLANNED, CRASHES).await;
    println!("nginx: {report}");
    report.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_every_write_is_executed_once_and_by_the_leader() {
    let report = Drill::start(Kind::Haproxy).await.run(PLANNED, CRASHES).await;
    println!("haproxy: {report}");
    report.judge();
}
