//! Resignation: a lease, a place in line, or an unanswered claim is given up. A lease goes to whoever is next.

use std::sync::Arc;

use serde_json::{Value, json};
use tenure_core::{ElectionName, NodeId, SessionId, Term};
use tenure_store::{Cause, EventKind, Resign, StoreError};
use zookeeper_client::Client;

use crate::documents::{self, CandidateDocument};
use crate::error::Over;
use crate::history::{Forgotten, Transition};
use crate::inner::{Inner, Tenant, settle};
use crate::multi::{Multi, Stopped};
use crate::paths::Place;
use crate::seats::Seat;
use crate::view::View;

/// Under a session that is over there is nothing left to give up, so that is no error.
pub(crate) async fn resign(inner: &Arc<Inner>, resign: &Resign) -> Result<(), StoreError> {
    let tenant = match inner.expect_tenant(resign.session).await {
        Ok(tenant) => tenant,
        Err(StoreError::SessionLost) => return Ok(()),
        Err(error) => return Err(error),
    };
    tenant.seat(&resign.election, |seat| seat.barrier = seat.barrier.max(resign.attempt));
    let resigned = settle(|| attempt(inner, &tenant, resign)).await;
    match resigned {
        Err(StoreError::SessionLost) => Ok(()),
        other => other,
    }
}

async fn attempt(inner: &Inner, tenant: &Tenant, resign: &Resign) -> Result<(), Stopped> {
    let (paths, line) = (inner.paths(), tenant.line());
    // It may be old: our own place is always seen over our own connection, and whatever else has changed, or whoever has
    // entered the line, makes the transaction stale.
    let view = View::read(line.client(), Over::Session, paths, &resign.election).await?;
    // It must not undo a claim that was sent after it: its node may have been told since that it leads.
    if tenant.seat(&resign.election, |seat| seat.answered > resign.attempt) {
        return Ok(());
    }
    let Some(place) = view.place(resign.session) else {
        tenant.seat(&resign.election, |seat| seat.queued = None);
        return Ok(());
    };
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&paths.session(resign.session), line.number);
    let mut forgotten = None;
    if view.holds(resign.session) {
        if resign.term.is_some_and(|term| view.held() != Some(term)) {
            return Ok(());
        }
        let next = successor(inner, (line.client(), Over::Session), &view, resign.to.as_ref()).await?;
        forgotten = Some(pass_on(inner, &mut multi, &view, next, resign.cause));
    } else if let Some(version) = view.version {
        // A lease may be passed on to it this very moment: then it is given up as one.
        multi.unchanged(&paths.election(&resign.election), version);
    }
    multi.delete(&format!("{}/{}", paths.line(&resign.election), place.name));
    multi.commit().await?;
    if let Some(forgotten) = forgotten {
        forgotten.remove(line.client());
    }
    tenant.seat(&resign.election, Seat::leave);
    Ok(())
}

/// Somebody to whom a lease is passed on.
struct Successor {
    node: String,
    place: Place,
    /// Behind nobody but the holder, and so woken by its departure.
    is_next: bool,
    /// Chosen by the holder, or by whoever asked it to make way.
    is_named: bool,
}

/// To whom the lease is passed on: to whom it was promised, if that one stands, or else to the next in line.
async fn successor(
    inner: &Inner,
    (client, over): (&Client, Over),
    view: &View,
    to: Option<&NodeId>,
) -> Result<Option<Successor>, StoreError> {
    let Some(holder) = &view.document.holder else { return Ok(None) };
    // Whoever stands since before an end is told of the end, and not that it leads.
    if view.document.ended > holder.term {
        return Ok(None);
    }
    let waiting = view.waiting();
    if let Some(to) = to {
        let nodes = view.nodes(client, over, inner.paths()).await?;
        let mut named = waiting.iter().enumerate();
        let named =
            named.find(|(_, place)| nodes.get(&place.session).is_some_and(|node| node == to.as_str()));
        if let Some((index, place)) = named {
            let (node, place) = (to.to_string(), Place::clone(place));
            return Ok(Some(Successor { node, place, is_next: index == 0, is_named: true }));
        }
    }
    let asked = view.document.petition.as_ref().is_some_and(|petition| petition.term == holder.term);
    for (index, place) in waiting.iter().enumerate() {
        // Whose place is gone by now is passed over, as if it had never been in line.
        if let Some(node) = inner.node_in(client, over, &view.election, place).await? {
            let place = Place::clone(place);
            return Ok(Some(Successor { node, place, is_next: index == 0, is_named: asked }));
        }
    }
    Ok(None)
}

/// Frees the lease, and grants it to a successor in the same transaction: whoever stands in line claims. It leads
/// once it has heard of it, by asking again.
fn pass_on(
    inner: &Inner,
    multi: &mut Multi<'_>,
    view: &View,
    next: Option<Successor>,
    cause: Cause,
) -> Forgotten {
    let mut transition = Transition::of(view);
    if let Some(holder) = transition.document.holder.take() {
        let asked =
            transition.document.petition.as_ref().is_some_and(|petition| petition.term == holder.term);
        let mut data = cause.data();
        if let Some(named) = next.as_ref().filter(|next| next.is_named) {
            data.insert(String::from("to"), json!(named.node));
            if !asked {
                let request = json!({"to": named.node});
                transition.tell(EventKind::TransferRequested, Some(&holder.node), holder.term, request);
            }
        }
        transition.tell(cause.event(), Some(&holder.node), holder.term, Value::Object(data));
    }
    if let Some(next) = &next {
        transition.grant(next.place.session, &next.node);
        let path = format!("{}/{}", inner.paths().line(&view.election), next.place.name);
        if next.is_next {
            multi.exists(&path);
        } else {
            // It may wait far behind: it is told by its own znode.
            let data = CandidateDocument { node: next.node.clone() };
            multi.set(&path, &documents::write(&data), None);
        }
        multi.set(&inner.paths().grants(next.place.session), b"", None);
    }
    // Whoever was told that it stands is not passed over, be it named or next.
    view.nobody_entered(multi, inner.paths());
    transition.add_to(multi, inner)
}

/// Why a session gives up everything at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was closed.
    Closed(Cause),
    /// Its own process has opened another one.
    Superseded,
}

/// Takes a session that is over out of the line of an election, and frees its lease. The connection has caught up.
pub(crate) async fn leave(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
    session: SessionId,
    ending: Ending,
) -> Result<(), StoreError> {
    settle(async || {
        let view = View::read(client, Over::Store, inner.paths(), election).await?;
        let Some(place) = view.place(session) else { return Ok(()) };
        let mut multi = Multi::new(client, Over::Store);
        let mut forgotten = None;
        if view.holds(session) {
            forgotten = Some(match ending {
                Ending::Closed(cause) => {
                    let next = successor(inner, (client, Over::Store), &view, None).await?;
                    pass_on(inner, &mut multi, &view, next, cause)
                }
                Ending::Superseded => {
                    let mut transition = Transition::of(&view);
                    if let Some(holder) = transition.document.holder.take() {
                        let data = inner.superseded(session);
                        transition.tell(EventKind::LeaderLost, Some(&holder.node), holder.term, data);
                    }
                    transition.add_to(&mut multi, inner)
                }
            });
        } else if let Some(version) = view.version {
            // A lease may be passed on to it this very moment: then it is given up as one.
            multi.unchanged(&inner.paths().election(election), version);
        }
        multi.delete(&format!("{}/{}", inner.paths().line(election), place.name));
        multi.commit().await?;
        if let Some(forgotten) = forgotten {
            forgotten.remove(client);
        }
        Ok(())
    })
    .await
}

/// The term that a holder is asked to give up must be the one that it has.
pub(crate) fn holder_of(view: &View) -> Option<(String, SessionId, Term)> {
    let place = view.holder()?;
    let holder = view.document.holder.as_ref()?;
    Some((holder.node.clone(), place.session, Term::new(holder.term)))
}
