//! However many ask at once, one gets it (S1, S2).

use std::sync::Arc;

use tenure_core::{Opening, Stamp, Standing};
use tenure_store::{Claim, Store};

use super::cast::{Node, events, holder, read};
use super::fixture::Fixture;
use super::history::assert_sound;

const CONNECTIONS: usize = 4;
const TAKERS: usize = 8;
const ROUNDS: usize = 50;

async fn connections(fixture: &Fixture) -> Vec<Arc<dyn Store>> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(fixture.connect().await);
    }
    connections
}

async fn takers(connections: &[Arc<dyn Store>]) -> Vec<Arc<Node>> {
    let mut takers = Vec::new();
    for number in 0..TAKERS {
        let connection = &connections[number % CONNECTIONS];
        takers.push(Arc::new(Node::open(connection, &format!("taker-{number}")).await));
    }
    takers
}

/// All claim at once, each in a task of its own; exactly one must lead, and the others see it.
async fn race(takers: &[Arc<Node>], name: &str, over: Option<Stamp>) {
    let claims: Vec<_> = takers
        .iter()
        .map(|taker| {
            let taker = Arc::clone(taker);
            let claim = Claim { over, ..taker.claim(name) };
            tokio::spawn(async move { (taker.id.clone(), taker.send(claim).await) })
        })
        .collect();
    let (mut leaders, mut seen) = (Vec::new(), Vec::new());
    for claim in claims {
        match claim.await.expect("no claim panics") {
            (id, Standing::Leading { term }) => leaders.push((id, term)),
            (_, Standing::Waiting { seen: record }) => {
                seen.extend(record.holder.map(|holder| (holder.node, holder.term)));
            }
        }
    }
    assert_eq!(leaders.len(), 1, "not exactly one leader of {name}: {leaders:?}");
    assert_eq!(seen, vec![leaders[0].clone(); TAKERS - 1], "the refused see the leader of {name}");
    let now = holder(&takers[0].store, name).await.map(|holder| (holder.node, holder.term));
    assert_eq!(now.as_ref(), leaders.first());
    assert_sound(&events(&takers[0].store, name).await);
}

/// All have timed the same silence, to the same instant.
pub async fn many_takers_of_one_pulse_yield_exactly_one_leader(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let connections = connections(&fixture).await;
    let takers = takers(&connections).await;
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let silent = Node::open(&connections[round % CONNECTIONS], &format!("silent-{round}")).await;
        let term = silent.lead(&name).await;
        race(&takers, &name, Some(silent.stamp())).await;
        assert!(read(&connections[0], &name).await.term > term);
        silent.expect_lost().await;
    }
}

/// Nobody has ever led here.
pub async fn many_first_claims_yield_exactly_one_leader(fixture: Arc<Fixture>) {
    if !fixture.orders_by_priority().await {
        return;
    }
    let connections = connections(&fixture).await;
    let takers = takers(&connections).await;
    for round in 0..ROUNDS {
        race(&takers, &format!("round-{round}"), None).await;
    }
}

/// A deployment that starts everything under one name gets one node, not two leaders.
pub async fn many_processes_of_one_node_id_yield_exactly_one_session(fixture: Arc<Fixture>) {
    let connections = connections(&fixture).await;
    for round in 0..10 {
        let openings: Vec<_> = (0..TAKERS)
            .map(|number| {
                let node = Node::new(&connections[number % CONNECTIONS], &format!("same-{round}"));
                tokio::spawn(async move {
                    let opening = node.store.open(node.opening()).await.expect("the store answers").value;
                    (node.session, opening)
                })
            })
            .collect();
        let (mut opened, mut occupants) = (Vec::new(), Vec::new());
        for opening in openings {
            match opening.await.expect("no opening panics") {
                (session, Opening::Opened { .. }) => opened.push(session),
                (_, Opening::Occupied { pulse }) => occupants.push(pulse.stamp.session),
            }
        }
        assert_eq!(opened.len(), 1, "{opened:?}");
        assert_eq!(occupants, vec![opened[0]; TAKERS - 1]);
    }
}
