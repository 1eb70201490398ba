//! Encrypted connections: who is trusted, and what is said of the others.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]
#![allow(missing_docs, reason = "the tests read as sentences")]

mod kit;

use std::io::Write;
use std::time::Duration;

use kit::{connect, misconfigured, number, person, refused};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::NamedTempFile;
use tenure_core::{ElectionName, NodeId, SessionId};
use tenure_store::{NodeInfo, Open, Store};
use tenure_testkit::server::Postgres;

/// As an application does, first thing in its `main`.
fn install_a_provider() {
    // Another test was first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Somebody who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: NamedTempFile,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let mut root = NamedTempFile::new().unwrap();
        root.write_all(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), root }
    }

    /// A server with a certificate for this name.
    fn server(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Postgres {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Postgres::start_encrypted(&certificate.pem(), &key.serialize_pem())
    }

    /// The server's URL for those who trust this authority.
    fn trusted(&self, server: &Postgres) -> String {
        format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), self.root.path().display())
    }
}

#[tokio::test]
async fn with_a_good_certificate_every_connection_is_encrypted() {
    install_a_provider();
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", |_| ());
    let person = person(&server.url()).await;
    for mode in ["verify-full", "require"] {
        let url = authority.trusted(&server).replace("verify-full", mode);
        let store = connect(&format!("{url}&application_name={mode}")).await.unwrap();
        let node = NodeInfo {
            id: NodeId::new(mode).unwrap(),
            hostname: String::from("here"),
            address: None,
            pid: 1,
        };
        let session = SessionId::from_u128(mode.len() as u128);
        let ttl = Duration::from_secs(10);
        store.open(Open { session, sequence: 1, ttl, node, supersedes: None, over: None }).await.unwrap();
        store.read(ElectionName::new("nightly").unwrap()).await.unwrap();
        // One for the session, one for elections, one that listens.
        let of = |encrypted: bool| {
            format!(
                "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE application_name = '{mode}' AND ssl = {encrypted}"
            )
        };
        while number(&person, &of(true)).await < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(number(&person, &of(false)).await, 0);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusted_has_signed_is_refused() {
    install_a_provider();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = stranger.server("127.0.0.1", |_| ());
    let words = ["signed by nobody who is trusted", "sslrootcert=FILE"];
    misconfigured(&refused(&authority.trusted(&server)).await, &words);
    // The authorities of this system do not know it either.
    let url = format!("{}?sslmode=require", server.url());
    let error = refused(&url).await;
    misconfigured(&error, &["sslrootcert=FILE"]);
    nothing_was_made(&server).await;
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused() {
    install_a_provider();
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    misconfigured(&refused(&authority.trusted(&server)).await, &["has expired", "renew it on the server"]);
    nothing_was_made(&server).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    install_a_provider();
    let authority = Authority::new();
    let server = authority.server("db.example.com", |_| ());
    let error = refused(&authority.trusted(&server)).await;
    misconfigured(&error, &["is for another host", "db.example.com", "connect by a name that it holds"]);
    // `require` looks as closely.
    let url = authority.trusted(&server).replace("verify-full", "require");
    misconfigured(&refused(&url).await, &["is for another host"]);
    nothing_was_made(&server).await;
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_is_refused_where_that_was_asked_for() {
    install_a_provider();
    let authority = Authority::new();
    let server = Postgres::start();
    for mode in ["require", "verify-full"] {
        let url = authority.trusted(&server).replace("verify-full", mode);
        let words = ["does not encrypt connections", "ssl = on", "sslmode=disable"];
        misconfigured(&refused(&url).await, &words);
    }
    nothing_was_made(&server).await;
}

#[tokio::test]
async fn on_this_machine_a_connection_is_plain_if_it_cannot_be_encrypted() {
    install_a_provider();
    let encrypts = |application: &'static str| {
        format!(
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = '{application}' AND ssl"
        )
    };
    let server = Postgres::start();
    connect(&server.url()).await.unwrap();
    // As Debian sets it up: with a certificate that nobody has signed.
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", |_| ());
    let store = connect(&format!("{}?application_name=plain", server.url())).await.unwrap();
    store.examine().await.unwrap();
    let person = person(&server.url()).await;
    assert_eq!(number(&person, &encrypts("plain")).await, 0);
    // But encrypted if it can.
    let url = authority.trusted(&server).replace("verify-full", "prefer");
    let store = connect(&format!("{url}&application_name=safe")).await.unwrap();
    store.examine().await.unwrap();
    assert!(number(&person, &encrypts("safe")).await > 0);
}

#[tokio::test]
async fn a_root_that_cannot_be_read_is_named() {
    install_a_provider();
    let url = "postgres://me@127.0.0.1:1/db?sslrootcert=/no/such.pem";
    misconfigured(&refused(url).await, &["`/no/such.pem`", "No such file", "PEM"]);
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"this is no certificate").unwrap();
    let url = format!("postgres://me@127.0.0.1:1/db?sslrootcert={}", file.path().display());
    misconfigured(&refused(&url).await, &["there is no certificate in it"]);
}

async fn nothing_was_made(server: &Postgres) {
    let person = person(&server.url()).await;
    assert_eq!(number(&person, "SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'").await, 0);
}
