//! What is said of an election from outside: that it is ended, that its leader is asked to make way, or that
//! the cluster is degraded. Nothing of that frees a lease.

use serde_json::json;
use tenure_core::{ElectionName, NodeId};
use tenure_store::{Declaration, Deletion, EventKind, Petitioned, StoreError};
use zookeeper_client::Client;

use crate::documents::{self, PetitionDocument};
use crate::error::Over;
use crate::history::Transition;
use crate::inner::{Inner, settle};
use crate::multi::Multi;
use crate::paths::Place;
use crate::resignation::holder_of;
use crate::view::{MOST, View};

/// The end consumes a term number, so that whoever compares terms sees that it came after everything
/// before. A holder keeps its lease: only itself or its silence can free it. Whoever waited is told by its own znode
/// that goes.
///
/// The places go in the transaction of the end. Deleted after it, one by one, a place could be that of a candidate which
/// had been granted the lease meanwhile: it would lead on, and the next in line beside it.
pub(crate) async fn delete(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
    force: bool,
) -> Result<Deletion, StoreError> {
    let (deletion, rest) = settle(async || {
        let view = View::read(client, Over::Store, inner.paths(), election).await?;
        if !view.document.stood {
            return Ok((Deletion::Absent, Vec::new()));
        }
        if view.holder().is_some() && !force {
            return Ok((Deletion::Led, Vec::new()));
        }
        let mut transition = Transition::of(&view);
        let ended = transition.document.term().next().number();
        let document = &mut transition.document;
        (document.ended, document.floor, document.stood) = (ended, ended, false);
        if view.holder().is_none() {
            transition.lose(inner, None);
        }
        transition.tell(EventKind::ElectionDeleted, None, ended, json!({}));
        let mut multi = Multi::new(client, Over::Store);
        let forgotten = transition.add_to(&mut multi, inner);
        if let Some((_, session, _)) = holder_of(&view) {
            multi.set(&inner.paths().notices(session), b"", None);
        }
        let mut waiting = view.waiting();
        let rest = waiting.split_off(waiting.len().min(MOST));
        view.nobody_entered(&mut multi, inner.paths());
        withdraw(inner, &mut multi, election, &waiting);
        multi.commit().await?;
        forgotten.remove(client);
        Ok((Deletion::Ended, rest.into_iter().cloned().collect::<Vec<Place>>()))
    })
    .await?;
    if let Err(error) = withdraw_rest(inner, client, election, &rest).await {
        // The election has ended. Whoever is still in line finds out when it asks.
        tracing::debug!(%error, %election, "candidates of an ended election are still in line");
    }
    Ok(deletion)
}

/// Makes it part of a transaction that these leave the line.
fn withdraw(inner: &Inner, multi: &mut Multi<'_>, election: &ElectionName, places: &[&Place]) {
    let line = inner.paths().line(election);
    for place in places {
        multi.delete(&format!("{line}/{}", place.name));
    }
}

/// Takes those out of the line who stood in it at the end and were too many for its transaction: servers refuse one of
/// more than a megabyte. Only as long as the record is as it was read, so a candidate that has been granted the lease
/// since the end keeps its place.
async fn withdraw_rest(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
    rest: &[Place],
) -> Result<(), StoreError> {
    for places in rest.chunks(MOST) {
        settle(async || {
            let view = View::read(client, Over::Store, inner.paths(), election).await?;
            let Some(version) = view.version else { return Ok(()) };
            let mut waiting = view.waiting();
            waiting.retain(|place| places.contains(place));
            let mut multi = Multi::new(client, Over::Store);
            multi.unchanged(&inner.paths().election(election), version);
            withdraw(inner, &mut multi, election, &waiting);
            multi.commit().await.map(|_| ())
        })
        .await?;
    }
    Ok(())
}

/// Only the leader can give its term up: it knows when its work has stopped.
pub(crate) async fn petition(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
    to: Option<&NodeId>,
) -> Result<Petitioned, StoreError> {
    settle(async || {
        let view = View::read(client, Over::Store, inner.paths(), election).await?;
        let Some((leader, session, term)) = holder_of(&view) else { return Ok(Petitioned::NobodyLeads) };
        if let Some(to) = to {
            let nodes = view.nodes(client, Over::Store, inner.paths()).await?;
            let mut waiting = view.waiting().into_iter();
            if !waiting.any(|place| nodes.get(&place.session).is_some_and(|node| node == to.as_str())) {
                return Ok(Petitioned::NotStanding);
            }
        }
        let path = inner.paths().election(election);
        let noted = Petitioned::Noted { leader: documents::node(&path, &leader)?, term };
        let petition = PetitionDocument { term: term.number(), to: to.map(ToString::to_string) };
        if view.document.petition.as_ref() == Some(&petition) {
            return Ok(noted);
        }
        let mut transition = Transition::of(&view);
        transition.document.petition = Some(petition);
        let data = to.map_or_else(|| json!({}), |to| json!({"to": to.as_str()}));
        transition.tell(EventKind::TransferRequested, Some(&leader), term.number(), data);
        let mut multi = Multi::new(client, Over::Store);
        let forgotten = transition.add_to(&mut multi, inner);
        multi.set(&inner.paths().notices(session), election.as_str().as_bytes(), None);
        multi.commit().await?;
        forgotten.remove(client);
        Ok(noted)
    })
    .await
}

/// What a leader says of the whole cluster: told once.
pub(crate) async fn declare(
    inner: &Inner,
    client: &Client,
    declaration: &Declaration,
) -> Result<bool, StoreError> {
    let Declaration { lease, degraded, live, minimum } = declaration;
    settle(async || {
        let view = View::read(client, Over::Store, inner.paths(), &lease.election).await?;
        let Some((node, session, term)) = holder_of(&view) else { return Ok(false) };
        if (session, term) != (lease.session, lease.term) || view.document.degraded == *degraded {
            return Ok(false);
        }
        let kind = if *degraded { EventKind::ClusterDegraded } else { EventKind::ClusterRecovered };
        let mut transition = Transition::of(&view);
        transition.document.degraded = *degraded;
        let data = json!({"live": live, "minimum": minimum});
        transition.tell(kind, Some(&node), term.number(), data);
        let mut multi = Multi::new(client, Over::Store);
        multi.exists(&inner.paths().session(session));
        let forgotten = transition.add_to(&mut multi, inner);
        multi.commit().await?;
        forgotten.remove(client);
        Ok(true)
    })
    .await
}
