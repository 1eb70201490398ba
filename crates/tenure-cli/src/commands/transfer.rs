//! `tenure transfer`: leadership is handed over to a named candidate.

use std::sync::Arc;

use tenure::Store;

use super::handover::hand_over;
use crate::cli::{Global, Transfer};
use crate::failure::{Exit, Failure};

pub async fn transfer(store: Arc<dyn Store>, global: &Global, asked: &Transfer) -> Result<Exit, Failure> {
    hand_over(store, global, &asked.election, Some(&asked.to), asked.timeout).await
}
