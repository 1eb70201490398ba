//! Claims: a place in line, and the lease for whoever is first when it is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::{Standing, Term};
use tenure_store::{Claim, StoreError};
use zookeeper_client::{CreateMode, MultiWriteResult};

use crate::documents::{self, CandidateDocument};
use crate::error::{Over, classify, foreign};
use crate::history::Transition;
use crate::inner::{Inner, Line, Tenant, lock, settle};
use crate::multi::{Multi, Stopped};
use crate::news;
use crate::paths::Place;
use crate::seats::Seat;
use crate::view::{Pulses, View};

pub(crate) async fn claim(inner: &Arc<Inner>, claim: &Claim) -> Result<Standing, StoreError> {
    let tenant = inner.expect_tenant(claim.session).await?;
    let confirmed = Confirmed::default();
    // Most likely it has to wait on.
    if tenant.seat(&claim.election, Seat::looks) {
        confirmed.make_sure(&tenant.line()).await?;
    }
    settle(|| attempt(inner, &tenant, claim, &confirmed)).await
}

/// Whether what is read is no older than the claim. An old view does no harm to whoever compares and sets it, and a
/// lease that was seen to be ours is ours as long as the session lives. But nobody is told to wait by an old view.
#[derive(Default)]
struct Confirmed(AtomicBool);

impl Confirmed {
    /// A transaction of this claim was answered.
    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Goes on if it is; or else makes it so, to read again.
    async fn expect(&self, line: &Line) -> Result<(), Stopped> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.make_sure(line).await?;
        Err(Stopped::Stale)
    }

    async fn make_sure(&self, line: &Line) -> Result<(), StoreError> {
        line.connected.catch_up(Over::Session).await?;
        self.note();
        Ok(())
    }
}

async fn attempt(
    inner: &Arc<Inner>,
    tenant: &Arc<Tenant>,
    claim: &Claim,
    confirmed: &Confirmed,
) -> Result<Standing, Stopped> {
    let (paths, line) = (inner.paths(), &tenant.line());
    let holder = tenant.seat(&claim.election, |seat| seat.holder);
    let read = View::with(line.client(), Over::Session, paths, &claim.election, holder.as_slice());
    let (mut view, pulses) = read.await?;
    let ended_since = claim.since.is_some_and(|since| Term::new(view.document.ended) > since);
    if ended_since || is_overtaken(tenant, claim) {
        return waiting(inner, line, &view, pulses).await;
    }
    let told = claim.above > view.document.term();
    view.document.floor = view.document.floor.max(claim.above.number());
    if claim.tell_only {
        confirmed.expect(line).await?;
        note(inner, tenant, line, &view, told).await?;
        return waiting(inner, line, &view, pulses).await;
    }
    if let Some(term) = view.held().filter(|_| view.holds(claim.session)) {
        note(inner, tenant, line, &view, told).await?;
        return lead(inner, tenant, claim, &view, term).await;
    }
    let place = view.place(claim.session).cloned();
    let stands = place.as_ref().filter(|place| place.priority == claim.priority);
    let queue = view.waiting();
    let before = match stands {
        Some(place) => queue.iter().position(|other| other.session == place.session).unwrap_or(0),
        // At the end of those of our priority.
        None => queue.iter().filter(|other| outranks(other, claim)).count(),
    };
    if view.holder().is_none() && before == 0 {
        return grant(inner, tenant, line, claim, &view, place.as_ref()).await;
    }
    if stands.is_none() {
        stand(inner, tenant, line, claim, &view, place.as_ref(), told).await?;
        confirmed.note();
        return Err(Stopped::Stale); // only now we know behind whom
    }
    confirmed.expect(line).await?;
    let ahead = before.checked_sub(1).map(|index| queue[index]).or_else(|| view.holder());
    let Some(ahead) = ahead else { return Err(Stopped::Stale) };
    note(inner, tenant, line, &view, told).await?;
    wait_behind(inner, tenant, claim, ahead).await?;
    tenant.seat(&claim.election, |seat| {
        seat.answered = seat.answered.max(claim.attempt);
        seat.queued = Some(before);
        seat.holder = view.holder().map(|place| place.session);
    });
    waiting(inner, line, &view, pulses).await
}

fn outranks(other: &Place, claim: &Claim) -> bool {
    other.session != claim.session && other.priority >= claim.priority
}

/// The lease is ours: granted to a claim whose answer was lost, or passed on by whoever had it before.
async fn lead(
    inner: &Inner,
    tenant: &Tenant,
    claim: &Claim,
    view: &View,
    term: Term,
) -> Result<Standing, Stopped> {
    let Some(place) = view.place(claim.session) else { return Err(Stopped::Stale) };
    own(inner, tenant, claim, place).await?;
    tenant.seat(&claim.election, |seat| seat.lead(claim.attempt));
    Ok(Standing::Leading { term })
}

fn is_overtaken(tenant: &Tenant, claim: &Claim) -> bool {
    tenant.seat(&claim.election, |seat| claim.attempt < seat.barrier)
}

/// Nothing was granted, and this is how the election is.
async fn waiting(inner: &Inner, line: &Line, view: &View, mut pulses: Pulses) -> Result<Standing, Stopped> {
    let holder = view.holder().map(|place| place.session);
    pulses.complete(line.client(), Over::Session, inner.paths(), holder.as_slice()).await?;
    lock(&inner.signs).note(&pulses);
    Ok(Standing::Waiting { seen: view.record(inner.paths(), &pulses)? })
}

/// Writes down the highest term that the candidate has seen, if the store has not.
async fn note(inner: &Inner, tenant: &Tenant, line: &Line, view: &View, told: bool) -> Result<(), Stopped> {
    if !told {
        return Ok(());
    }
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&inner.paths().session(tenant.session), line.number);
    Transition::of(view).add_to(&mut multi, inner);
    multi.commit().await.map(|_| ())
}

/// Enters the line. The record must not have changed: an end in between would not see us. And whoever ends the election
/// or passes the lease on has to see us from now on, also through a server that is behind: so entering is counted, in
/// the version of the line's own znode. Not in the record's: that would wake everybody.
async fn stand(
    inner: &Inner,
    tenant: &Tenant,
    line: &Line,
    claim: &Claim,
    view: &View,
    place: Option<&Place>,
    told: bool,
) -> Result<(), Stopped> {
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&inner.paths().session(tenant.session), line.number);
    let mut transition = Transition::of(view);
    transition.start(tenant.node.as_str());
    match view.version {
        Some(version) if view.document.stood && !told => {
            multi.unchanged(&inner.paths().election(&claim.election), version);
        }
        _ => drop(transition.add_to(&mut multi, inner)),
    }
    multi.set(&inner.paths().line(&claim.election), b"", None);
    enter(inner, tenant, claim, &mut multi, place);
    if is_overtaken(tenant, claim) {
        return Err(Stopped::Stale);
    }
    let done = multi.commit().await?;
    remember(tenant, claim, &done);
    Ok(())
}

/// Makes our znode in line part of a transaction; one of another priority makes way for it.
fn enter(inner: &Inner, tenant: &Tenant, claim: &Claim, multi: &mut Multi<'_>, place: Option<&Place>) {
    let line = inner.paths().line(&claim.election);
    if let Some(place) = place {
        multi.delete(&format!("{line}/{}", place.name));
    }
    let data = documents::write(&CandidateDocument { node: tenant.node.to_string() });
    let path = format!("{line}/{}", Place::prefix(claim.session, claim.priority));
    multi.create(&path, &data, &inner.link.options(CreateMode::EphemeralSequential));
}

/// Notes the name that the servers gave to our znode: it is ours, since we made it.
fn remember(tenant: &Tenant, claim: &Claim, done: &[MultiWriteResult]) {
    let mut made = done.iter().filter_map(|result| match result {
        MultiWriteResult::Create { path, .. } => path.rsplit('/').next(),
        _ => None,
    });
    if let Some(name) = made.rfind(|name| Place::parse(name).is_some()) {
        tenant.seat(&claim.election, |seat| seat.place = Some(name.to_owned()));
    }
}

/// A znode in line that bears our name must be of our session of ZooKeeper, or it does not vanish with it.
async fn own(inner: &Inner, tenant: &Tenant, claim: &Claim, place: &Place) -> Result<(), Stopped> {
    if tenant.seat(&claim.election, |seat| seat.place.as_ref() == Some(&place.name)) {
        return Ok(());
    }
    let path = format!("{}/{}", inner.paths().line(&claim.election), place.name);
    let stat = tenant.client().check_stat(&path).await.map_err(|error| classify(&error, Over::Session))?;
    let Some(stat) = stat else { return Err(Stopped::Stale) };
    if stat.ephemeral_owner != tenant.client().session_id().0 {
        return Err(foreign(&path, "it bears the name of a session that does not own it").into());
    }
    tenant.seat(&claim.election, |seat| seat.place = Some(place.name.clone()));
    Ok(())
}

async fn grant(
    inner: &Arc<Inner>,
    tenant: &Tenant,
    line: &Line,
    claim: &Claim,
    view: &View,
    place: Option<&Place>,
) -> Result<Standing, Stopped> {
    let paths = inner.paths();
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&paths.session(tenant.session), line.number);
    let mut transition = Transition::of(view);
    transition.start(tenant.node.as_str());
    transition.lose(inner, Some(tenant));
    let term = transition.grant(tenant.session, tenant.node.as_str());
    let forgotten = transition.add_to(&mut multi, inner);
    match place {
        Some(place) => {
            own(inner, tenant, claim, place).await?;
            multi.exists(&format!("{}/{}", paths.line(&claim.election), place.name));
        }
        None => enter(inner, tenant, claim, &mut multi, None),
    }
    multi.count(&paths.grants(tenant.session));
    // Nothing is awaited between here and the request: a resignation that comes now finds the grant.
    if is_overtaken(tenant, claim) {
        return Err(Stopped::Stale);
    }
    let done = multi.commit().await?;
    remember(tenant, claim, &done);
    forgotten.remove(line.client());
    tenant.seat(&claim.election, |seat| seat.lead(claim.attempt));
    if let Some(lost) = &view.document.holder {
        news::expired(inner, &lost.node, &lost.session);
    }
    Ok(Standing::Leading { term })
}

/// Waits for whoever stands directly before us, and for nobody else.
async fn wait_behind(
    inner: &Arc<Inner>,
    tenant: &Arc<Tenant>,
    claim: &Claim,
    ahead: &Place,
) -> Result<(), Stopped> {
    let place = tenant.seat(&claim.election, |seat| seat.place.clone());
    let folder = inner.paths().line(&claim.election);
    let own = place.map(|name| format!("{folder}/{name}"));
    let watched = std::iter::once(format!("{folder}/{}", ahead.name)).chain(own);
    if !news::watch(inner, tenant, &claim.election, watched).await? {
        return Err(Stopped::Stale);
    }
    Ok(())
}
