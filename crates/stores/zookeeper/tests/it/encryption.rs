//! Encrypted connections, and users whose passwords do not go over the wire.

use std::time::Duration;

use crate::common::{connect, open_for, person, win};
use tenure_core::Term;
use tenure_store::{Store, StoreError};
use tenure_testkit::authority::Authority;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::soon;
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::Error;

const ELECTION: &str = "/tenure/default/elections/reports";

/// Connects. On a busy machine, a server that has just been started may be too slow for its first handshakes.
async fn reach(url: &str) -> ZooKeeperStore {
    soon(async {
        loop {
            match connect(url).await {
                Err(StoreError::Unavailable(_)) => {}
                connected => return connected.unwrap(),
            }
        }
    })
    .await
}

#[tokio::test]
async fn over_an_encrypted_connection_everything_works_as_without() {
    let authority = Authority::new();
    let server = ZooKeeper::start_encrypted(&authority.identity("127.0.0.1"), None);
    let store = reach(&server.url_encrypted(&[("sslrootcert", authority.root())])).await;
    let session = open_for(&store, 1, Duration::from_secs(30)).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    assert!(store.renew(session, 2, 2).await.is_ok(), "also over a fresh connection");
}

#[tokio::test]
async fn a_server_that_nobody_trusted_has_signed_or_that_is_another_host_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let trusts = |server: &ZooKeeper| server.url_encrypted(&[("sslrootcert", authority.root())]);
    for server in [
        ZooKeeper::start_encrypted(&stranger.identity("127.0.0.1"), None),
        ZooKeeper::start_encrypted(&authority.identity("zk.example.com"), None),
    ] {
        let problem = connect(&trusts(&server)).await.err().unwrap();
        assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
        assert!(problem.to_string().contains("signed by sslrootcert"), "{problem}");
        assert!(person(&server).await.check_stat("/tenure").await.unwrap().is_none(), "nothing was made");
    }
}

#[tokio::test]
async fn what_is_made_by_one_with_a_certificate_belongs_to_it() {
    let authority = Authority::new();
    let server = ZooKeeper::start_encrypted(&authority.identity("127.0.0.1"), Some(authority.root()));
    let nobody = connect(&server.url_encrypted(&[("sslrootcert", authority.root())])).await.err().unwrap();
    assert!(nobody.to_string().contains("one of ours (sslcert, sslkey)"), "{nobody}");
    let app = authority.identity("app");
    let parameters =
        [("sslrootcert", authority.root()), ("sslcert", app.certificate()), ("sslkey", app.key())];
    let store = reach(&server.url_encrypted(&parameters)).await;
    let session = open_for(&store, 1, Duration::from_secs(30)).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    assert_eq!(person(&server).await.get_data(ELECTION).await.unwrap_err(), Error::NoAuth);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named() {
    let authority = Authority::new();
    let server = ZooKeeper::start_encrypted(&authority.identity("127.0.0.1"), None);
    let nowhere = std::path::Path::new("/no/such.pem");
    let problem = connect(&server.url_encrypted(&[("sslrootcert", nowhere)])).await.err().unwrap();
    assert!(matches!(problem, StoreError::Misconfigured(_)), "{problem:?}");
    assert!(
        problem.to_string().contains("`/no/such.pem`") && problem.to_string().contains("PEM"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_user_of_sasl_owns_what_it_makes_and_a_wrong_password_is_refused_with_what_to_do() {
    let server = ZooKeeper::start_with_sasl_user("app", "secret");
    let url = |user: &str| format!("{}?auth=sasl", server.url_as(user));
    let store = reach(&url("app:secret")).await;
    let session = open_for(&store, 1, Duration::from_secs(30)).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    assert_eq!(person(&server).await.get_data(ELECTION).await.unwrap_err(), Error::NoAuth);
    for stranger in [url("app:wrong"), url("other:secret")] {
        let problem = connect(&stranger).await.err().unwrap();
        assert!(matches!(problem, StoreError::Misconfigured(_)), "{problem:?}");
        assert!(problem.to_string().contains("check user and password"), "{problem}");
    }
}
