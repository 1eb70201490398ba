//! Stores that are reached through TLS.

use std::io::Write;

use rcgen::{CertificateParams, KeyPair};
use tempfile::NamedTempFile;
use tenure_testkit::server::Postgres;

use super::stage::tenure;

#[test]
fn the_command_encrypts_and_trusts_only_whom_it_is_told_to() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([String::from("127.0.0.1")]).unwrap().self_signed(&key).unwrap();
    let mut root = NamedTempFile::new().unwrap();
    root.write_all(certificate.pem().as_bytes()).unwrap();
    let server = Postgres::start_encrypted(&certificate.pem(), &key.serialize_pem());
    let trusting = format!("{}?sslrootcert={}", server.url(), root.path().display());
    tenure(&["leader", "nightly", "--store", &trusting]).refused(69, "has no schema");
    let run = tenure(&["run", "--election", "nightly", "--store", &trusting, "--", "echo", "done"]);
    assert_eq!(run.done().out, "done\n");
    let wary = format!("{}?sslmode=require", server.url());
    tenure(&["leader", "nightly", "--store", &wary]).refused(69, "sslrootcert=FILE");
    // The same without a network that one would have to trust.
    tenure(&["leader", "nightly", "--store", &server.url()]).refused(1, "nightly");
    tenure(&["leader", "nightly", "--store", "postgres://me@h1/db?sslmode=verify-ca"])
        .refused(2, "disable, prefer, require or verify-full");
}
