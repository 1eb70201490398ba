//! A connection: every one is opened here, and in the same way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error};
use tenure_sql::Encryption;
use tenure_store::{StoreError, clock};
use tokio::runtime::Handle;

use crate::address::Address;
use crate::error::{no_connection, read_only, refusal};

/// How long a server is tried to be told that nobody waits for its answer any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection.
pub struct Wire {
    pub(crate) connection: Conn,
    address: Address,
    /// Where it leads to.
    host: (String, u16),
    /// The user lock by which its server knows it, once it has one.
    lock: Option<String>,
    runtime: Handle,
}

impl Wire {
    /// To be held while the application's own work is done on it: nobody knows how long that takes.
    pub(crate) async fn asking(&mut self) -> Result<Asking, Error> {
        let lock = match &self.lock {
            Some(lock) => lock.clone(),
            None => self.marked().await?,
        };
        let given_up = Some((self.address.clone(), self.host.clone(), lock));
        Ok(Asking { given_up, runtime: self.runtime.clone() })
    }

    /// Has it hold a user lock of a name that no other connection ever has.
    async fn marked(&mut self) -> Result<String, Error> {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        let (instant, process) = (clock::wall().as_nanos(), std::process::id());
        let lock = format!("tenure fence {instant:x}-{process:x}-{}", MARKS.fetch_add(1, Ordering::Relaxed));
        self.connection.query_drop(format!("DO GET_LOCK('{lock}', 0)")).await?;
        self.lock = Some(lock.clone());
        Ok(lock)
    }
}

/// A transaction of the application under way. Dropped before it was answered, the server is told to end its
/// connection: so it holds no lock for somebody who has gone. By itself, a server notices only when it answers.
pub(crate) struct Asking {
    given_up: Option<(Address, (String, u16), String)>,
    runtime: Handle,
}

impl Asking {
    pub(crate) fn answered(mut self) {
        self.given_up = None;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some((address, host, lock)) = self.given_up.take() else { return };
        self.runtime.spawn(async move {
            let told = tokio::time::timeout(FAREWELL, end(&address, &host, &lock)).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!("MySQL could not be told to end a request that was given up");
            }
        });
    }
}

/// Ends the connection that holds this lock. Connections are numbered by each server for itself, and anew when it is
/// started: where a failover, a proxy or a restart has put another server in the place of the one that gave the number,
/// that number is a stranger's. The lock is known only to the server that the connection leads to.
async fn end(address: &Address, host: &(String, u16), lock: &str) -> Result<(), StoreError> {
    let mut connection = open(address, host).await?;
    let holder: Option<Option<u64>> = connection
        .query_first(format!("SELECT IS_USED_LOCK('{lock}')"))
        .await
        .map_err(|e| failed(e, address))?;
    if let Some(number) = holder.flatten() {
        // It may have ended by itself.
        let _ = connection.query_drop(format!("KILL {number}")).await;
    }
    Ok(())
}

/// Opens a connection to the first host that accepts writes.
pub(crate) async fn connect(address: &Address) -> Result<Wire, StoreError> {
    let mut problem = None;
    for host in &address.hosts {
        match tokio::time::timeout(address.patience, to(address, host)).await {
            Ok(Ok(connection)) => return Ok(connection),
            // Another host may do. But one that says what is wrong with us says it for all of them.
            Ok(Err(error @ StoreError::Misconfigured(_))) => return Err(error),
            Ok(Err(error)) => problem = problem.or(Some(error)),
            Err(_) => {
                let waited = format!("there was no answer within {:?}", address.patience);
                problem = problem.or(Some(no_connection(&waited, &address.places())));
            }
        }
    }
    Err(problem.unwrap_or_else(|| no_connection("no host is named", "nowhere")))
}

async fn to(address: &Address, host: &(String, u16)) -> Result<Wire, StoreError> {
    let mut connection = open(address, host).await?;
    // A replica answers too, but what it is told is lost.
    let answer = connection.query_first("SELECT @@GLOBAL.read_only").await;
    match answer.map_err(|error| failed(error, address))? {
        Some(false) => {
            let (address, host) = (address.clone(), host.clone());
            Ok(Wire { connection, address, host, lock: None, runtime: Handle::current() })
        }
        _ => Err(read_only(&address.places())),
    }
}

async fn open(address: &Address, host: &(String, u16)) -> Result<Conn, StoreError> {
    if address.encrypts() {
        match Conn::new(address.options(host, true)).await {
            Ok(connection) => return Ok(connection),
            Err(error) => match encryption(&error) {
                Some(problem) if address.encryption.is_optional() => {
                    tracing::debug!(%problem, "the connection to this machine's MySQL is not encrypted");
                }
                Some(problem) => return Err(problem),
                None => return Err(failed(error, address)),
            },
        }
    }
    Conn::new(address.options(host, false)).await.map_err(|error| failed(error, address))
}

/// What is wrong with the encryption of a connection, if that is why there is none.
fn encryption(error: &Error) -> Option<StoreError> {
    match error {
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            Some(Encryption::not_offered("set ssl_cert and ssl_key"))
        }
        error => Encryption::problem(error),
    }
}

/// There is no connection: nothing was asked.
fn failed(error: Error, address: &Address) -> StoreError {
    match error {
        Error::Server(refused) => refusal(&refused),
        error => no_connection(&error.to_string(), &address.places()),
    }
}
