//! A connection: every one is opened here, and in the same way.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error};
use tenure_sql::Encryption;
use tenure_store::StoreError;
use tokio::runtime::Handle;

use crate::address::Address;
use crate::error::{no_connection, read_only, refusal};

/// How long a server is tried to be told that nobody waits for its answer any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection.
pub struct Wire {
    pub(crate) connection: Conn,
    /// Its number in the server.
    number: u64,
    address: Address,
    runtime: Handle,
}

impl Wire {
    /// To be held while the application's own work is done on it: nobody knows how long that takes.
    pub(crate) fn asking(&self) -> Asking {
        Asking { number: self.number, given_up: Some(self.address.clone()), runtime: self.runtime.clone() }
    }
}

/// A transaction of the application under way. Dropped before it was answered, the server is told to end its connection: so it holds no
/// lock for somebody who has gone. By itself, a server notices only when it answers.
pub(crate) struct Asking {
    number: u64,
    given_up: Option<Address>,
    runtime: Handle,
}

impl Asking {
    pub(crate) fn answered(mut self) {
        self.given_up = None;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(address) = self.given_up.take() else { return };
        let number = self.number;
        self.runtime.spawn(async move {
            let told = async {
                connect(&address).await?.connection.query_drop(format!("KILL {number}")).await.or(Ok(()))
            };
            if !matches!(tokio::time::timeout(FAREWELL, told).await, Ok(Ok::<(), StoreError>(()))) {
                tracing::debug!("MySQL could not be told to end a request that was given up");
            }
        });
    }
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
    let answer = connection.query_first("SELECT @@GLOBAL.read_only, CONNECTION_ID()").await;
    match answer.map_err(|error| failed(error, address))? {
        Some((false, number)) => {
            Ok(Wire { connection, number, address: address.clone(), runtime: Handle::current() })
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
