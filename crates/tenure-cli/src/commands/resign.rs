//! `tenure resign`: the leader is asked to step down, for whoever comes next.

use std::sync::Arc;

use tenure::Store;

use super::handover::hand_over;
use crate::cli::{Global, Resign};
use crate::failure::{Exit, Failure};

pub async fn resign(store: Arc<dyn Store>, global: &Global, asked: &Resign) -> Result<Exit, Failure> {
    hand_over(store, global, &asked.election, None, asked.timeout).await
}
