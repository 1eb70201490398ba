//! The cryptography of TLS.

use std::sync::{Arc, LazyLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The process's own choice if it has made one, and otherwise aws-lc-rs. Nothing is installed: the choice stays the
/// application's. rustls itself would panic where two providers are compiled in, and none is chosen.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static OURS: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::clone(&OURS))
}
