//! Encryption: both sides show a certificate of the group's own authority, or nothing leaves the machine.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tenure_store::StoreError;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::wire::Stream;

/// The files that the URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// This node's own certificate, and those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Who may belong to the group: everybody with a certificate of this authority.
    pub authority: PathBuf,
}

/// How often the files are looked at. Whoever renews certificates does so long before they end.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How connections are made and taken.
#[derive(Clone)]
pub(crate) enum Encryption {
    Plain,
    Mutual(Arc<Mutual>),
}

/// Both sides show a certificate. The files are read again when they have changed.
pub(crate) struct Mutual {
    files: Files,
    now: RwLock<Configured>,
}

/// What the files said when they were last read, and what follows from that.
#[derive(Clone)]
struct Configured {
    texts: Texts,
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl Encryption {
    /// Reads the files; `None`: there are none, and connections are not encrypted.
    pub(crate) fn load(files: Option<&Files>) -> Result<Self, StoreError> {
        let Some(files) = files else { return Ok(Self::Plain) };
        let now = RwLock::new(Texts::read(files)?.configured(files)?);
        Ok(Self::Mutual(Arc::new(Mutual { files: files.clone(), now })))
    }

    /// Looks at the files for as long as it runs.
    pub(crate) async fn keep_fresh(self) {
        let Self::Mutual(mutual) = self else { return };
        let mut complaint = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let own = Arc::clone(&mutual);
            // A file system may hang.
            let Ok(renewed) = tokio::task::spawn_blocking(move || own.renew()).await else { continue };
            if let Ok(true) = renewed {
                let file = mutual.files.certificate.display();
                tracing::info!(target: "tenure", %file, "the certificates of the group were read again");
            }
            let problem = renewed.err().map(|error| error.to_string());
            if let Some(error) = problem.as_ref().filter(|_| problem != complaint) {
                tracing::warn!(target: "tenure", error, "the certificates have changed and cannot be used; \
                    those read before are used on");
            }
            complaint = problem;
        }
    }

    /// Makes a connection to this host secure.
    pub(crate) async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Plain => Ok(Box::new(stream)),
            Self::Mutual(mutual) => {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Ok(Box::new(mutual.now().connector.connect(name, stream).await?))
            }
        }
    }

    /// Makes a connection of somebody else secure.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Plain => Ok(Box::new(stream)),
            Self::Mutual(mutual) => Ok(Box::new(mutual.now().acceptor.accept(stream).await?)),
        }
    }
}

impl Mutual {
    fn now(&self) -> Configured {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again, and uses what they say from the next connection on. Whether that is something else
    /// than before. On an error, for one while only some of the files have been replaced, what was used is used
    /// on.
    fn renew(&self) -> Result<bool, StoreError> {
        let texts = Texts::read(&self.files)?;
        if self.now.read().unwrap_or_else(PoisonError::into_inner).texts == texts {
            return Ok(false);
        }
        let configured = texts.configured(&self.files)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = configured;
        Ok(true)
    }
}

/// What the files say.
#[derive(Clone, PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl Texts {
    fn read(files: &Files) -> Result<Self, StoreError> {
        let read = |file: &Path| std::fs::read(file).map_err(|error| unreadable(file, &error));
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            authority: read(&files.authority)?,
        })
    }

    fn configured(self, files: &Files) -> Result<Configured, StoreError> {
        // The application's choice if it has made one.
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let unable = |error: rustls::Error| StoreError::misconfigured(format!("TLS cannot be used: {error}"));
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority, &files.authority)? {
            roots.add(certificate).map_err(unable)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = || PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| unreadable(&files.key, &error));
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unable)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key()?)
            .map_err(unable)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| StoreError::misconfigured(format!("TLS cannot be used: {error}")))?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key()?)
            .map_err(unable)?;
        Ok(Configured {
            texts: self,
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
        })
    }
}

fn certificates(text: &[u8], file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(unreadable(file, &"there is no certificate in it"));
    }
    Ok(found)
}

fn unreadable(file: &Path, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::misconfigured(format!("`{}` cannot be used for TLS: {problem}", file.display()))
}

/// Whether a host is this machine itself, whatever it is asked.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
