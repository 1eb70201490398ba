//! Encryption: both sides show a certificate of the group's own authority, or nothing leaves the machine.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// How connections are made and taken.
#[derive(Clone)]
pub(crate) enum Encryption {
    Plain,
    Mutual { connector: TlsConnector, acceptor: TlsAcceptor },
}

impl Encryption {
    /// Reads the files; `None`: there are none, and connections are not encrypted.
    pub(crate) fn load(files: Option<&Files>) -> Result<Self, StoreError> {
        let Some(files) = files else { return Ok(Self::Plain) };
        // Which cryptography a process uses is for its application to say, and only once.
        let Some(provider) = CryptoProvider::get_default() else {
            return Err(StoreError::misconfigured(
                "encrypted connections need a rustls provider, and this process has installed none; call \
                 `rustls::crypto::aws_lc_rs::default_provider().install_default()` first thing in `main`",
            ));
        };
        let unable = |error: rustls::Error| StoreError::misconfigured(format!("TLS cannot be used: {error}"));
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&files.authority)? {
            roots.add(certificate).map_err(unable)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&files.certificate)?;
        let key = || PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unreadable(&files.key, &error));
        let client = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(unable)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key()?)
            .map_err(unable)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
            .build()
            .map_err(|error| StoreError::misconfigured(format!("TLS cannot be used: {error}")))?;
        let server = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(unable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key()?)
            .map_err(unable)?;
        Ok(Self::Mutual {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
        })
    }

    /// Makes a connection to this host secure.
    pub(crate) async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Plain => Ok(Box::new(stream)),
            Self::Mutual { connector, .. } => {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Ok(Box::new(connector.connect(name, stream).await?))
            }
        }
    }

    /// Makes a connection of somebody else secure.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Plain => Ok(Box::new(stream)),
            Self::Mutual { acceptor, .. } => Ok(Box::new(acceptor.accept(stream).await?)),
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).and_then(|certificates| certificates.collect());
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
