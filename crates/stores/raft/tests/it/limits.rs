//! How large a request may be.

use tenure_core::{ElectionName, TaskListName};
use tenure_store::{Arrangement, Enlistment, Store, StoreError};

use crate::kit::{addresses, connect, directory, member_url, open, patiently};

/// As much as a request may have, so that it is too large with the names around it.
const DOCUMENT: usize = 16 << 10;

#[tokio::test]
async fn a_document_above_16_kib_is_refused_with_what_to_do_and_changes_nothing() {
    let (peers, directory) = (addresses(1), directory());
    let store = connect(&member_url(&peers, directory.path(), &peers[0])).await;
    let (session, election) = (open(&store, "a").await, ElectionName::new("reports").unwrap());
    let ledger = store.ledger().unwrap();
    let enlistment = |document| Enlistment { election: election.clone(), session, document };
    let arrangement = Arrangement {
        election: election.clone(),
        list: TaskListName::new("orders/bills").unwrap(),
        seen: 0,
        document: Some("x".repeat(DOCUMENT)),
    };
    let refused = [
        (ledger.enlist(enlistment("x".repeat(DOCUMENT))).await.unwrap_err(), "use shorter labels"),
        (ledger.arrange(arrangement).await.unwrap_err(), "exclude or pin fewer nodes"),
    ];
    for (problem, hint) in refused {
        assert!(matches!(problem, StoreError::Misconfigured(_)), "{problem:?}");
        let told = problem.to_string();
        assert!(told.contains("none may have more than 16384") && told.contains(hint), "{told}");
    }
    let survey = patiently(async || ledger.survey(election.clone()).await).await.value;
    assert_eq!((survey.revision, survey.workers), (0, Vec::new()));
    patiently(async || ledger.enlist(enlistment(String::from("words"))).await).await;
    let survey = patiently(async || ledger.survey(election.clone()).await).await.value;
    assert_eq!(survey.workers[0].document, "words");
}
