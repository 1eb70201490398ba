//! Two children that run on whichever node is elected. Start it twice, stop one, and watch the other.
//!
//! `cargo run --example supervise -- worker-1 on`
//!
//! The second word is the migration switch: `off` (with `chosen` as a third word on one node), `shadow` or
//! `on`.

use std::time::Duration;

use tenure::{Child, ChildSpec, Mode, Node, Supervise, SupervisorStatus};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let id = words.first().cloned().unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let mode: Mode = words.get(1).map_or("on", String::as_str).parse()?;
    let chosen = words.get(2).is_some_and(|word| word == "chosen");

    let mut coordinator = coordinator().mode(mode).chosen(chosen);
    if mode.elects() {
        let store = tenure::connect_default().await?;
        let node = Node::builder(id).ttl(Duration::from_secs(5)).start(store).await?;
        coordinator = coordinator.stand_for(&node.election("coordinator")?);
    }
    let supervisor = coordinator.start()?;

    let mut status = supervisor.watch();
    loop {
        println!("{}", line(&status.borrow_and_update()));
        tokio::select! {
            changed = status.changed() => changed?,
            interrupted = tokio::signal::ctrl_c() => break interrupted?,
        }
    }
    supervisor.stop().await?; // children in reverse order, then the lease
    Ok(())
}

/// The work: the poller is started when the health check is up, and stopped before it.
pub fn coordinator() -> Supervise {
    let health = ChildSpec::new("health", watch_health).start_within(Duration::from_secs(2));
    let poller = ChildSpec::new("poller", poll).stop_within(Duration::from_secs(10));
    tenure::supervise().with(health).with(poller)
}

async fn watch_health(child: Child) -> Result<(), std::io::Error> {
    tokio::time::sleep(Duration::from_millis(100)).await; // connects to what it watches
    child.ready();
    child.told_to_stop().await;
    Ok(())
}

async fn poll(child: Child) -> Result<(), std::io::Error> {
    let told = child.cancellation();
    // Whatever is polled is sent the term along, and refuses lower ones.
    while let Ok(_term) = child.check() {
        tokio::select! {
            () = told.cancelled() => break,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    Ok(())
}

/// What the supervisor does, and how its children are.
pub fn line(status: &SupervisorStatus) -> String {
    let children: Vec<String> =
        status.children.iter().map(|child| format!("{} {}", child.name, child.health)).collect();
    let term = status.term.map_or_else(String::new, |term| format!(" under term {term}"));
    format!("{}{term}: {}", status.state, children.join(", "))
}
