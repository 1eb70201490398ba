//! Elections in the layout of another library. The first in line leads, and nothing is kept beside the line: no
//! record, no history. The number of the transaction that made the leader's znode serves as its term:
//! the next in line always has a higher one.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Age, ElectionName, Holder, NodeId, Pulse, Record, SessionId, Stamp, Standing, Term};
use tenure_store::{Candidate, Claim, Resign, StoreError};
use zookeeper_client::{Client, CreateMode, Error, MultiReadResult, MultiWriteResult};

use crate::error::{Over, classify};
use crate::inner::{Inner, Line, Tenant, lock, settle};
use crate::layout::{DONE, Layout};
use crate::multi::{Multi, Stopped};
use crate::news;
use crate::seats::Seat;
use crate::view::{MOST, Pulses};

/// Where the elections of others are.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    pub layout: Layout,
    /// Without a slash at its end; empty for the root.
    pub base: String,
}

/// How soon one who waits behind a stranger asks again, whose time-out nobody knows.
const STRANGER: Duration = Duration::from_secs(10);

/// The highest terms of how many elections are remembered that no session of ours stands for.
const MOST_HIGHEST: usize = 10_000;

/// The highest term that was seen in an election, and the session of ZooKeeper that it was seen of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Highest {
    term: Term,
    owner: i64,
}

struct Entry {
    name: String,
    sequence: i64,
    /// The session of ZooKeeper that it goes with.
    owner: i64,
    term: Term,
    /// What its owner says of itself.
    node: String,
}

struct Lineup {
    folder: String,
    entries: Vec<Entry>,
    /// When the election was declared over, if it was.
    ended: Term,
}

impl Foreign {
    pub(crate) fn folder(&self, election: &ElectionName) -> String {
        format!("{}/{election}", self.base)
    }

    /// As this connection's server knows it, which may be behind. Our own place is always seen over our own connection,
    /// and with it all that were there before; and whoever waits is told when the one before it goes.
    async fn read(&self, client: &Client, over: Over, election: &ElectionName) -> Result<Lineup, StoreError> {
        let folder = self.folder(election);
        let failed = |error: Error| classify(&error, over);
        let names = match client.list_children(&folder).await {
            Ok(names) => names,
            Err(Error::NoNode) => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let mut lineup = Lineup { folder, entries: Vec::new(), ended: Term::NONE };
        let is_known = |name: &String| name == DONE || self.layout.sequence(name).is_some();
        let names: Vec<String> = names.into_iter().filter(is_known).collect();
        for names in names.chunks(MOST) {
            let mut reader = client.new_multi_reader();
            for name in names {
                reader.add_get_data(&format!("{}/{name}", lineup.folder)).map_err(failed)?;
            }
            for (name, read) in names.iter().zip(reader.commit().await.map_err(failed)?) {
                // Whoever left meanwhile does not stand.
                let MultiReadResult::Data { data, stat } = read else { continue };
                let term = Term::new(u64::try_from(stat.czxid).unwrap_or(0));
                let Some(sequence) = self.layout.sequence(name) else {
                    lineup.ended = term;
                    continue;
                };
                let (name, node) = (name.clone(), String::from_utf8_lossy(&data).into_owned());
                lineup.entries.push(Entry { name, sequence, owner: stat.ephemeral_owner, term, node });
            }
        }
        lineup.entries.sort_by_key(|entry| entry.sequence);
        Ok(lineup)
    }
}

/// A name for whoever gave none, or none that is one.
fn node_of(entry: &Entry) -> NodeId {
    let fallback = || NodeId::new(format!("session-{:x}", entry.owner)).expect("a short name without blanks");
    NodeId::new(entry.node.trim()).unwrap_or_else(|_| fallback())
}

impl Lineup {
    fn place(&self, owner: i64) -> Option<usize> {
        self.entries.iter().position(|entry| entry.owner == owner)
    }

    fn path(&self, entry: &Entry) -> String {
        format!("{}/{}", self.folder, entry.name)
    }
}

impl Inner {
    /// Which session of Tenure an entry belongs to, if to one of this store; a number of its own otherwise.
    fn session_of(&self, owner: i64) -> SessionId {
        let tenants = lock(&self.tenants);
        let ours = tenants.values().find(|tenant| tenant.client().session_id().0 == owner);
        ours.map_or_else(|| SessionId::from_u128(u128::from(owner.cast_unsigned())), |tenant| tenant.session)
    }

    async fn pulse_of(&self, client: &Client, over: Over, owner: i64) -> Result<Pulse, StoreError> {
        let session = self.session_of(owner);
        if self.tenant(session).is_some() {
            return Ok(Pulses::read(client, over, self.paths(), [session]).await?.of(session));
        }
        let stamp = Stamp { session, sequence: 0 };
        Ok(Pulse { stamp, ttl: STRANGER, age: Age::Unknown })
    }

    /// The highest term seen in an election, with that of this entry.
    fn highest_of(&self, election: &ElectionName, first: Option<&Entry>) -> Highest {
        let mut highest = lock(&self.highest);
        let known = highest.get(election).copied().unwrap_or_default();
        let Some(first) = first.filter(|first| first.term > known.term) else { return known };
        if highest.len() >= MOST_HIGHEST && !highest.contains_key(election) {
            // Those are remembered that a session of ours has something to do with.
            let tenants = lock(&self.tenants);
            let is_ours =
                |name: &ElectionName| tenants.values().any(|tenant| lock(&tenant.seats).contains(name));
            highest.retain(|name, _| is_ours(name));
        }
        let seen = Highest { term: first.term, owner: first.owner };
        highest.insert(election.clone(), seen);
        seen
    }

    async fn foreign_record(
        &self,
        client: &Client,
        over: Over,
        election: &ElectionName,
        lineup: &Lineup,
    ) -> Result<Record, StoreError> {
        let holder = match lineup.entries.first() {
            Some(first) => Some(Holder {
                node: node_of(first),
                term: first.term,
                pulse: self.pulse_of(client, over, first.owner).await?,
            }),
            None => None,
        };
        // Nobody writes it down: what this store has seen does not fall.
        let term = self.highest_of(election, lineup.entries.first()).term;
        Ok(Record { term, holder, ended: lineup.ended, petition: None })
    }
}

pub(crate) async fn read(
    inner: &Inner,
    foreign: &Foreign,
    client: &Client,
    election: &ElectionName,
) -> Result<(Record, Option<String>), StoreError> {
    let lineup = foreign.read(client, Over::Store, election).await?;
    let record = inner.foreign_record(client, Over::Store, election, &lineup).await?;
    Ok((record, lineup.entries.first().map(|first| lineup.path(first))))
}

pub(crate) async fn candidates(
    foreign: &Foreign,
    client: &Client,
    election: &ElectionName,
) -> Result<Vec<Candidate>, StoreError> {
    let lineup = foreign.read(client, Over::Store, election).await?;
    Ok(lineup.entries.iter().skip(1).map(|entry| Candidate { node: node_of(entry), priority: 0 }).collect())
}

/// Whatever is below the base may be an election.
pub(crate) async fn elections(foreign: &Foreign, client: &Client) -> Result<Vec<ElectionName>, StoreError> {
    let base = if foreign.base.is_empty() { "/" } else { foreign.base.as_str() };
    let listed = client.list_children(base).await.map_err(|error| classify(&error, Over::Store))?;
    let mut names: Vec<_> = listed
        .into_iter()
        .filter(|name| !matches!(name.as_str(), "zookeeper" | "tenure"))
        .filter_map(|name| ElectionName::new(name).ok())
        .collect();
    names.sort_unstable();
    Ok(names)
}

pub(crate) async fn claim(
    inner: &Arc<Inner>,
    foreign: &Foreign,
    claim: &Claim,
) -> Result<Standing, StoreError> {
    let tenant = inner.expect_tenant(claim.session).await?;
    let stands = tenant.seat(&claim.election, |seat| seat.place.is_some());
    if !stands {
        // An end must not be missed, or it stands in an election that is over.
        tenant.line().connected.catch_up(Over::Session).await?;
    }
    settle(|| attempt(inner, foreign, &tenant, claim)).await
}

async fn attempt(
    inner: &Arc<Inner>,
    foreign: &Foreign,
    tenant: &Arc<Tenant>,
    claim: &Claim,
) -> Result<Standing, Stopped> {
    let line = tenant.line();
    let owner = line.client().session_id().0;
    let lineup = foreign.read(line.client(), Over::Session, &claim.election).await?;
    let seen = inner.foreign_record(line.client(), Over::Session, &claim.election, &lineup).await?;
    let overtaken = || tenant.seat(&claim.election, |seat| claim.attempt < seat.barrier);
    // For whoever comes now, too: nobody stands while it says so.
    let ended = lineup.ended > Term::NONE;
    if overtaken() || ended || claim.tell_only {
        return Ok(Standing::Waiting { seen });
    }
    let Some(place) = lineup.place(owner) else {
        stand(inner, foreign, tenant, &line, claim, &lineup).await?;
        return Err(Stopped::Stale); // only now we know behind whom
    };
    let own = &lineup.entries[place];
    if place == 0 {
        // A look may have shown it as ours before this claim; a term that was another's is not granted again.
        let is_shown = own.term == claim.above
            && inner.highest_of(&claim.election, Some(own)) == Highest { term: own.term, owner };
        if own.term <= claim.above && !is_shown {
            return Ok(Standing::Waiting { seen });
        }
        let counted = tenant.seat(&claim.election, |seat| seat.counted.as_ref() == Some(&own.name));
        if !counted {
            let mut multi = Multi::new(line.client(), Over::Session);
            multi.under(&inner.paths().session(tenant.session), line.number);
            multi.exists(&lineup.path(own)).count(&inner.paths().grants(tenant.session));
            if overtaken() {
                return Err(Stopped::Stale);
            }
            multi.commit().await?;
        }
        // Whoever ends an election there deletes its candidates, and says nothing to them.
        if !news::watch(inner, tenant, &claim.election, [lineup.path(own)].into_iter()).await? {
            return Err(Stopped::Stale);
        }
        tenant.seat(&claim.election, |seat| {
            seat.counted = Some(own.name.clone());
            seat.place = Some(own.name.clone());
            seat.lead(claim.attempt);
        });
        return Ok(Standing::Leading { term: own.term });
    }
    let ahead = &lineup.entries[place - 1];
    let watched = [lineup.path(ahead), lineup.path(own)].into_iter();
    if !news::watch(inner, tenant, &claim.election, watched).await? {
        return Err(Stopped::Stale);
    }
    tenant.seat(&claim.election, |seat| {
        seat.place = Some(own.name.clone());
        seat.answered = seat.answered.max(claim.attempt);
        seat.queued = Some(place - 1);
    });
    Ok(Standing::Waiting { seen })
}

async fn stand(
    inner: &Inner,
    foreign: &Foreign,
    tenant: &Tenant,
    line: &Line,
    claim: &Claim,
    lineup: &Lineup,
) -> Result<(), Stopped> {
    let persistent = inner.link.options(CreateMode::Persistent);
    line.client()
        .mkdir(&lineup.folder, &persistent)
        .await
        .map_err(|error| classify(&error, Over::Session))?;
    let path = format!("{}/{}", lineup.folder, foreign.layout.prefix(claim.session));
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&inner.paths().session(tenant.session), line.number);
    let options = inner.link.options(CreateMode::EphemeralSequential);
    multi.create(&path, tenant.node.as_str().as_bytes(), &options);
    if tenant.seat(&claim.election, |seat| claim.attempt < seat.barrier) {
        return Err(Stopped::Stale);
    }
    let done = multi.commit().await?;
    if let Some(MultiWriteResult::Create { path, .. }) = done.last() {
        let name = path.rsplit('/').next().map(str::to_owned);
        tenant.seat(&claim.election, |seat| seat.place = name);
    }
    Ok(())
}

pub(crate) async fn resign(inner: &Arc<Inner>, foreign: &Foreign, resign: &Resign) -> Result<(), StoreError> {
    let tenant = match inner.expect_tenant(resign.session).await {
        Ok(tenant) => tenant,
        Err(StoreError::SessionLost) => return Ok(()),
        Err(error) => return Err(error),
    };
    tenant.seat(&resign.election, |seat| seat.barrier = seat.barrier.max(resign.attempt));
    let resigned = settle(async || {
        let line = tenant.line();
        let lineup = foreign.read(line.client(), Over::Session, &resign.election).await?;
        if tenant.seat(&resign.election, |seat| seat.answered > resign.attempt) {
            return Ok(());
        }
        let own = lineup.place(line.client().session_id().0).map(|place| &lineup.entries[place]);
        let Some(own) = own.filter(|own| resign.term.is_none_or(|term| term == own.term)) else {
            return Ok(());
        };
        let mut multi = Multi::new(line.client(), Over::Session);
        multi.under(&inner.paths().session(resign.session), line.number).delete(&lineup.path(own));
        multi.commit().await?;
        tenant.seat(&resign.election, Seat::leave);
        Ok(())
    })
    .await;
    match resigned {
        Err(StoreError::SessionLost) => Ok(()),
        other => other,
    }
}

/// Takes a session of ZooKeeper out of a line.
pub(crate) async fn leave(
    foreign: &Foreign,
    client: &Client,
    election: &ElectionName,
    owner: i64,
) -> Result<(), StoreError> {
    let lineup = foreign.read(client, Over::Store, election).await?;
    for own in lineup.entries.iter().filter(|entry| entry.owner == owner) {
        match client.delete(&lineup.path(own), None).await {
            Ok(()) | Err(Error::NoNode) => {}
            Err(error) => return Err(classify(&error, Over::Store)),
        }
    }
    Ok(())
}

/// What a layout has no room for.
pub(crate) fn no_room(foreign: &Foreign, what: &str) -> StoreError {
    StoreError::misconfigured(format!(
        "the layout `{}` has no room for {what}; it is for elections that are shared with another library",
        foreign.layout.name()
    ))
}

/// Names that are paths of their own would lead elsewhere.
pub(crate) fn checked(foreign: &Foreign, election: &ElectionName) -> Result<(), StoreError> {
    let good = |part: &str| !matches!(part, "" | "." | "..");
    if election.as_str().split('/').all(good) {
        return Ok(());
    }
    Err(no_room(foreign, &format!("an election named `{election}`")))
}
