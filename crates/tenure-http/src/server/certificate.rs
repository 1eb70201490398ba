//! A certificate and its key, read again when their files have changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::tls::TlsError;
use crate::provider::provider;

/// How often the files are looked at. Whoever renews certificates does so long before they end.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What this node shows of itself: to its clients, and to nodes that it forwards to.
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    now: RwLock<Now>,
}

struct Now {
    texts: Texts,
    certified: Arc<CertifiedKey>,
}

/// What the files say.
#[derive(PartialEq, Eq)]
struct Texts {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    pub(super) fn from_files(chain: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let texts = Texts::read(chain, key)?;
        let now = RwLock::new(Now { certified: texts.certified(chain, key)?, texts });
        Ok(Arc::new(Self { chain: chain.to_owned(), key: key.to_owned(), now }))
    }

    /// Reads the files again, and uses what they say from the next handshake on. Whether that is something
    /// else than before. On an error, for one while only one of the two files has been replaced, what was
    /// used is used on.
    fn renew(&self) -> Result<bool, TlsError> {
        let texts = Texts::read(&self.chain, &self.key)?;
        if self.now.read().unwrap_or_else(PoisonError::into_inner).texts == texts {
            return Ok(false);
        }
        let certified = texts.certified(&self.chain, &self.key)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Now { texts, certified };
        Ok(true)
    }

    /// Looks at the files for ever.
    pub(super) async fn keep_fresh(self: Arc<Self>) {
        let mut complaint = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let own = Arc::clone(&self);
            // A file system may hang.
            let Ok(renewed) = tokio::task::spawn_blocking(move || own.renew()).await else { continue };
            if let Ok(true) = renewed {
                tracing::info!(target: "tenure", file = %self.chain.display(), "the certificate was renewed");
            }
            let problem = renewed.err().map(|error| error.to_string());
            if let Some(error) = problem.as_ref().filter(|_| problem != complaint) {
                tracing::warn!(target: "tenure", error, "the certificate was not renewed");
            }
            complaint = problem;
        }
    }

    fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).certified)
    }
}

impl Texts {
    fn read(chain: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path, what| std::fs::read(path).map_err(|error| TlsError::file(path, what, error));
        Ok(Self { chain: read(chain, "certificate")?, key: read(key, "private key")? })
    }

    fn certified(&self, chain: &Path, key: &Path) -> Result<Arc<CertifiedKey>, TlsError> {
        let certificates = certificates(&self.chain, chain)?;
        let private = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| TlsError::file(key, "private key", error))?;
        let certified = CertifiedKey::from_der(certificates, private, &provider());
        certified.map(Arc::new).map_err(TlsError::unusable)
    }
}

/// The certificates of a file that says this.
pub(super) fn certificates(text: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::file(path, "certificate", error))?;
    if found.is_empty() {
        return Err(TlsError::file(path, "certificate", "there is none in it"));
    }
    Ok(found)
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certified())
    }
}

impl ResolvesClientCert for Certificate {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let certified = self.certified();
        certified.key.choose_scheme(schemes).is_some().then_some(certified)
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(&self.chain).finish()
    }
}
