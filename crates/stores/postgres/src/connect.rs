//! A connection: every one is opened here, and in the same way.

use std::future::poll_fn;

use tenure_store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::config::Host;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification};

use crate::address::Address;
use crate::error::no_connection;
use crate::tls;

/// Opens a connection, and has the current runtime drive it. What the server tells on its own goes to
/// `news`, until nobody is left to hear it; then the connection ends.
pub(crate) async fn connect(
    address: &Address,
    news: Option<UnboundedSender<Notification>>,
) -> Result<Client, StoreError> {
    if let Some(tls) = &address.tls {
        match address.config.connect(tls.0.clone()).await {
            Ok((client, connection)) => {
                tokio::spawn(drive(connection, news));
                return Ok(client);
            }
            Err(error) => match tls::problem(&error) {
                Some(problem) if address.encryption.is_optional() => {
                    tracing::debug!(%problem, "the connection to this machine's PostgreSQL is not encrypted");
                }
                Some(problem) => return Err(problem),
                None => return Err(no_connection(error, &places(address))),
            },
        }
    }
    let opened = address.config.connect(NoTls).await;
    let (client, connection) = opened.map_err(|error| no_connection(error, &places(address)))?;
    tokio::spawn(drive(connection, news));
    Ok(client)
}

async fn drive<S, T>(mut connection: Connection<S, T>, news: Option<UnboundedSender<Notification>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match (message, &news) {
            (Ok(AsyncMessage::Notification(notification)), Some(news)) => {
                if news.send(notification).is_err() {
                    return;
                }
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
        }
    }
}

/// Where it was tried, for people.
fn places(address: &Address) -> String {
    let (hosts, ports) = (address.config.get_hosts(), address.config.get_ports());
    let place = |(index, host): (usize, &Host)| {
        let port = ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        }
    };
    hosts.iter().enumerate().map(place).collect::<Vec<_>>().join(", ")
}
