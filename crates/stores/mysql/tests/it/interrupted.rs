//! A procedure that fails after a part of its answer. The driver takes a result that ends with an error for an empty one,
//! and reports the error to the next statement of the connection.

use futures_util::StreamExt;
use tenure_core::{NodeId, Term};
use tenure_store::{Cause, Hint, Resign, StoreError};
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ELECTION, ask, connect, name, open, soon, until, win};

use crate::common::Place;

/// A procedure commits, answers, and wakes up listeners then. If that fails, neither its own answer nor the next call's is
/// any different.
#[tokio::test]
async fn an_error_while_listeners_are_woken_up_fails_no_call() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    // The procedure handles every error, but a server runs no handler for a connection that is being ended.
    ask(&place, "DROP PROCEDURE {t}ring").await;
    let ring = "CREATE PROCEDURE {t}ring(ns VARCHAR(128)) SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1329";
    ask(&place, ring).await;
    for term in [1, 2] {
        assert_eq!(win(&store, session).await, Term::new(term));
        let resign = Resign {
            session,
            election: name(ELECTION),
            attempt: 1,
            term: None,
            to: None,
            cause: Cause::Resigned,
        };
        soon(store.resign(resign)).await.unwrap();
    }
}

#[tokio::test]
async fn a_list_that_ends_with_an_error_is_not_taken_for_a_shorter_one() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    ask(&place, "DROP PROCEDURE {t}list_nodes").await;
    let list = "CREATE PROCEDURE {t}list_nodes(ns VARCHAR(128))
        BEGIN
            SELECT 'the store';
            SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'interrupted';
        END";
    ask(&place, list).await;
    let told = soon(store.nodes()).await;
    assert!(matches!(told, Err(StoreError::Indeterminate(_))), "{told:?}");
    win(&store, session).await;
}

/// A listener reads the last id, and then what has happened up to that id. Here it is interrupted
/// between the two, as by another change, whenever it sees an id for the first time.
#[tokio::test]
async fn a_listener_that_is_interrupted_while_it_reads_what_has_happened_reads_it_again() {
    let place = Place::start();
    drop(connect(&place).await.unwrap());
    // Otherwise it goes on listening in the procedure until it is woken up, which thus cannot be replaced.
    place.end_connections().await;
    ask(&place, "CREATE TABLE seen (id BIGINT PRIMARY KEY)").await;
    ask(&place, "CREATE TABLE waiting (id BIGINT PRIMARY KEY)").await;
    ask(&place, "DROP PROCEDURE {t}listen").await;
    let listen = "CREATE PROCEDURE {t}listen(ns VARCHAR(128), after BIGINT, seconds INT)
        BEGIN
            DECLARE last BIGINT;
            INSERT IGNORE INTO waiting SELECT after FROM {t}meta WHERE after IS NOT NULL;
            REPEAT
                DO SLEEP(0.01);
                SELECT COALESCE(MAX(events), 0) INTO last FROM {t}histories;
            UNTIL after IS NULL OR last > after END REPEAT;
            SELECT last;
            IF after IS NOT NULL AND NOT EXISTS (SELECT 1 FROM seen WHERE id = last) THEN
                INSERT INTO seen VALUES (last);
                SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'interrupted';
            END IF;
            SELECT JSON_OBJECT('kind', kind, 'election', election, 'node', node) FROM {t}events
                WHERE id > after AND id <= last ORDER BY id;
        END";
    ask(&place, listen).await;
    let store = connect(&place).await.unwrap();
    let mut hints = store.news();
    // Until it listens, all that it says is that anything may have happened.
    until(&place, "SELECT COUNT(*) FROM waiting").await;
    let session = open(&store, 1).await;
    win(&store, session).await;
    let named = Hint::Named { election: name(ELECTION), node: NodeId::new("n1").unwrap() };
    soon(async { while hints.next().await.unwrap() != named {} }).await;
}
