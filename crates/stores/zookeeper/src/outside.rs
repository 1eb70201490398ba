//! What is said of an election from outside: that it is ended, that its leader is asked to make way, or that
//! the cluster is degraded. Nothing of that frees a lease.

use serde_json::json;
use tenure_core::{ElectionName, NodeId};
use tenure_store::{Declaration, Deletion, EventKind, Petitioned, StoreError};

use crate::documents::{self, PetitionDocument};
use crate::error::Over;
use crate::history::Transition;
use crate::inner::{Inner, settle};
use crate::multi::Multi;
use crate::resignation::holder_of;
use crate::view::View;

/// The end consumes a term number, so that whoever compares terms sees that it came after everything
/// before. A holder keeps its lease: only itself or its silence can free it.
pub(crate) async fn delete(
    inner: &Inner,
    election: &ElectionName,
    force: bool,
) -> Result<Deletion, StoreError> {
    let connected = inner.link.caught_up().await?;
    let client = &connected.client;
    let (deletion, withdrawn) = settle(async || {
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
        multi.commit().await?;
        forgotten.remove(client);
        let waiting = view.waiting().into_iter().map(|place| place.name.clone()).collect();
        Ok((Deletion::Ended, waiting))
    })
    .await?;
    // Whoever waited is told by its own znode that goes. One that came in the very moment finds out when it
    // asks: it has seen the election before its end.
    let line = inner.paths().line(election);
    let deleted = withdrawn.iter().map(|name| client.delete(&format!("{line}/{name}"), None));
    futures_util::future::join_all(deleted.collect::<Vec<_>>()).await;
    Ok(deletion)
}

/// Only the leader can give its term up: it knows when its work has stopped.
pub(crate) async fn petition(
    inner: &Inner,
    election: &ElectionName,
    to: Option<&NodeId>,
) -> Result<Petitioned, StoreError> {
    let connected = inner.link.caught_up().await?;
    let client = &connected.client;
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
pub(crate) async fn declare(inner: &Inner, declaration: &Declaration) -> Result<bool, StoreError> {
    let connected = inner.link.caught_up().await?;
    let client = &connected.client;
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
