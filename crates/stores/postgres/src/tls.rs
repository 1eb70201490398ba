//! Encryption, as the driver wants it.

use std::fmt;

use tenure_sql::{Encryption, is_local};
use tenure_store::{StoreError, UrlError};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What encrypts connections.
#[derive(Clone)]
pub(crate) struct Tls(pub MakeRustlsConnect);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads whom to trust; `None`: there is nothing to encrypt with, and no need to.
    pub(crate) fn of(encryption: &Encryption) -> Result<Option<Self>, StoreError> {
        let Some(trusted) = encryption.trusted()? else { return Ok(None) };
        Ok(Some(Self(MakeRustlsConnect::new(trusted.config()?))))
    }
}

/// From `sslmode` and `sslrootcert`, and where the server is.
pub(crate) fn asked(mode: Option<&str>, roots: Option<&str>, hosts: &[Host]) -> Result<Encryption, UrlError> {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => is_local(name),
    };
    Encryption::asked(mode, roots, hosts.iter().all(local))
}

/// The same for the driver.
pub(crate) fn mode(encryption: &Encryption) -> SslMode {
    match encryption {
        encryption if encryption.is_off() => SslMode::Disable,
        encryption if encryption.is_optional() => SslMode::Prefer,
        _ => SslMode::Require,
    }
}

/// What is wrong with the encryption of a connection, if that is why there is none.
pub(crate) fn problem(error: &tokio_postgres::Error) -> Option<StoreError> {
    // The driver has no other way to say it.
    let cause = std::error::Error::source(error);
    if cause.is_some_and(|cause| cause.to_string() == "server does not support TLS") {
        return Some(Encryption::not_offered("set ssl = on"));
    }
    Encryption::problem(error)
}
