//! What the ZooKeeper library offers that Tenure learned from, in Tenure's words. A client that the application
//! brings along, and one connection for many elections, are in `given.rs`; an election's end, and what is answered
//! to whoever resigns or ends twice, in `seed_defects.rs`.

use crate::common;
use crate::common::{line, person};
use tenure::{Election, ElectionError, Node, NodeId, Role, Term};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, calm, lead, soon, stand, start, until};

fn following(whom: &str, ahead: usize) -> Role {
    Role::Follower { following: Some(NodeId::new(whom).unwrap()), ahead }
}

async fn becomes(election: &Election, role: Role) {
    until(async || election.role().await.unwrap() == role).await;
}

/// Three that stand, in this order.
async fn cast(server: &ZooKeeper) -> [(Node, Election); 3] {
    let mut cast = Vec::new();
    for id in ["a", "b", "c"] {
        let node = start(calm(id), &server.url()).await;
        let election = node.election(ELECTION).unwrap();
        cast.push((node, election));
    }
    cast.try_into().expect("three")
}

#[tokio::test]
async fn a_follower_knows_whom_it_follows_and_is_told_when_that_changes() {
    let server = ZooKeeper::start();
    let [(a, first), (b, second), (c, third)] = cast(&server).await;
    let leads = lead(&a).await;
    let waits = stand(&b);
    becomes(&second, following("a", 0)).await;
    let waits_longer = stand(&c);
    becomes(&third, following("b", 1)).await;
    assert_eq!(first.role().await.unwrap(), Role::Leader { term: Term::new(1) });

    // The one in the middle withdraws: it gives up its candidacy, and nobody's leadership.
    waits.abort();
    becomes(&third, following("a", 0)).await;
    becomes(&second, Role::Observer).await;
    assert_eq!(leads.check(), Ok(Term::new(1)));

    soon(leads.resign()).await.unwrap();
    let next = soon(waits_longer).await.unwrap();
    assert_eq!(third.role().await.unwrap(), Role::Leader { term: Term::new(2) });
    assert_eq!(next.check(), Ok(Term::new(2)));
}

/// A znode in line says who stands there.
#[tokio::test]
async fn candidates_are_listed_by_their_names_in_order_of_succession() {
    let server = ZooKeeper::start();
    let [(a, first), (b, second), (c, _)] = cast(&server).await;
    let _leads = lead(&a).await;
    let _waits = stand(&b);
    becomes(&second, following("a", 0)).await;
    let _waits_longer = stand(&c);
    let person = person(&server).await;
    until(async || line(&person).await.len() == 3).await;
    let listed = first.candidates().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.node.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let mut names = Vec::new();
    for place in line(&person).await {
        let (data, _) = person.get_data(&format!("{}/{place}", common::LINE)).await.unwrap();
        names.push(String::from_utf8(data).unwrap());
    }
    names.sort();
    assert_eq!(names, [r#"{"node":"a"}"#, r#"{"node":"b"}"#, r#"{"node":"c"}"#]);
}

#[tokio::test]
async fn a_closed_instance_answers_every_question_with_an_error() {
    let server = ZooKeeper::start();
    let node = start(calm("a"), &server.url()).await;
    let election = node.election(ELECTION).unwrap();
    let leadership = lead(&node).await;
    soon(leadership.resign()).await.unwrap();
    soon(node.close()).await;
    let closed = |answer: Result<(), ElectionError>| matches!(answer, Err(ElectionError::Closed(_)));
    assert!(closed(soon(election.elected()).await.map(|_| ())));
    assert!(closed(soon(election.role()).await.map(|_| ())));
    assert!(closed(soon(election.leader()).await.map(|_| ())));
    assert!(closed(soon(election.candidates()).await.map(|_| ())));
    assert!(closed(soon(election.delete()).await));
    assert!(leadership.check().is_err() && soon(leadership.resign()).await.is_err());
    soon(node.close()).await; // twice is fine
}
