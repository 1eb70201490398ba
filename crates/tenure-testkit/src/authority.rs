//! Somebody who signs certificates, and those who have one.

use std::io::Write;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;

/// As an application does, first thing in its `main`.
pub fn install_a_provider() {
    // Another test was first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Somebody who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: NamedTempFile,
}

/// A certificate and its key.
pub struct Identity {
    certificate: (NamedTempFile, String),
    key: (NamedTempFile, String),
}

impl Authority {
    /// A new one, whom nobody trusts who is not told to.
    ///
    /// # Panics
    /// If this machine has no place for its root.
    #[must_use]
    pub fn new() -> Self {
        install_a_provider();
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new([]).expect("no name is no bad name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("a root signs itself");
        Self { root: file(&root.pem()), issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, as a PEM file.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A certificate for this name.
    ///
    /// # Panics
    /// If it cannot be one.
    #[must_use]
    pub fn identity(&self, name: &str) -> Identity {
        self.identity_with(name, |_| ())
    }

    /// The same with something special about it.
    ///
    /// # Panics
    /// As for [`identity`](Self::identity).
    #[must_use]
    pub fn identity_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new([name.to_owned()]).expect("a good name");
        // Not the authority's own, or it would seem to have signed itself.
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("it can be signed").pem();
        let key = key.serialize_pem();
        Identity { certificate: (file(&certificate), certificate), key: (file(&key), key) }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// The certificate, as a PEM file.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        self.certificate.0.path()
    }

    /// What is in that file.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate.1
    }

    /// Its key, as a PEM file.
    #[must_use]
    pub fn key(&self) -> &Path {
        self.key.0.path()
    }

    /// What is in that file.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key.1
    }
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("there is a place for temporary files");
    file.write_all(text.as_bytes()).expect("it can be written");
    file
}
