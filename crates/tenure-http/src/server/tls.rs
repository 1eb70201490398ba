//! TLS, and who may come in by a certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::certificate::{Certificate, certificates};

/// How a server proves who it is, and perhaps demands the same of its clients.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(super) certificate: Arc<Certificate>,
    pub(super) config: Arc<ServerConfig>,
    /// Who vouches for clients.
    roots: Option<Arc<RootCertStore>>,
}

/// What is wrong with keys and certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("`{path}` holds no {what} in PEM: {problem}")]
    File {
        /// Which file.
        path: String,
        /// What was looked for.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// They do not go together.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(String),
}

impl TlsError {
    pub(super) fn file(path: &Path, what: &'static str, problem: impl ToString) -> Self {
        Self::File { path: path.display().to_string(), what, problem: problem.to_string() }
    }

    pub(super) fn unusable(problem: impl ToString) -> Self {
        Self::Unusable(problem.to_string())
    }
}

impl Tls {
    /// With this certificate (and those that vouch for it) and its key. With `ca`, only clients are let
    /// in whose certificate it has signed. Certificate and key are read again when their files have changed,
    /// for as long as they are served with; `ca` is read once.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_files(certificate: &Path, key: &Path, ca: Option<&PathBuf>) -> Result<Self, TlsError> {
        let certificate = Certificate::from_files(certificate, key)?;
        let roots = ca.map(|ca| vouching(ca)).transpose()?;
        let builder = ServerConfig::builder();
        let builder = match &roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder(Arc::clone(roots)).build();
                builder.with_client_cert_verifier(verifier.map_err(TlsError::unusable)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::clone(&certificate) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { certificate, config: Arc::new(config), roots })
    }

    /// How a node speaks to others of its kind, where they demand a certificate of each other: it shows its
    /// own, and trusts whom it lets in. `None` where they do not.
    #[must_use]
    pub fn among_nodes(&self) -> Option<Arc<ClientConfig>> {
        let roots = Arc::clone(self.roots.as_ref()?);
        let builder = ClientConfig::builder().with_root_certificates(roots);
        Some(Arc::new(builder.with_client_cert_resolver(Arc::clone(&self.certificate) as _)))
    }
}

fn vouching(ca: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let text = std::fs::read(ca).map_err(|error| TlsError::file(ca, "certificate", error))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&text, ca)? {
        roots.add(certificate).map_err(TlsError::unusable)?;
    }
    Ok(Arc::new(roots))
}
