//! Encryption of connections: whether, and whom to trust.
//!
//! Wherever TLS is used, the server's certificate and its name are verified: there is no mode that encrypts
//! and does not look. Without a word in the URL, connections that leave the machine are encrypted.
//!
//! The roots are those of the system (`rustls-native-certs`): databases are most often behind a company's
//! own authority, which is known there, and not among those that browsers trust (`webpki-roots`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tenure_store::{StoreError, UrlError};

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
pub struct Encryption {
    mode: Mode,
    /// Trusted instead of the system's roots.
    roots: Option<PathBuf>,
}

impl Encryption {
    /// From `sslmode` and `sslrootcert`, and whether the server is on this machine.
    ///
    /// # Errors
    /// The parameter that is wrong.
    pub fn asked(mode: Option<&str>, roots: Option<&str>, local: bool) -> Result<Self, UrlError> {
        let mode = match mode {
            // Whoever names whom to trust wants to be sure.
            None if local && roots.is_none() => Mode::IfPossible,
            None | Some("require" | "verify-full") => Mode::Always,
            // Whoever can cut a connection could otherwise also take its encryption away.
            Some("prefer") if !local => Mode::Always,
            Some("prefer") => Mode::IfPossible,
            Some("disable") => Mode::Never,
            Some(other) => {
                let problem = "it is disable, prefer, require or verify-full, and all but the first verify certificate and host";
                return Err(UrlError::parameter("sslmode", other, problem, "sslmode=verify-full"));
            }
        };
        match roots {
            Some(file) if mode == Mode::Never => Err(UrlError::parameter(
                "sslrootcert",
                file,
                "with sslmode=disable nobody is asked for a certificate",
                "sslmode=verify-full&sslrootcert=/etc/tenure/root.crt",
            )),
            roots => Ok(Self { mode, roots: roots.map(PathBuf::from) }),
        }
    }

    /// Whether connections are plain, and nothing else.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.mode == Mode::Never
    }

    /// Whether a connection without it will do.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.mode == Mode::IfPossible
    }

    /// Reads whom to trust; `None`: there is nothing to encrypt with, and no need to.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if it is needed, and this process or this machine cannot.
    pub fn trusted(&self) -> Result<Option<Trusted>, StoreError> {
        if self.mode == Mode::Never {
            return Ok(None);
        }
        // The application's choice if it has made one.
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let certificates = match &self.roots {
            Some(file) => from_file(file)?,
            None => from_system(),
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        if roots.is_empty() {
            return match self.mode {
                Mode::Always => Err(StoreError::misconfigured(
                    "this system trusts nobody, so no server can be verified; install ca-certificates, or name the \
                     server's root with sslrootcert=FILE in the store URL",
                )),
                _ => Ok(None),
            };
        }
        Ok(Some(Trusted { provider, certificates, roots }))
    }
}

/// Whom to trust, as it was read.
#[derive(Clone, Debug)]
pub struct Trusted {
    provider: Arc<CryptoProvider>,
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

impl Trusted {
    /// The root certificates.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The same for rustls.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the process's provider cannot do TLS.
    pub fn config(self) -> Result<ClientConfig, StoreError> {
        let config = ClientConfig::builder_with_provider(self.provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                StoreError::misconfigured(format!("the rustls provider cannot do TLS: {error}"))
            })?;
        Ok(config.with_root_certificates(self.roots).with_no_client_auth())
    }
}

/// Whether connections to it stay on this machine.
#[must_use]
pub fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn from_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let shown = file.display();
    let wrong = |problem: String| {
        StoreError::misconfigured(format!(
            "the root certificate `{shown}` of the store URL cannot be used: {problem}; sslrootcert names a PEM file"
        ))
    };
    let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        let used = RootCertStore::empty().add(certificate.clone());
        used.map_err(|error| wrong(error.to_string()))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(wrong(String::from("there is no certificate in it")));
    }
    Ok(certificates)
}

fn from_system() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a root certificate of this system cannot be read");
    }
    found.certs
}

impl Encryption {
    /// What is wrong with the encryption of a connection, if that is why there is none.
    #[must_use]
    pub fn problem(error: &(dyn std::error::Error + 'static)) -> Option<StoreError> {
        let mut cause = Some(error);
        while let Some(current) = cause {
            // An I/O error hides what it was made of from `source`.
            let inner = current.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            let hidden = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
            if let Some(error) = hidden.or_else(|| current.downcast_ref::<rustls::Error>()) {
                return Some(explained(error));
            }
            cause = current.source();
        }
        None
    }

    /// The server cannot do what was asked for; `setting` turns it on there.
    #[must_use]
    pub fn not_offered(setting: &str) -> StoreError {
        StoreError::misconfigured(format!(
            "the server does not encrypt connections; {setting} there, or say sslmode=disable in the store URL if \
             the network is trusted"
        ))
    }
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
        Encryption::asked(mode, None, is_local(host)).unwrap().mode
    }

    #[test]
    fn only_on_the_machine_itself_a_connection_may_be_plain_without_a_word() {
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "LOCALHOST"] {
            assert_eq!(asked(None, host), Mode::IfPossible, "{host}");
            assert_eq!(asked(Some("prefer"), host), Mode::IfPossible, "{host}");
        }
        for host in ["db.example.com", "10.0.0.1", "localhost.example.com", "128.0.0.1"] {
            assert_eq!(asked(None, host), Mode::Always, "{host}");
            assert_eq!(asked(Some("prefer"), host), Mode::Always, "{host}");
            assert_eq!(asked(Some("disable"), host), Mode::Never, "{host}");
        }
    }

    #[test]
    fn whoever_names_a_root_wants_encryption() {
        assert_eq!(Encryption::asked(None, Some("r.pem"), true).unwrap().mode, Mode::Always);
        let message = Encryption::asked(Some("disable"), Some("r.pem"), true).unwrap_err().to_string();
        assert!(message.contains("nobody is asked"), "{message}");
    }

    #[test]
    fn what_would_not_verify_is_not_offered() {
        for mode in ["verify-ca", "allow", "no", ""] {
            let message = Encryption::asked(Some(mode), None, true).unwrap_err().to_string();
            assert!(message.contains("disable, prefer, require or verify-full"), "{message}");
        }
    }

    #[test]
    fn an_application_that_installs_no_provider_can_encrypt() {
        assert!(CryptoProvider::get_default().is_none(), "no test of this crate's own installs one");
        match Encryption::asked(None, None, false).unwrap().trusted() {
            Ok(trusted) => assert!(trusted.is_some()),
            Err(error) => assert!(error.to_string().contains("ca-certificates"), "{error}"),
        }
    }
}
