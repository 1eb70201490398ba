//! Those who make the tables, and those who read them.

use super::SqlServer;
use super::stage::{ELECTION, ask, calm, connect, lead, soon, start};
use tenure_store::StoreError;

pub async fn three_that_come_at_once_make_the_tables_once<S: SqlServer>() {
    let server = S::start();
    let (a, b, c) = tokio::join!(connect(&server), connect(&server), connect(&server));
    let mut identities = Vec::new();
    for store in [a.unwrap(), b.unwrap(), c.unwrap()] {
        identities.push(soon(store.elections()).await.unwrap().store);
    }
    identities.dedup();
    assert_eq!(identities.len(), 1);
}

pub async fn tables_of_a_newer_tenure_are_left_alone<S: SqlServer>() {
    let server = S::start();
    drop(connect(&server).await.unwrap());
    ask(&server, "UPDATE {t}meta SET version = 99").await;
    let error = connect(&server).await.err().expect("it is refused");
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("made by a newer Tenure (layout 99") && said.contains("upgrade this node"),
        "{said}"
    );
    assert_eq!(ask(&server, "SELECT version FROM {t}meta").await, "99");
}

pub async fn a_server_that_is_down_is_named<S: SqlServer>() {
    let mut server = S::start();
    server.stop();
    let error = connect(&server).await.err().expect("it is down");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    let (said, place) = (error.to_string(), format!("127.0.0.1:{}: ", server.port()));
    assert!(
        said.contains("cannot reach ") && said.contains(&place) && said.contains("onnection refused"),
        "{said}"
    );
}

pub async fn a_person_reads_who_leads<S: SqlServer>() {
    let server = S::start();
    let node = start(calm("alpha"), &server.url()).await;
    let _leadership = lead(&node).await;
    let column = async |name: &str| {
        ask(&server, &format!("SELECT {name} FROM {{t}}leases WHERE election = '{ELECTION}'")).await
    };
    assert_eq!(column("leader").await, "alpha");
    assert_eq!((column("term").await, column("state").await), (String::from("1"), String::from("held")));
    let ahead = "SELECT COUNT(*) FROM {t}leases WHERE expires_at > renewed_at AND expires_at > acquired_at";
    assert_eq!(ask(&server, ahead).await, "1");
    assert_eq!(ask(&server, "SELECT health FROM {t}nodes").await, "healthy");
}

pub async fn a_server_with_few_connections_to_spare_is_told_for_how_many_nodes_they_do<S: SqlServer>() {
    for (server, fine) in [(S::start(), true), (S::start_small(), false)] {
        let store = connect(&server).await.unwrap();
        let findings = soon(store.examine()).await.unwrap().value;
        let finding = findings.iter().find(|finding| finding.name == "connections").unwrap();
        assert_eq!(finding.fine, fine, "{finding:?}");
        assert!(finding.value.contains("room for "), "{finding:?}");
        let raises = finding.advice.as_ref().is_some_and(|advice| advice.contains(S::FULL[1]));
        assert_eq!(raises, !fine, "{finding:?}");
    }
}
