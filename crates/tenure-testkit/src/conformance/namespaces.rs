//! Namespaces of one store share nothing.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use tenure_core::{Namespace, Record};
use tenure_store::{Cause, Deletion, EventQuery, Hint, Options};

use super::cast::{Node, candidates, election, events, fresh_session, holder, read};
use super::fixture::Fixture;

/// The same names, side by side.
pub async fn they_share_nothing(fixture: Arc<Fixture>) {
    let namespace = Namespace::new("the 'other' one; %").expect("the suite uses good names");
    let ours = fixture.connect().await;
    let theirs = fixture.connect_with(Options { namespace, ..Options::default() }).await;
    let mut their_news = theirs.news();

    let a = Node::open(&ours, "a").await;
    a.lead("reports").await;
    a.resign("reports").await;
    let term = a.lead("reports").await;
    let b = Node::open(&ours, "b").await;
    b.stand("reports").await;

    assert_eq!(read(&theirs, "reports").await, Record::default());
    assert!(candidates(&theirs, "reports").await.is_empty());
    assert!(theirs.nodes().await.expect("the store answers").value.is_empty());
    assert!(theirs.elections().await.expect("the store answers").value.is_empty());
    assert!(theirs.events(EventQuery::default()).await.expect("the store answers").value.is_empty());
    let deletion = theirs.delete(election("reports"), true).await.expect("the store answers").value;
    assert_eq!(deletion, Deletion::Absent);

    let twin = Node::open(&theirs, "a").await; // the same node id is free here
    let their_term = twin.lead("reports").await;
    assert!(their_term < term, "terms are counted apart");
    twin.resign("reports").await;
    theirs.close(fresh_session(), Cause::Resigned).await.expect("an unknown session is no error");
    assert_eq!(holder(&ours, "reports").await.map(|holder| holder.term), Some(term));
    assert_eq!(candidates(&ours, "reports").await, ["b"]);
    let sequences: Vec<_> = events(&theirs, "reports").await.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);

    ours.delete(election("only-ours"), false).await.expect("the store answers");
    a.lead("only-ours").await;
    while let Some(Some(hint)) = their_news.next().now_or_never() {
        assert_ne!(hint, Hint::Election(election("only-ours")), "news of another namespace");
    }
}
