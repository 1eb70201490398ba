//! Resignation: a lease, a place in line, or an unanswered claim is given up.

use std::sync::Arc;

use serde_json::json;
use tenure_core::{ElectionName, NodeId, SessionId, Term};
use tenure_store::{EventKind, Resign, StoreError};
use zookeeper_client::Client;

use crate::documents::HeirDocument;
use crate::error::Over;
use crate::history::Transition;
use crate::inner::{Inner, Tenant, settle};
use crate::multi::{Multi, Stopped};
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
    let view = match known(tenant, resign) {
        Some(view) => view,
        None => View::read(line.client(), Over::Session, paths, &resign.election).await?,
    };
    // It must not undo a claim that was sent after it: its node may have been told since that it leads.
    if tenant.seat(&resign.election, |seat| seat.answered > resign.attempt) {
        return Ok(());
    }
    let Some(place) = view.place(resign.session) else {
        tenant.seat(&resign.election, |seat| seat.queued = false);
        return Ok(());
    };
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&paths.session(resign.session), line.number);
    let mut forgotten = None;
    if view.holds(resign.session) {
        if resign.term.is_some_and(|term| view.held() != Some(term)) {
            return Ok(());
        }
        let heir = heir(inner, tenant, &view, resign.to.as_ref()).await?;
        if let Some(heir) = &heir {
            // It may wait far behind: it is told by its own znode.
            let place = view.place(heir.session).map(|place| place.name.as_str()).unwrap_or_default();
            let path = format!("{}/{place}", paths.line(&resign.election));
            multi.set(&path, &heir.data, None);
        }
        let mut transition = Transition::of(&view);
        free(&mut transition, heir);
        forgotten = Some(transition.add_to(&mut multi, inner));
    }
    multi.delete(&format!("{}/{}", paths.line(&resign.election), place.name));
    multi.commit().await?;
    if let Some(forgotten) = forgotten {
        forgotten.remove(line.client());
    }
    tenant.seat(&resign.election, |seat| (seat.place, seat.queued) = (None, false));
    Ok(())
}

/// The record as it was granted, if that is all there is to know: a round trip less. If it has changed since (a
/// petition, say), the transaction is refused, and what is there is read.
fn known(tenant: &Tenant, resign: &Resign) -> Option<View> {
    let granted = tenant.seat(&resign.election, |seat| seat.granted.take())?;
    let is_meant = resign.term.is_none() || resign.term == granted.held();
    // An heir is looked for in the whole line.
    (is_meant && resign.to.is_none()).then_some(granted)
}

/// Somebody for whom a lease is kept.
struct Heir {
    node: String,
    session: SessionId,
    data: Vec<u8>,
}

/// For whom the lease is to be kept, if for anybody.
async fn heir(
    inner: &Inner,
    tenant: &Tenant,
    view: &View,
    to: Option<&NodeId>,
) -> Result<Option<Heir>, StoreError> {
    let asked = view.document.petition.as_ref().is_some_and(|petition| {
        view.document.holder.as_ref().is_some_and(|holder| holder.term == petition.term)
    });
    if to.is_none() && !asked {
        return Ok(None);
    }
    let nodes = view.nodes(&tenant.client(), Over::Session, inner.paths()).await?;
    let heir = view.waiting(true).into_iter().find_map(|place| {
        let node = nodes.get(&place.session)?;
        // A lease kept for somebody who does not stand would wait for nobody.
        to.is_none_or(|to| to.as_str() == node).then(|| (node.clone(), place.session))
    });
    Ok(heir.map(|(node, session)| {
        let data = crate::documents::write(&crate::documents::CandidateDocument { node: node.clone() });
        Heir { node, session, data }
    }))
}

fn free(transition: &mut Transition<'_>, heir: Option<Heir>) {
    let Some(holder) = transition.document.holder.take() else { return };
    let asked = transition.document.petition.as_ref().is_some_and(|petition| petition.term == holder.term);
    let mut data = json!({});
    if let Some(heir) = &heir {
        data = json!({"to": heir.node});
        if !asked {
            transition.tell(EventKind::TransferRequested, Some(&holder.node), holder.term, data.clone());
        }
    }
    transition.tell(EventKind::LeaderResigned, Some(&holder.node), holder.term, data);
    transition.document.heir =
        heir.map(|heir| HeirDocument { session: heir.session.to_string(), node: heir.node });
}

/// Why a session gives up everything at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its node closed it.
    Closed,
    /// Its own process has opened another one.
    Superseded,
}

/// Takes a session that is over out of the line of an election, and frees its lease.
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
            let mut transition = Transition::of(&view);
            if let Some(holder) = transition.document.holder.take() {
                let (kind, data) = match ending {
                    Ending::Closed => (EventKind::LeaderResigned, json!({})),
                    Ending::Superseded => (EventKind::LeaderLost, json!({"reason": "superseded"})),
                };
                transition.tell(kind, Some(&holder.node), holder.term, data);
            }
            forgotten = Some(transition.add_to(&mut multi, inner));
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
