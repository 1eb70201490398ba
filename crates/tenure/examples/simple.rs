//! The usual form: do something while elected. Start it twice, stop one, and watch the other.
//!
//! `cargo run --example simple -- worker-1`

use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let id = std::env::args().nth(1).unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let store = tenure::connect_default().await?;
    let node = tenure::Node::builder(id).ttl(Duration::from_secs(5)).start(store).await?;
    println!("{} stands for the election `reports`", node.id());

    let greeting = Arc::new(String::from("working"));
    let election = node.election("reports")?;
    election
        .lead(move |leadership| {
            let greeting = Arc::clone(&greeting); // the work may run several times: each has a share of its own
            async move {
                while let Ok(term) = leadership.check() {
                    println!("{greeting} under term {term}");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Ok::<_, std::io::Error>(())
            }
        })
        .await?;
    Ok(())
}
