//! What each verb does inside its transaction.

mod claim;
mod contest;
mod declaration;
mod deletion;
mod examination;
mod health;
mod history;
mod ledger;
mod petition;
mod reading;
mod resignation;
mod scope;
mod sessions;
mod succession;

pub(crate) use claim::claim;
pub(crate) use declaration::declare;
pub(crate) use deletion::delete;
pub(crate) use examination::examine;
pub(crate) use health::report_health;
pub(crate) use history::events;
#[cfg(test)]
pub(crate) use history::{NEWEST_FIRST, OLDEST_FIRST};
pub(crate) use ledger::{acknowledge, arrange, enlist, leaf, publish, survey};
pub(crate) use petition::petition;
pub(crate) use reading::{candidates, elections, nodes, read};
pub(crate) use resignation::resign;
pub(crate) use scope::Scope;
pub(crate) use sessions::{RENEWAL, close, open, purge, renew, retire};
