//! An election as it is: its record, and who stands in line.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Age, ElectionName, Holder, Pulse, Record, SessionId, Stamp, Term};
use tenure_store::StoreError;
use zookeeper_client::{Client, Error, MultiReadResult};

use crate::documents::{self, CandidateDocument, ElectionDocument, PulseDocument};
use crate::error::{Over, classify};
use crate::multi::Multi;
use crate::paths::{Paths, Place};
use crate::silence::Sign;

/// What was read of one election at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub election: ElectionName,
    pub document: ElectionDocument,
    /// Of the document; `None` if there is none yet.
    pub version: Option<i32>,
    /// How many candidates have entered the line so far; `None` if there is no line yet.
    entered: Option<i32>,
    /// Who stands, the holder included, by priority and then by arrival.
    line: Vec<Place>,
}

impl View {
    /// Reads the record and the line as this connection's server knows them, which may be behind: for whoever writes
    /// only if it is so, and after [`catch_up`](crate::link::Connected::catch_up).
    pub(crate) async fn read(
        client: &Client,
        over: Over,
        paths: &Paths,
        election: &ElectionName,
    ) -> Result<Self, StoreError> {
        Ok(Self::with(client, over, paths, election, &[]).await?.0)
    }

    /// The same with the last signs of life of these sessions, in the same request.
    pub(crate) async fn with(
        client: &Client,
        over: Over,
        paths: &Paths,
        election: &ElectionName,
        sessions: &[SessionId],
    ) -> Result<(Self, Pulses), StoreError> {
        let (path, folder) = (paths.election(election), paths.line(election));
        let failed = |error: Error| classify(&error, over);
        let mut reader = client.new_multi_reader();
        reader.add_get_data(&path).map_err(failed)?;
        // Before the line itself: whoever is in the count is in the line, too.
        reader.add_get_data(&folder).map_err(failed)?;
        reader.add_get_children(&folder).map_err(failed)?;
        for session in sessions {
            reader.add_get_data(&paths.pulse(*session)).map_err(failed)?;
        }
        let mut read = reader.commit().await.map_err(failed)?.into_iter();
        let (document, version) = match read.next() {
            Some(MultiReadResult::Data { data, stat }) => {
                (documents::read(&path, &data)?, Some(stat.version))
            }
            Some(MultiReadResult::Error { err: Error::NoNode }) | None => (ElectionDocument::default(), None),
            Some(MultiReadResult::Error { err }) => return Err(failed(err)),
            Some(_) => return Err(failed(Error::MarshallingError)),
        };
        let entered = match read.next() {
            Some(MultiReadResult::Data { stat, .. }) => Some(stat.version),
            Some(MultiReadResult::Error { err }) if err != Error::NoNode => return Err(failed(err)),
            _ => None,
        };
        let mut line: Vec<Place> = match read.next() {
            Some(MultiReadResult::Children { children }) => {
                children.iter().filter_map(|name| Place::parse(name)).collect()
            }
            Some(MultiReadResult::Error { err }) if err != Error::NoNode => return Err(failed(err)),
            _ => Vec::new(),
        };
        line.sort_by_key(|place| (Reverse(place.priority), place.sequence));
        let mut pulses = Pulses::default();
        pulses.add(paths, sessions, read)?;
        Ok((Self { election: election.clone(), document, version, entered, line }, pulses))
    }

    /// Makes a transaction stale if a candidate has entered the line since this was read. Entering does not change the
    /// record, so its version does not tell.
    pub(crate) fn nobody_entered(&self, multi: &mut Multi<'_>, paths: &Paths) {
        if let Some(entered) = self.entered {
            multi.unchanged(&paths.line(&self.election), entered);
        }
    }

    /// The place of a session in line, if it stands.
    pub(crate) fn place(&self, session: SessionId) -> Option<&Place> {
        self.line.iter().find(|place| place.session == session)
    }

    fn stands(&self, session: &str) -> Option<&Place> {
        let number = u128::from_str_radix(session, 16).ok()?;
        self.place(SessionId::from_u128(number))
    }

    /// Who holds the lease: whoever was granted it last and is still in line.
    pub(crate) fn holder(&self) -> Option<&Place> {
        self.stands(&self.document.holder.as_ref()?.session)
    }

    /// The term of the holder.
    pub(crate) fn held(&self) -> Option<Term> {
        self.holder()?;
        self.document.holder.as_ref().map(|holder| Term::new(holder.term))
    }

    pub(crate) fn holds(&self, session: SessionId) -> bool {
        self.holder().is_some_and(|place| place.session == session)
    }

    /// Who waits, in order of succession.
    pub(crate) fn waiting(&self) -> Vec<&Place> {
        let holder = self.holder().map(|place| place.session);
        self.line.iter().filter(|place| Some(place.session) != holder).collect()
    }

    /// The election as its readers see it.
    pub(crate) fn record(&self, paths: &Paths, pulses: &Pulses) -> Result<Record, StoreError> {
        let path = paths.election(&self.election);
        let document = &self.document;
        let holder = match (self.holder(), &document.holder) {
            (Some(place), Some(holder)) => Some(Holder {
                node: documents::node(&path, &holder.node)?,
                term: Term::new(holder.term),
                pulse: pulses.of(place.session),
            }),
            _ => None,
        };
        let (term, ended) = (document.term(), Term::new(document.ended));
        Ok(Record { term, holder, ended, petition: document.petition(&path)? })
    }

    /// Which nodes stand, by the name of their place.
    pub(crate) async fn nodes(
        &self,
        client: &Client,
        over: Over,
        paths: &Paths,
    ) -> Result<BTreeMap<SessionId, String>, StoreError> {
        let line = paths.line(&self.election);
        let mut nodes = BTreeMap::new();
        for places in self.line.chunks(MOST) {
            let mut reader = client.new_multi_reader();
            for place in places {
                let path = format!("{line}/{}", place.name);
                reader.add_get_data(&path).map_err(|error| classify(&error, over))?;
            }
            let read = reader.commit().await.map_err(|error| classify(&error, over))?;
            for (place, read) in places.iter().zip(read) {
                // Whoever left meanwhile does not stand.
                if let MultiReadResult::Data { data, .. } = read {
                    let document: CandidateDocument = documents::read(&place.name, &data)?;
                    nodes.insert(place.session, document.node);
                }
            }
        }
        Ok(nodes)
    }
}

/// How many znodes are read, or changed, at once: neither a request nor an answer must be larger than a megabyte.
pub(crate) const MOST: usize = 256;

/// The last signs of life of some sessions, and when their servers say that they were written.
#[derive(Default)]
pub(crate) struct Pulses(BTreeMap<SessionId, (PulseDocument, i64)>);

impl Pulses {
    pub(crate) async fn read(
        client: &Client,
        over: Over,
        paths: &Paths,
        sessions: impl IntoIterator<Item = SessionId>,
    ) -> Result<Self, StoreError> {
        let mut pulses = Self::default();
        let sessions: Vec<SessionId> = sessions.into_iter().collect();
        pulses.complete(client, over, paths, &sessions).await?;
        Ok(pulses)
    }

    /// Reads those that are missing.
    pub(crate) async fn complete(
        &mut self,
        client: &Client,
        over: Over,
        paths: &Paths,
        sessions: &[SessionId],
    ) -> Result<(), StoreError> {
        let mut missing: Vec<SessionId> = sessions.to_vec();
        missing.retain(|session| !self.0.contains_key(session));
        missing.sort_unstable();
        missing.dedup();
        for sessions in missing.chunks(MOST) {
            let mut reader = client.new_multi_reader();
            for session in sessions {
                reader.add_get_data(&paths.pulse(*session)).map_err(|error| classify(&error, over))?;
            }
            let read = reader.commit().await.map_err(|error| classify(&error, over))?;
            self.add(paths, sessions, read)?;
        }
        Ok(())
    }

    /// What was read of these sessions. One that is over has no pulse.
    fn add(
        &mut self,
        paths: &Paths,
        sessions: &[SessionId],
        read: impl IntoIterator<Item = MultiReadResult>,
    ) -> Result<(), StoreError> {
        for (session, read) in sessions.iter().zip(read) {
            if let MultiReadResult::Data { data, stat } = read {
                self.0.insert(*session, (documents::read(&paths.pulse(*session), &data)?, stat.mtime));
            }
        }
        Ok(())
    }

    /// A session that ends right now has none any more, but its place is still to be vacated: soon.
    pub(crate) fn of(&self, session: SessionId) -> Pulse {
        let gone = || {
            let stamp = Stamp { session, sequence: 0 };
            Pulse { stamp, ttl: Duration::from_secs(1), age: Age::Unknown }
        };
        self.0.get(&session).map_or_else(gone, |(document, _)| document.pulse(session))
    }

    /// The same as the history needs it.
    pub(crate) fn signs(&self) -> impl Iterator<Item = (SessionId, Sign)> {
        self.0.iter().map(|(session, (document, renewed_ms))| {
            let ttl = Duration::from_millis(document.ttl_ms);
            (*session, Sign { ttl, renewed_ms: *renewed_ms })
        })
    }
}
