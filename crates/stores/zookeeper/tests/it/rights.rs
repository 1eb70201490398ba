//! Who may do what: users of the digest scheme, and what belongs to them.

use std::time::Duration;

use crate::common::{connect, open_for, person, win};
use tenure_core::Term;
use tenure_store::{Store, StoreError};
use tenure_testkit::server::ZooKeeper;
use zookeeper_client::{Client, Error};

#[tokio::test]
async fn what_a_user_makes_belongs_to_it_and_strangers_are_refused_with_what_to_do() {
    let server = ZooKeeper::start();
    let store = connect(&server.url_as("app:s%40cret")).await.unwrap();
    let session = open_for(&store, 1, Duration::from_secs(30)).await;
    assert_eq!(win(&store, session).await, Term::new(1));

    for stranger in [server.url(), server.url_as("app:wrong"), server.url_as("other:s%40cret")] {
        let problem = connect(&stranger).await.err().unwrap();
        assert!(matches!(problem, StoreError::Misconfigured(_)), "{problem:?}");
        let problem = problem.to_string();
        assert!(problem.contains("not authorized") && problem.contains("user and password"), "{problem}");
        assert!(!problem.contains("s@cret") && !problem.contains("wrong"), "{problem}");
    }
    let anybody = person(&server).await;
    let election = "/tenure/default/elections/reports";
    assert_eq!(anybody.get_data(election).await.unwrap_err(), Error::NoAuth);
    assert_eq!(anybody.delete(election, None).await.unwrap_err(), Error::NoAuth);

    let known =
        Client::connector().with_auth("digest", b"app:s@cret").connect(&server.hosts()).await.unwrap();
    assert!(known.get_data(election).await.is_ok());
    let again = connect(&server.url_as("app:s%40cret")).await.unwrap();
    let findings = again.examine().await.unwrap().value;
    assert!(findings.iter().all(|finding| finding.fine), "{findings:?}");
    let open = connect(&format!("{}/open", server.url())).await.unwrap();
    let findings = open.examine().await.unwrap().value;
    assert!(findings.iter().any(|finding| finding.name == "rights" && !finding.fine), "{findings:?}");
}

/// A path in the URL is a world of its own.
#[tokio::test]
async fn stores_below_different_paths_share_nothing() {
    let server = ZooKeeper::start();
    let blue = connect(&format!("{}/apps/blue", server.url())).await.unwrap();
    let green = connect(&format!("{}/apps/green", server.url())).await.unwrap();
    for store in [&blue, &green] {
        let session = open_for(store, 1, Duration::from_secs(30)).await;
        assert_eq!(win(store, session).await, Term::new(1));
    }
    let (blue, green) = (blue.elections().await.unwrap().store, green.elections().await.unwrap().store);
    assert_ne!(blue, green);
}
