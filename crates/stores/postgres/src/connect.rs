//! A connection: every one is opened here, and in the same way.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio_postgres::config::Host;
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification};

use crate::address::Address;
use crate::error::no_connection;
use crate::tls;

/// A connection. It is driven by the runtime on which it was opened, and closed when dropped: also over a
/// request, whose answer the driver would wait for otherwise.
pub struct Wire {
    pub(crate) client: Client,
    driver: AbortHandle,
    unreplicated: Arc<AtomicBool>,
}

impl Wire {
    /// What was answered on this connection since this was asked last was committed, and perhaps not
    /// replicated: whoever waited for a synchronous standby was told to wait no longer. To be asked after
    /// each commit.
    pub(crate) fn replicated(&self) -> Result<(), StoreError> {
        if self.unreplicated.swap(false, Ordering::AcqRel) {
            return Err(StoreError::indeterminate(
                "PostgreSQL has committed it, but its wait for a synchronous standby was cancelled: a failover \
                 may undo it",
            ));
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Opens a connection, and has the current runtime drive it. What the server tells on its own goes to
/// `news`, until nobody is left to hear it; then the connection ends.
pub(crate) async fn connect(
    address: &Address,
    news: Option<UnboundedSender<Notification>>,
) -> Result<Wire, StoreError> {
    if let Some(tls) = &address.tls {
        match address.config.connect(tls.0.clone()).await {
            Ok((client, connection)) => return Ok(wire(client, connection, news)),
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
    Ok(wire(client, connection, news))
}

fn wire<S, T>(
    client: Client,
    connection: Connection<S, T>,
    news: Option<UnboundedSender<Notification>>,
) -> Wire
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unreplicated = Arc::new(AtomicBool::new(false));
    let driver = tokio::spawn(drive(connection, news, Arc::clone(&unreplicated))).abort_handle();
    Wire { client, driver, unreplicated }
}

async fn drive<S, T>(
    mut connection: Connection<S, T>,
    news: Option<UnboundedSender<Notification>>,
    unreplicated: Arc<AtomicBool>,
) where
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
            // It comes before the end of the answer that it is about, so whoever waits for that finds it.
            (Ok(AsyncMessage::Notice(notice)), _) if is_of_a_wait_that_was_cancelled(&notice) => {
                unreplicated.store(true, Ordering::Release);
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
        }
    }
}

/// "canceling wait for synchronous replication …": a mere warning, in the language of the server. Where in
/// its source it comes from is the same in all.
fn is_of_a_wait_that_was_cancelled(notice: &DbError) -> bool {
    notice.routine() == Some("SyncRepWaitForLSN")
}

/// Where it was tried, for people.
pub(crate) fn places(address: &Address) -> String {
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
