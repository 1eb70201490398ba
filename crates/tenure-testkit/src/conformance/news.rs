//! News of every transition reaches whoever listens on another connection.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use tenure_store::{HealthReport, Hint, Hints, Problem};

use super::cast::{Node, election, leading};
use super::fixture::Fixture;

struct Listener {
    hints: Hints,
}

impl Listener {
    /// Forgets what was told so far, so that the next word is about what happens next.
    fn forget(&mut self) {
        while let Some(told) = self.hints.next().now_or_never() {
            assert!(told.is_some(), "the news ended while the store is there");
        }
    }

    /// Waits for word of the election. The time limit of the check is the guard against silence.
    async fn hear_of(&mut self, name: &str) {
        self.next_of(name).await;
    }

    /// The next word of the election; [`Hint::All`] if some was lost.
    async fn next_of(&mut self, name: &str) -> Hint {
        loop {
            let hint = self.hints.next().await.expect("the news goes on while the store is there");
            if hint == Hint::All || hint.election() == Some(&election(name)) {
                return hint;
            }
        }
    }

    async fn hear(&mut self, wanted: Hint) {
        loop {
            let hint = self.hints.next().await.expect("the news goes on while the store is there");
            if hint == wanted || hint == Hint::All {
                return;
            }
        }
    }
}

/// After each of them, not only after the first.
pub async fn every_transition_reaches_another_connection(fixture: Arc<Fixture>) {
    if !fixture.pushes_news().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let mut listener = Listener { hints: there.news() };
    let mut same_connection = Listener { hints: here.news() };
    let (a, b) = (Node::open(&here, "a").await, Node::open(&here, "b").await);

    for name in ["granted", "resigned", "closed", "ended"] {
        listener.forget();
        a.lead(name).await;
        listener.hear_of(name).await;
        same_connection.hear_of(name).await;
    }
    listener.forget();
    a.resign("resigned").await;
    listener.hear_of("resigned").await;

    listener.forget();
    here.delete(election("ended"), true).await.expect("the store answers");
    listener.hear_of("ended").await;

    listener.forget();
    a.close().await;
    listener.hear_of("closed").await;

    if fixture.candidates_judge().await {
        b.lead("retired").await;
        b.lead("retired-too").await;
        let c = Node::open(&here, "c").await;
        listener.forget();
        leading(c.send(c.claim_over("retired", b.stamp())).await);
        listener.hear_of("retired-too").await;
    }
}

/// However a node goes.
pub async fn who_comes_and_goes_reaches_another_connection(fixture: Arc<Fixture>) {
    if !fixture.pushes_news().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let mut listener = Listener { hints: there.news() };
    listener.forget();
    let (leaves, falls_silent) = (Node::open(&here, "a").await, Node::open(&here, "b").await);
    listener.hear(Hint::Nodes).await;
    listener.forget();
    leaves.close().await;
    listener.hear(Hint::Nodes).await;
    if fixture.candidates_judge().await {
        listener.forget();
        assert!(here.retire(falls_silent.stamp()).await.expect("the store answers").value);
        listener.hear(Hint::Nodes).await;
    }
}

/// Whoever shows the nodes shows it without delay.
pub async fn a_change_of_health_reaches_another_connection(fixture: Arc<Fixture>) {
    if !fixture.pushes_news().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let mut listener = Listener { hints: there.news() };
    let node = Node::open(&here, "a").await;
    listener.hear(Hint::Nodes).await;
    for (number, problem) in [(1, Some(Problem::new("no disk"))), (2, None)] {
        listener.forget();
        let report = HealthReport { session: node.session, number, problem };
        assert!(here.report_health(report).await.expect("the store answers").value);
        listener.hear(Hint::Nodes).await;
    }
}

/// So that a hand-over wakes two nodes, and not all that stand.
pub async fn what_concerns_one_node_names_it(fixture: Arc<Fixture>) {
    if !fixture.pushes_news().await || !fixture.candidates_judge().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let mut listener = Listener { hints: there.news() };
    let (a, b) = (Node::open(&here, "a").await, Node::open(&here, "b").await);
    // Whoever does not listen yet is told all at once.
    listener.hear(Hint::Nodes).await;
    let mut expect = async |name: &str, node: Option<&Node>| {
        let hint = listener.next_of(name).await;
        let about = election(name);
        let wanted = match node {
            Some(node) => Hint::Named { election: about, node: node.id.clone() },
            None => Hint::Election(about),
        };
        assert!(hint == wanted || hint == Hint::All, "{hint:?} is not {wanted:?}");
    };
    a.lead("reports").await;
    expect("reports", Some(&a)).await;
    b.stand("reports").await;
    here.petition(election("reports"), None).await.expect("the store answers");
    expect("reports", Some(&a)).await;
    a.resign("reports").await;
    expect("reports", Some(&b)).await;
    a.stand("reports").await;
    b.close().await;
    expect("reports", Some(&a)).await;
    a.resign("reports").await;
    expect("reports", None).await;
}
