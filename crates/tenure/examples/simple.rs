//! The usual form: do something while elected. Start it twice, stop one, and watch the other.
//!
//! `cargo run --example simple -- worker-1`

use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let id = std::env::args().nth(1).unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let store = tenure::connect_default().await?;
    let node = tenure::Node::builder(id).ttl(Duration::from_secs(5)).start(store).await?;
    println!("{} stands for the election `reports`", node.id());

    let election = node.election("reports")?;
    election
        .lead(async |leadership: tenure::Leadership| {
            while let Ok(term) = leadership.check() {
                println!("working under term {term}");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok::<_, std::io::Error>(())
        })
        .await?;
    Ok(())
}
