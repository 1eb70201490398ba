//! What the server rolls back in favour of somebody else is asked again.

use crate::common::{Place, by_hand, told};
use tenure_core::{Standing, Term};
use tenure_store::Resign;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ELECTION, ask, claiming, connect, name, open, soon, win};

const DEADLOCKS: &str =
    "SELECT m.COUNT FROM information_schema.INNODB_METRICS m WHERE m.NAME = 'lock_deadlocks'";
const WAITS: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST
    WHERE ID <> CONNECTION_ID() AND COMMAND = 'Query' AND INFO LIKE '%tenure_sessions%FOR UPDATE%'";

/// A person holds the session and asks for the election; a claim holds the election and asks for the session. The
/// person has more to lose, so it is the claim that is rolled back.
#[tokio::test]
async fn a_claim_that_was_rolled_back_as_a_deadlock_is_repeated_and_granted_once() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    let resign = Resign {
        session,
        election: name(ELECTION),
        attempt: 1,
        term: None,
        to: None,
        cause: Default::default(),
    };
    soon(store.resign(resign)).await.unwrap();
    ask(&place, "CREATE TABLE much (n INT) ENGINE = InnoDB").await;
    let mut person = by_hand(&place.url()).await;
    let standing = soon(async {
        // The claim waits for no longer than a second: if the person is slower than that, they try again.
        loop {
            for sql in [
                "BEGIN",
                "INSERT INTO much WITH RECURSIVE numbers AS
                 (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000) SELECT n FROM numbers",
                "SELECT id FROM tenure_sessions FOR UPDATE",
            ] {
                told(&mut person, sql).await.unwrap();
            }
            let claim = tokio::spawn({
                let store = store.clone();
                async move { store.claim(claiming(session)).await }
            });
            while !claim.is_finished() && ask(&place, WAITS).await == "0" {}
            for sql in ["SELECT term FROM tenure_elections FOR UPDATE", "ROLLBACK"] {
                told(&mut person, sql).await.unwrap();
            }
            let outcome = claim.await.unwrap();
            if ask(&place, DEADLOCKS).await != "0" {
                return outcome.unwrap().value;
            }
        }
    });
    assert_eq!(standing.await, Standing::Leading { term: Term::new(2) });
    let granted = "SELECT COUNT(*) FROM {t}events WHERE kind = 'leader_elected' AND term = 2";
    assert_eq!(ask(&place, granted).await, "1");
}
