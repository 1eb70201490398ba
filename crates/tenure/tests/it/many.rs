//! Many elections under one session.

use crate::common;
use std::time::Duration;

use crate::common::{Wrapped, memory, soon, start, until};
use futures_util::future::join_all;
use tenure_store::clock;

#[tokio::test]
async fn a_thousand_elections_cost_the_renewals_of_one() {
    const MANY: usize = 1000;
    let every = Duration::from_millis(300);
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(common::calm("a").renew_every(every), &store).await;
    let elections: Vec<_> = (0..MANY).map(|n| node.election(format!("e{n}")).unwrap()).collect();
    let elected = soon(join_all(elections.iter().map(|election| election.elected()))).await;
    let leaderships: Vec<_> = elected.into_iter().map(Result::unwrap).collect();

    let (before, renewals) = (clock::now(), wrapped.count("renew"));
    until(|| wrapped.count("renew") >= renewals + 4).await;
    let done = wrapped.count("renew") - renewals;
    let due = clock::now().since(before).as_millis() / every.as_millis() + 2;
    assert!(u128::from(done) <= due, "{done} renewals where {due} were due");
    assert!(leaderships.iter().all(|leadership| leadership.check().is_ok()));

    drop(leaderships);
    until(|| wrapped.count("resign") >= MANY as u64).await;
    soon(node.close()).await;
    assert_eq!(wrapped.count("close"), 1);
}

#[tokio::test]
async fn what_is_known_of_an_election_is_kept_while_there_is_a_handle() {
    let store = memory();
    let node = start(common::calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    for term in 1..=3 {
        let leadership = soon(election.elected()).await.unwrap();
        assert_eq!(leadership.term().number(), term);
    }
    drop(election);
    let again = node.election("reports").unwrap();
    assert_eq!(soon(again.elected()).await.unwrap().term().number(), 4, "forgetting does no harm either");
}
