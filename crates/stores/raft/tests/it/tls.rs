//! Members and clients show each other certificates of one authority, and nobody else is let in.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tenure_raft::RaftStore;
use tenure_store::{Store, StoreError, StoreUrl};

use crate::kit::{addresses, client_url, connect, member_url, open, patiently};

/// Writes an authority and a certificate of it; gives the parameters of a URL that name them.
fn certificates(directory: &Path, name: &str) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![String::from("127.0.0.1")]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let place = |what: &str| directory.join(format!("{name}.{what}"));
    std::fs::write(place("ca"), authority.pem()).unwrap();
    std::fs::write(place("crt"), certificate.pem()).unwrap();
    std::fs::write(place("key"), key.serialize_pem()).unwrap();
    let path = |what: &str| place(what).display().to_string();
    format!("tls-cert={}&tls-key={}&tls-ca={}", path("crt"), path("key"), path("ca"))
}

#[tokio::test]
async fn only_those_with_a_certificate_of_the_group_are_let_in() {
    // There may be one already; it is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (peers, directory) = (addresses(3), TempDir::new().unwrap());
    let (ours, theirs) = (certificates(directory.path(), "ours"), certificates(directory.path(), "theirs"));
    let mut members = Vec::new();
    for (number, peer) in peers.iter().enumerate() {
        let data = directory.path().join(number.to_string());
        members.push(connect(&format!("{}&{ours}", member_url(&peers, &data, peer))).await);
    }
    open(&members[0], "a").await;
    let client = connect(&format!("{}?{ours}", client_url(&peers))).await;
    assert_eq!(patiently(async || client.nodes().await).await.value.len(), 1);

    let strangers = [client_url(&peers), format!("{}?{theirs}", client_url(&peers))];
    for url in strangers {
        let refused = RaftStore::connect(&StoreUrl::parse(&url).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{url}: let in");
    }
}

#[tokio::test]
async fn certificates_that_were_replaced_are_used_without_a_restart() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (peers, directory) = (addresses(1), TempDir::new().unwrap());
    let (used, new) = (certificates(directory.path(), "used"), certificates(directory.path(), "new"));
    let data = directory.path().join("data");
    let member = connect(&format!("{}&{used}", member_url(&peers, &data, &peers[0]))).await;
    let client = connect(&format!("{}?{used}", client_url(&peers))).await;
    open(&client, "a").await;
    for what in ["ca", "crt", "key"] {
        let place = |name: &str| directory.path().join(format!("{name}.{what}"));
        std::fs::copy(place("new"), place("used")).unwrap();
    }
    // Whoever comes now knows nothing but the new ones; and whoever was there before connects anew.
    let url = StoreUrl::parse(&format!("{}?{new}", client_url(&peers))).unwrap();
    let newcomer = patiently(async || RaftStore::connect(&url).await).await;
    assert_eq!(patiently(async || newcomer.nodes().await).await.value.len(), 1);
    let session = open(&client, "a").await;
    patiently(async || client.renew(session, 2, 2).await).await;
    drop(member);
}
