//! What is asked of the group: verbs, which are commands in its log, and questions, which are not.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing};
use tenure_replica::Transaction;
use tenure_store::{
    Arranged, Arrangement, Candidate, Cause, Claim, Declaration, Deletion, Enlistment, EventQuery,
    EventRecord, HealthReport, Leaf, LedgerQuery, NodeRecord, Open, Petitioned, Publication, Published,
    Release, Resign, StoreError, Survey,
};

/// Something that changes the state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Verb {
    Open(Open),
    Renew { session: SessionId, sequence: Sequence },
    Claim(Claim),
    Resign(Resign),
    Close { session: SessionId, cause: Cause },
    Delete { election: ElectionName, force: bool },
    Petition { election: ElectionName, to: Option<NodeId> },
    Retire(Stamp),
    Purge { older_than: Duration },
    Declare(Declaration),
    Publish(Publication),
    Acknowledge(Release),
    Enlist(Enlistment),
    Arrange(Arrangement),
    ReportHealth(HealthReport),
}

/// Something that only looks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    Read(ElectionName),
    Candidates(ElectionName),
    Elections,
    Nodes,
    Events(EventQuery),
    Survey(ElectionName),
    Leaf(LedgerQuery),
}

/// What becomes of either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// The session is over.
    Lost,
    Opening(Opening),
    Renewal(Renewal<ElectionName>),
    Standing(Standing),
    Done,
    Deletion(Deletion),
    Petitioned(Petitioned),
    Whether(bool),
    Count(u64),
    Record(Record),
    Candidates(Vec<Candidate>),
    Elections(Vec<(ElectionName, Record)>),
    Nodes(Vec<NodeRecord>),
    Events(Vec<EventRecord>),
    Published(Published),
    Arranged(Arranged),
    Survey(Survey),
    Leaf(Leaf),
}

impl Verb {
    pub(crate) fn apply(self, transaction: &mut Transaction<'_>) -> Outcome {
        let outcome = match self {
            Self::Open(open) => transaction.open(open).map(Outcome::Opening),
            Self::Renew { session, sequence } => transaction.renew(session, sequence).map(Outcome::Renewal),
            Self::Claim(claim) => transaction.claim(&claim).map(Outcome::Standing),
            Self::Resign(resign) => {
                transaction.resign(&resign);
                Ok(Outcome::Done)
            }
            Self::Close { session, cause } => {
                transaction.close(session, cause);
                Ok(Outcome::Done)
            }
            Self::Delete { election, force } => Ok(Outcome::Deletion(transaction.delete(&election, force))),
            Self::Petition { election, to } => {
                Ok(Outcome::Petitioned(transaction.petition(&election, to.as_ref())))
            }
            Self::Retire(over) => Ok(Outcome::Whether(transaction.retire(over))),
            Self::Purge { older_than } => Ok(Outcome::Count(transaction.purge(older_than))),
            Self::Declare(declaration) => Ok(Outcome::Whether(transaction.declare(&declaration))),
            Self::Publish(publication) => transaction.publish(&publication).map(Outcome::Published),
            Self::Acknowledge(release) => transaction.acknowledge(&release).map(Outcome::Count),
            Self::Enlist(enlistment) => transaction.enlist(enlistment).map(|()| Outcome::Done),
            Self::Arrange(arrangement) => Ok(Outcome::Arranged(transaction.arrange(arrangement))),
            Self::ReportHealth(report) => transaction.report_health(report).map(Outcome::Whether),
        };
        // A replica has no other error: it is never out of reach of itself.
        outcome.unwrap_or(Outcome::Lost)
    }
}

impl Question {
    pub(crate) fn answer(&self, transaction: &Transaction<'_>) -> Outcome {
        match self {
            Self::Read(election) => Outcome::Record(transaction.record(election)),
            Self::Candidates(election) => Outcome::Candidates(transaction.candidates(election)),
            Self::Elections => Outcome::Elections(transaction.elections()),
            Self::Nodes => Outcome::Nodes(transaction.nodes()),
            Self::Events(query) => Outcome::Events(transaction.events(query)),
            Self::Survey(election) => Outcome::Survey(transaction.survey(election)),
            Self::Leaf(query) => Outcome::Leaf(transaction.leaf(query)),
        }
    }
}

/// Takes an outcome for what it must be.
macro_rules! expect {
    ($name:ident, $variant:ident, $type:ty) => {
        pub(crate) fn $name(outcome: Outcome) -> Result<$type, StoreError> {
            match outcome {
                Outcome::$variant(value) => Ok(value),
                other => Err(other.stray()),
            }
        }
    };
}

impl Outcome {
    fn stray(self) -> StoreError {
        match self {
            Self::Lost => StoreError::SessionLost,
            other => StoreError::misconfigured(format!(
                "the group answers another question than was asked ({other:?}); do all members run the same version?"
            )),
        }
    }

    expect!(opening, Opening, Opening);
    expect!(renewal, Renewal, Renewal<ElectionName>);
    expect!(standing, Standing, Standing);
    expect!(deletion, Deletion, Deletion);
    expect!(petitioned, Petitioned, Petitioned);
    expect!(whether, Whether, bool);
    expect!(count, Count, u64);
    expect!(record, Record, Record);
    expect!(candidates, Candidates, Vec<Candidate>);
    expect!(elections, Elections, Vec<(ElectionName, Record)>);
    expect!(nodes, Nodes, Vec<NodeRecord>);
    expect!(events, Events, Vec<EventRecord>);
    expect!(published, Published, Published);
    expect!(arranged, Arranged, Arranged);
    expect!(survey, Survey, Survey);
    expect!(leaf, Leaf, Leaf);

    pub(crate) fn done(outcome: Self) -> Result<(), StoreError> {
        match outcome {
            Self::Done => Ok(()),
            other => Err(other.stray()),
        }
    }
}
