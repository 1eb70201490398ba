//! What each failure means for the caller.

use tenure_store::StoreError;
use zookeeper_client::Error;

/// Over whose connection something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The store's own, on which nothing rests.
    Store,
    /// A session's: when it is over, so is the session.
    Session,
}

const GONE: &str = "Tenure's znodes are gone or were changed; stop all nodes, restore them, and start again";
const RIGHTS: &str = "check user and password in the store URL, and the ACLs below the base path \
                      (docs/stores/zookeeper.md)";

const HANDSHAKE: &str = "; if the servers are there: is this their secureClientPort, are their certificates for \
                         these hosts and signed by sslrootcert, and do they want one of ours (sslcert, sslkey)?";

/// A request failed. What the server refused was not done; what it did not answer may have been.
pub(crate) fn classify(error: &Error, over: Over) -> StoreError {
    let says = |what: &str| format!("ZooKeeper says: {error}; {what}");
    match error {
        Error::SessionExpired if over == Over::Session => StoreError::SessionLost,
        // A fresh connection has taken its place.
        Error::ClientClosed if over == Over::Session => StoreError::indeterminate(error.to_string()),
        Error::SessionExpired | Error::ClientClosed => {
            StoreError::unavailable("the connection to ZooKeeper was given up, and is opened again")
        }
        Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => StoreError::misconfigured(says(RIGHTS)),
        Error::NoNode | Error::NotEmpty | Error::NodeExists | Error::NoChildrenForEphemerals => {
            StoreError::misconfigured(says(GONE))
        }
        Error::Unimplemented => {
            StoreError::misconfigured(says("Tenure needs ZooKeeper 3.6 or newer: upgrade the servers"))
        }
        Error::BadArguments(_) => StoreError::misconfigured(says("correct the store URL")),
        Error::NoHosts | Error::NotReadOnly | Error::QuotaExceeded | Error::Throttled | Error::BadVersion => {
            StoreError::unavailable(error.to_string())
        }
        _ => StoreError::indeterminate(error.to_string()),
    }
}

/// There is no connection to any of these places: nothing was asked.
pub(crate) fn no_connection(error: &Error, hosts: &str, encrypted: bool) -> StoreError {
    // The driver keeps to itself why a handshake failed.
    let perhaps = if encrypted { HANDSHAKE } else { "" };
    match classify(error, Over::Session) {
        known @ (StoreError::Misconfigured(_) | StoreError::SessionLost) => known,
        _ => StoreError::unavailable(format!("cannot reach ZooKeeper at {hosts}: {error}{perhaps}")),
    }
}

/// A znode holds what Tenure did not write.
pub(crate) fn foreign(path: &str, problem: &str) -> StoreError {
    StoreError::misconfigured(format!("the znode {path} was not written by Tenure: {problem}; {GONE}"))
}
