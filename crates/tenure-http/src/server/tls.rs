//! TLS, and who may come in by a certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::certificate::{Certificate, certificates};
use crate::provider::provider;

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
    #[error("`{path}` holds no {what} in PEM: {source}")]
    File {
        /// Which file.
        path: String,
        /// What was looked for.
        what: &'static str,
        /// What is wrong.
        source: BoxError,
    },
    /// They do not go together.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[source] BoxError),
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl TlsError {
    pub(super) fn file(path: &Path, what: &'static str, source: impl Into<BoxError>) -> Self {
        Self::File { path: path.display().to_string(), what, source: source.into() }
    }

    pub(super) fn unusable(problem: impl Into<BoxError>) -> Self {
        Self::Unusable(problem.into())
    }
}

impl Tls {
    /// With this certificate (and those that vouch for it) and its key. With `ca`, only clients are let
    /// in whose certificate it has signed. Certificate and key are read again when their files have changed,
    /// for as long as they are served with; `ca` is read once.
    ///
    /// What encrypts is the process's [`CryptoProvider`](rustls::crypto::CryptoProvider) if it has installed one, and
    /// otherwise aws-lc-rs.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_files(certificate: &Path, key: &Path, ca: Option<&PathBuf>) -> Result<Self, TlsError> {
        let certificate = Certificate::from_files(certificate, key)?;
        let roots = ca.map(|ca| vouching(ca)).transpose()?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsError::unusable)?;
        let builder = match &roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider()).build();
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
        let builder = ClientConfig::builder_with_provider(Arc::clone(self.config.crypto_provider()));
        // The server has been able to do the same with this provider.
        let builder = builder.with_safe_default_protocol_versions().ok()?.with_root_certificates(roots);
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

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::crypto::CryptoProvider;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A node's certificate and key, and the root that has signed it.
    fn identity(directory: &Path) -> Tls {
        let mut root = CertificateParams::new([]).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let ca = directory.join("ca.pem");
        std::fs::write(&ca, root.self_signed(&root_key).unwrap().pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let node = CertificateParams::new([String::from("node.example")]).unwrap();
        let signed = node.signed_by(&key, &Issuer::new(root, root_key)).unwrap();
        let (certificate_file, key_file) = (directory.join("cert.pem"), directory.join("key.pem"));
        std::fs::write(&certificate_file, signed.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        Tls::from_files(&certificate_file, &key_file, Some(&ca)).unwrap()
    }

    #[tokio::test]
    async fn an_application_that_installs_no_provider_can_encrypt() {
        assert!(CryptoProvider::get_default().is_none(), "no test of this crate's own installs one");
        let directory = tempfile::tempdir().unwrap();
        let tls = identity(directory.path());
        let (client, server) = duplex(1 << 16);
        let served = async {
            let mut stream = TlsAcceptor::from(Arc::clone(&tls.config)).accept(server).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let asked = async {
            let connector = TlsConnector::from(tls.among_nodes().expect("there is a root"));
            let name = "node.example".try_into().unwrap();
            let mut stream = connector.connect(name, client).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let ((), text) = tokio::join!(served, asked);
        assert_eq!(text, "hello");
        assert!(CryptoProvider::get_default().is_none(), "the choice is still the application's");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_kept_as_the_source() {
        use std::error::Error;

        let nowhere = Path::new("/nowhere/cert.pem");
        let error = Tls::from_files(nowhere, nowhere, None).unwrap_err();
        let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
    }
}
