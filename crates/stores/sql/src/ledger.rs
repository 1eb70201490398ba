//! The ledger, verb by verb, and what the functions in the database answer.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tenure_core::partitions::{Change, Entry, Holding, Page, Partition, Revision};
use tenure_core::{ElectionName, SessionId};
use tenure_store::{
    Arranged, Arrangement, Enlistment, LEDGER_PAGE, Leaf, Ledger, LedgerQuery, Listed, Pending, Publication,
    Published, Release, Reply, StoreError, Survey, WorkerRecord,
};

use crate::database::Database;
use crate::store::{SqlStore, maybe, number, text, values, whole};
use crate::words::{Done, ListWords, PulseWords, foreign, named, truth};

/// A line of an answer about a ledger; one about the whole of it comes first.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Ledger(LedgerWords),
    Entry(u32, u32, Revision, Option<String>, i64),
    Listed(ListedWords),
    Worker(WorkerWords),
}

#[derive(Default, Deserialize)]
struct LedgerWords {
    revision: Revision,
    #[serde(default)]
    published: Revision,
    #[serde(default)]
    notices: u64,
    #[serde(default, deserialize_with = "truth")]
    more: bool,
}

#[derive(Deserialize)]
struct ListedWords {
    number: u32,
    name: String,
    revision: Revision,
    document: Option<String>,
}

#[derive(Deserialize)]
struct WorkerWords {
    node: String,
    session: String,
    document: String,
    pulse: Option<PulseWords>,
}

#[derive(Deserialize)]
struct PublishedWords {
    published: String,
    #[serde(default)]
    revision: Revision,
    #[serde(default)]
    refused: Vec<(u32, u32)>,
}

#[derive(Deserialize)]
struct AcknowledgedWords {
    notices: u64,
}

#[derive(Deserialize)]
struct ArrangedWords {
    number: Option<u32>,
    revision: Option<Revision>,
}

fn session(hex: &str) -> Result<SessionId, StoreError> {
    hex.parse().map_err(|_| foreign("a session without a number"))
}

fn entry(line: (u32, u32, Revision, Option<String>, i64)) -> Result<Entry, StoreError> {
    let (list, number, revision, owner, revoking) = line;
    let holding = match owner.as_deref().map(session).transpose()? {
        None => Holding::Vacant,
        Some(owner) if revoking == 0 => Holding::Owned(owner),
        Some(owner) => Holding::Revoking(owner),
    };
    Ok(Entry { partition: Partition { list, number }, revision, holding })
}

fn leaf(lines: Vec<Line>) -> Result<Leaf, StoreError> {
    let mut leaf = Leaf::default();
    for line in lines {
        match line {
            Line::Ledger(LedgerWords { revision, published, notices, more }) => {
                leaf.page = Page { revision, published, notices, more, ..leaf.page };
            }
            Line::Entry(list, number, revision, owner, revoking) => {
                leaf.page.entries.push(entry((list, number, revision, owner, revoking))?);
            }
            Line::Listed(ListedWords { number, name, revision, document }) => {
                leaf.lists.push(Listed { name: named(name)?, number, revision, document });
            }
            Line::Worker(_) => return Err(foreign("a worker among entries")),
        }
    }
    Ok(leaf)
}

fn survey(lines: Vec<Line>) -> Result<Survey, StoreError> {
    let mut survey = Survey::default();
    for line in lines {
        match line {
            Line::Ledger(words) => survey.revision = words.revision,
            Line::Worker(WorkerWords { node, session: hex, document, pulse }) => {
                let pulse = pulse.map(PulseWords::meant).transpose()?;
                survey.workers.push(WorkerRecord {
                    node: named(node)?,
                    session: session(&hex)?,
                    pulse,
                    document,
                });
            }
            Line::Entry(..) | Line::Listed(_) => return Err(foreign("an entry among workers")),
        }
    }
    Ok(survey)
}

/// A change, in the words of the function.
fn wanted(change: &Change) -> Json {
    let Partition { list, number } = change.partition();
    match change {
        Change::Assign { seen, to, .. } => json!([list, number, seen, to.to_string()]),
        Change::Revoke { seen, .. } => json!([list, number, seen]),
    }
}

fn texts(words: impl Iterator<Item = Json>) -> crate::database::Value {
    text(&Json::Array(words.collect()).to_string())
}

impl<D: Database> Ledger for SqlStore<D> {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        let values = vec![self.namespace(), text(election.as_str())];
        self.call(&self.elections, "survey", values, |words: ListWords<Line>| survey(words.list))
    }

    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        let LedgerQuery { election, since, of } = query;
        let of = of.map(|session| session.to_string());
        let most = number(i64::try_from(LEDGER_PAGE).unwrap_or(i64::MAX));
        let values =
            values![self.namespace(), text(election.as_str()), whole(since)?, maybe(of.as_deref()), most];
        self.call(&self.elections, "leaf", values, |words: ListWords<Line>| leaf(words.list))
    }

    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        let Publication { lease, after, retire, changes } = publication;
        let silent = retire.iter().map(|stamp| json!([stamp.session.to_string(), stamp.sequence]));
        let values = values![
            self.namespace(),
            self.kept(),
            text(&lease.session.to_string()),
            text(lease.election.as_str()),
            whole(lease.term.number())?,
            whole(after)?,
            texts(silent),
            texts(changes.iter().map(wanted)),
        ];
        self.call(&self.elections, "publish", values, |words: PublishedWords| {
            match words.published.as_str() {
                "written" => {
                    let refused = words.refused.into_iter();
                    let refused = refused.map(|(list, number)| Partition { list, number }).collect();
                    Ok(Published::Written { revision: words.revision, refused })
                }
                "term_over" => Ok(Published::TermOver),
                "overtaken" => Ok(Published::Overtaken),
                other => Err(foreign(other)),
            }
        })
    }

    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        let Release { election, session, released } = release;
        let released = released.iter().map(|(part, revoked)| json!([part.list, part.number, revoked]));
        let values = vec![
            self.namespace(),
            self.kept(),
            text(&session.to_string()),
            text(election.as_str()),
            texts(released),
        ];
        self.call(&self.elections, "acknowledge", values, |words: AcknowledgedWords| Ok(words.notices))
    }

    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        let Enlistment { election, session, document } = enlistment;
        let session = text(&session.to_string());
        let values = vec![self.namespace(), session, text(election.as_str()), text(&document)];
        self.call(&self.elections, "enlist", values, |_: Done| Ok(()))
    }

    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        let Arrangement { election, list, seen, document } = arrangement;
        let values = values![
            self.namespace(),
            text(election.as_str()),
            text(list.as_str()),
            whole(seen)?,
            maybe(document.as_deref()),
        ];
        self.call(&self.elections, "arrange", values, |words: ArrangedWords| {
            match (words.number, words.revision) {
                (Some(number), Some(revision)) => Ok(Arranged::Written { number, revision }),
                _ => Ok(Arranged::Overtaken),
            }
        })
    }
}
