//! Encryption of connections: whether, and whom to trust.
//!
//! Wherever TLS is used, the server's certificate and its name are verified: there is no mode that encrypts
//! and does not look. Without a word in the URL, connections that leave the machine are encrypted.
//!
//! The roots are those of the system (`rustls-native-certs`): databases are most often behind a company's
//! own authority, which is known there, and not among those that browsers trust (`webpki-roots`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tenure_store::{StoreError, UrlError};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not at all.
    Never,
    /// If the server can, and its certificate is good. Only ever on the machine itself.
    IfPossible,
    /// Or there is no connection.
    Always,
}

/// What the URL says about encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encryption {
    mode: Mode,
    /// Trusted instead of the system's roots.
    roots: Option<PathBuf>,
}

impl Encryption {
    /// From `sslmode` and `sslrootcert`, and where the server is.
    pub(crate) fn asked(mode: Option<&str>, roots: Option<&str>, hosts: &[Host]) -> Result<Self, UrlError> {
        let local = hosts.iter().all(is_local);
        let mode = match mode {
            // Whoever names whom to trust wants to be sure.
            None if local && roots.is_none() => Mode::IfPossible,
            None | Some("require" | "verify-full") => Mode::Always,
            // Whoever can cut a connection could otherwise also take its encryption away.
            Some("prefer") if !local => Mode::Always,
            Some("prefer") => Mode::IfPossible,
            Some("disable") => Mode::Never,
            Some(other) => {
                return Err(UrlError::BadParameter {
                    name: "sslmode",
                    value: other.to_owned(),
                    problem: String::from(
                        "it is disable, prefer, require or verify-full, and all but the first verify certificate and host",
                    ),
                    example: "sslmode=verify-full",
                });
            }
        };
        match roots {
            Some(file) if mode == Mode::Never => Err(UrlError::BadParameter {
                name: "sslrootcert",
                value: file.to_owned(),
                problem: String::from("with sslmode=disable nobody is asked for a certificate"),
                example: "sslmode=verify-full&sslrootcert=/etc/tenure/root.crt",
            }),
            roots => Ok(Self { mode, roots: roots.map(PathBuf::from) }),
        }
    }

    /// The same for the driver.
    pub(crate) const fn mode(&self) -> SslMode {
        match self.mode {
            Mode::Never => SslMode::Disable,
            Mode::IfPossible => SslMode::Prefer,
            Mode::Always => SslMode::Require,
        }
    }

    /// Whether a connection without it will do.
    pub(crate) fn is_optional(&self) -> bool {
        self.mode == Mode::IfPossible
    }

    /// Reads whom to trust; `None`: there is nothing to encrypt with, and no need to.
    pub(crate) fn connector(&self) -> Result<Option<Tls>, StoreError> {
        if self.mode == Mode::Never {
            return Ok(None);
        }
        // Which cryptography a process uses is for its application to say, and only once.
        let Some(provider) = CryptoProvider::get_default() else {
            return match self.mode {
                Mode::Always => Err(StoreError::misconfigured(
                    "an encrypted connection needs a rustls provider, and this process has installed none; call \
                     `rustls::crypto::aws_lc_rs::default_provider().install_default()` first thing in `main`, or \
                     say sslmode=disable in the store URL if the network is trusted",
                )),
                _ => Ok(None),
            };
        };
        let roots = match &self.roots {
            Some(file) => from_file(file)?,
            None => from_system(),
        };
        if roots.is_empty() {
            return match self.mode {
                Mode::Always => Err(StoreError::misconfigured(
                    "this system trusts nobody, so no server can be verified; install ca-certificates, or name the \
                     server's root with sslrootcert=FILE in the store URL",
                )),
                _ => Ok(None),
            };
        }
        let config = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                StoreError::misconfigured(format!("the rustls provider cannot do TLS: {error}"))
            })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(Tls(MakeRustlsConnect::new(config))))
    }
}

/// What encrypts connections.
#[derive(Clone)]
pub(crate) struct Tls(pub MakeRustlsConnect);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Whether connections to it stay on this machine.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            name.eq_ignore_ascii_case("localhost")
                || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn from_file(file: &Path) -> Result<RootCertStore, StoreError> {
    let shown = file.display();
    let wrong = |problem: String| {
        StoreError::misconfigured(format!(
            "the root certificate `{shown}` of the store URL cannot be used: {problem}; sslrootcert names a PEM file"
        ))
    };
    let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong(String::from("there is no certificate in it")));
    }
    Ok(roots)
}

fn from_system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a root certificate of this system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}

/// What is wrong with the encryption of a connection, if that is why there is none.
pub(crate) fn problem(error: &tokio_postgres::Error) -> Option<StoreError> {
    let mut cause = std::error::Error::source(error);
    while let Some(current) = cause {
        // An I/O error hides what it was made of from `source`.
        let inner = current.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Some(explained(error));
        }
        // The driver has no other way to say it.
        if current.to_string() == "server does not support TLS" {
            return Some(StoreError::misconfigured(
                "the server does not encrypt connections; set ssl = on there, or say sslmode=disable in the store \
                 URL if the network is trusted",
            ));
        }
        cause = current.source();
    }
    None
}

fn explained(error: &rustls::Error) -> StoreError {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return StoreError::unavailable(format!("the encrypted connection has failed: {error}"));
    };
    let (what, advice) = match reason {
        // The latter: by somebody of the same name as one who is trusted, such as a root before it was renewed.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "was signed by nobody who is trusted here",
            "name its root with sslrootcert=FILE in the store URL, or add it to the roots of this system",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("has expired", "renew it on the server, and look at the clock of this machine")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("is not valid yet", "look at the clock of this machine, and of the one that issued it")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "is for another host",
            "connect by a name that it holds, or have it issued for the one in the store URL",
        ),
        CertificateError::Revoked => ("was revoked", "replace it on the server"),
        _ => ("is not good", "replace it on the server; a certificate of a root is not one of a server"),
    };
    StoreError::misconfigured(format!("the server's certificate {what} ({error}); {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(mode: Option<&str>, host: &str) -> Mode {
        Encryption::asked(mode, None, &[Host::Tcp(host.to_owned())]).unwrap().mode
    }

    #[test]
    fn only_on_the_machine_itself_a_connection_may_be_plain_without_a_word() {
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "LOCALHOST"] {
            assert_eq!(asked(None, host), Mode::IfPossible, "{host}");
            assert_eq!(asked(Some("prefer"), host), Mode::IfPossible, "{host}");
        }
        for host in ["db.example.com", "10.0.0.1", "localhost.example.com", "128.0.0.1"] {
            assert_eq!(asked(None, host), Mode::Always, "{host}");
            assert_eq!(asked(Some("prefer"), host), Mode::Always, "{host}");
            assert_eq!(asked(Some("disable"), host), Mode::Never, "{host}");
        }
        let both = [Host::Tcp(String::from("localhost")), Host::Tcp(String::from("db"))];
        assert_eq!(Encryption::asked(None, None, &both).unwrap().mode, Mode::Always);
    }

    #[test]
    fn whoever_names_a_root_wants_encryption() {
        let local = [Host::Tcp(String::from("localhost"))];
        assert_eq!(Encryption::asked(None, Some("r.pem"), &local).unwrap().mode, Mode::Always);
        let message = Encryption::asked(Some("disable"), Some("r.pem"), &local).unwrap_err().to_string();
        assert!(message.contains("nobody is asked"), "{message}");
    }

    #[test]
    fn what_would_not_verify_is_not_offered() {
        for mode in ["verify-ca", "allow", "no", ""] {
            let message = Encryption::asked(Some(mode), None, &[]).unwrap_err().to_string();
            assert!(message.contains("disable, prefer, require or verify-full"), "{message}");
        }
    }

    #[test]
    fn a_process_without_a_provider_is_told_to_install_one() {
        // No test of this crate's own installs one.
        let remote = [Host::Tcp(String::from("db"))];
        let error = Encryption::asked(None, None, &remote).unwrap().connector().unwrap_err();
        assert!(matches!(error, StoreError::Misconfigured(_)));
        assert!(error.to_string().contains("install_default"), "{error}");
        let local = [Host::Tcp(String::from("localhost"))];
        assert!(Encryption::asked(None, None, &local).unwrap().connector().unwrap().is_none());
    }
}
