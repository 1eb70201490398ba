//! A service of several replicas: every one of them answers reads, only the leader takes orders.
//!
//! `cargo run -p tenure-http --example replica -- alpha 127.0.0.1:8001`, and the same in two more terminals
//! with `beta` at 8002 and `gamma` at 8003. Then, to any of them:
//!
//! `curl -L -d tea http://127.0.0.1:8003/orders` and `curl http://127.0.0.1:8002/orders`

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::routing::get;
use tenure::{Leadership, Node, Term};
use tenure_http::leader_only::{LeaderOnlyLayer, Mode, Rules};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(id), Some(at)) = (words.next(), words.next()) else {
        return Err("usage: replica ID ADDRESS, such as: replica alpha 127.0.0.1:8001".into());
    };
    let directory = std::env::temp_dir().join("tenure-replicas");
    std::fs::create_dir_all(&directory)?;
    println!("{id} serves http://{at}/orders");
    serve(&id, TcpListener::bind(at).await?, directory).await
}

/// One replica. The directory is what all of them share: the election, and the orders.
pub async fn serve(id: &str, listener: TcpListener, directory: PathBuf) -> Result<(), Box<dyn Error>> {
    let store = tenure::connect(format!("sqlite:{}", directory.join("tenure.db").display())).await?;
    let address = format!("http://{}", listener.local_addr()?);
    let node = Node::builder(id).ttl(Duration::from_secs(2)).address(address).start(store).await?;
    let election = node.election("orders")?;

    let leader_only = LeaderOnlyLayer::new(election.gate()).only(Rules::writes()).elsewhere(Mode::Redirect);
    let app = Router::new()
        .route("/orders", get(list).post(order))
        .with_state(directory.join("orders.txt"))
        .layer(leader_only);

    let leading = election.lead(async |leadership: Leadership| {
        println!("leading under term {}", leadership.term());
        let reason = leadership.lost().await;
        println!("leading no more: {reason}");
        Ok::<_, std::convert::Infallible>(())
    });
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        ended = leading => ended?,
    }
    Ok(())
}

/// Every replica answers this.
async fn list(State(orders): State<PathBuf>) -> String {
    std::fs::read_to_string(orders).unwrap_or_default()
}

/// Only the leader gets here. The term goes where the order goes, so that everybody can tell under which
/// leader it was taken.
async fn order(
    State(orders): State<PathBuf>,
    Extension(term): Extension<Term>,
    what: String,
) -> Result<String, (StatusCode, String)> {
    let line = format!("{term} {what}\n");
    let file = OpenOptions::new().create(true).append(true).open(orders);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(line)
}
