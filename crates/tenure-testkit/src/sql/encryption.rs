//! Encrypted connections: who is trusted, and what is said of the others.

use std::io::Write;
use std::sync::Arc;

use rcgen::{CertificateParams, date_time_ymd};
use tempfile::NamedTempFile;
use tenure_store::{Store, StoreError, StoreUrl};

use super::SqlServer;
use super::stage::{ask, soon};
use crate::authority::{Authority, install_a_provider};

/// A server with a certificate for this name.
fn serving<S: SqlServer>(
    authority: &Authority,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> S {
    let identity = authority.identity_with(name, change);
    S::start_encrypted(identity.certificate_pem(), identity.key_pem())
}

/// The same URL for those who trust this authority.
fn trusted(authority: &Authority, url: &str) -> String {
    format!("{url}?sslmode=verify-full&sslrootcert={}", authority.root().display())
}

async fn connect<S: SqlServer>(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    soon(S::connect(StoreUrl::parse(url).unwrap())).await
}

/// A human has to change something, and is told what.
async fn refused<S: SqlServer>(url: &str, words: &[&str]) {
    let error = connect::<S>(url).await.err().expect("it is refused");
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error}");
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

async fn nothing_was_made<S: SqlServer>(server: &S) {
    assert_eq!(ask(server, S::MADE).await, "0");
}

pub async fn with_a_good_certificate_every_connection_is_encrypted<S: SqlServer>() {
    let authority = Authority::new();
    let server: S = serving(&authority, "127.0.0.1", |_| ());
    let url = server.url_that_must_encrypt().await;
    for mode in ["verify-full", "require", "prefer"] {
        let store = connect::<S>(&trusted(&authority, &url).replace("verify-full", mode)).await.unwrap();
        soon(store.examine()).await.unwrap();
    }
}

pub async fn a_certificate_that_nobody_trusted_has_signed_is_refused<S: SqlServer>() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server: S = serving(&stranger, "127.0.0.1", |_| ());
    let words = ["signed by nobody who is trusted", "sslrootcert=FILE"];
    refused::<S>(&trusted(&authority, &server.url()), &words).await;
    // The authorities of this system do not know it either.
    refused::<S>(&format!("{}?sslmode=require", server.url()), &["sslrootcert=FILE"]).await;
    nothing_was_made(&server).await;
}

pub async fn a_certificate_that_has_expired_is_refused<S: SqlServer>() {
    let authority = Authority::new();
    let server: S = serving(&authority, "127.0.0.1", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    refused::<S>(&trusted(&authority, &server.url()), &["has expired", "renew it on the server"]).await;
    nothing_was_made(&server).await;
}

pub async fn a_certificate_for_another_host_is_refused<S: SqlServer>() {
    let authority = Authority::new();
    let server: S = serving(&authority, "db.example.com", |_| ());
    let words = ["is for another host", "db.example.com", "connect by a name that it holds"];
    refused::<S>(&trusted(&authority, &server.url()), &words).await;
    // `require` looks as closely.
    let url = trusted(&authority, &server.url()).replace("verify-full", "require");
    refused::<S>(&url, &["is for another host"]).await;
    nothing_was_made(&server).await;
}

pub async fn a_server_that_does_not_encrypt_is_refused_where_that_was_asked_for<S: SqlServer>() {
    let authority = Authority::new();
    let server = S::start();
    for mode in ["require", "verify-full"] {
        let url = trusted(&authority, &server.url()).replace("verify-full", mode);
        refused::<S>(&url, &["does not encrypt connections", "sslmode=disable"]).await;
    }
    nothing_was_made(&server).await;
}

pub async fn on_this_machine_a_connection_is_plain_if_it_cannot_be_encrypted<S: SqlServer>() {
    install_a_provider();
    let server = S::start();
    drop(connect::<S>(&server.url()).await.unwrap());
    // As Debian sets it up: with a certificate that nobody has signed.
    let server: S = serving(&Authority::new(), "127.0.0.1", |_| ());
    soon(connect::<S>(&server.url()).await.unwrap().examine()).await.unwrap();
}

pub async fn a_root_that_cannot_be_read_is_named<S: SqlServer>() {
    install_a_provider();
    let server = S::start();
    let url = format!("{}?sslrootcert=/no/such.pem", server.url());
    refused::<S>(&url, &["`/no/such.pem`", "No such file", "PEM"]).await;
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"this is no certificate").unwrap();
    let url = format!("{}?sslrootcert={}", server.url(), file.path().display());
    refused::<S>(&url, &["there is no certificate in it"]).await;
}
