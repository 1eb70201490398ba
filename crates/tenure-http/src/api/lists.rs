//! Lists that are read from the store when they are asked for.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use tenure::{ElectionName, Owner, PartitionsError, TaskLists};
use tenure_core::{Age, Record};

use super::Api;
use super::answers::{Election, Partition, millis};
use crate::problem::Problem;

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the store, and gives up on one that does not answer.
pub(super) async fn ask<T>(
    question: impl Future<Output = Result<tenure_store::Told<T>, tenure::StoreError>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(answer) => Ok(answer?.value),
        Err(_) => Err(silent()),
    }
}

fn silent() -> Problem {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the store gave no answer");
    problem.detail(format!("it has not answered within {PATIENCE:?}"))
}

/// Every election of the namespace
#[utoipa::path(get, path = "/cluster/elections", tag = "cluster", responses(
    (status = 200, description = "By name", body = [Election]),
    (status = 503, description = "The store gives no answer", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn elections(State(api): State<Api>) -> Result<Json<Vec<Election>>, Problem> {
    let _turn = api.turn().await?;
    let elections = ask(api.node().store().elections()).await?;
    Ok(Json(elections.iter().map(|(name, record)| election(&api, name, record)).collect()))
}

/// A holder that has been silent for its whole life leads no longer.
fn election(api: &Api, name: &ElectionName, record: &Record) -> Election {
    let age = |age| match age {
        Age::Unknown => None,
        Age::Exact(age) | Age::Told { age, .. } => Some(age),
    };
    let holder = record.holder.as_ref();
    let holder = holder.filter(|holder| age(holder.pulse.age).is_none_or(|age| age < holder.pulse.ttl));
    let view = api.cluster().view();
    let info =
        holder.and_then(|holder| view.member(holder.pulse.stamp.session)).map(|node| &node.record.info);
    let left = holder.and_then(|holder| Some(holder.pulse.ttl.saturating_sub(age(holder.pulse.age)?)));
    Election {
        election: name.to_string(),
        leader_id: holder.map(|holder| holder.node.to_string()),
        term: holder.map_or(record.term, |holder| holder.term).number(),
        age_ms: holder.and_then(|holder| age(holder.pulse.age)).map(millis),
        expires_in_ms: left.map(millis),
        hostname: info.map(|info| info.hostname.clone()),
        api_url: info.and_then(|info| info.address.clone()),
    }
}

/// Every partition that this election's leader divides, and who owns it
#[utoipa::path(get, path = "/cluster/partitions", tag = "cluster", responses(
    (status = 200, description = "By task list and number", body = [Partition]),
    (status = 503, description = "The store gives no answer", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn partitions(State(api): State<Api>) -> Result<Json<Vec<Partition>>, Problem> {
    let _turn = api.turn().await?;
    let election = api.cluster().gate().election();
    let lists = TaskLists::of(Arc::clone(api.node().store()), election.as_str());
    // A store without a ledger has no partitions.
    let Ok(lists) = lists else { return Ok(Json(Vec::new())) };
    let owners = tokio::time::timeout(PATIENCE, lists.owners()).await.map_err(|_| silent())?;
    let owners = owners.map_err(|error| match error {
        PartitionsError::Store(error) => Problem::from(error),
        other => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be read")
            .detail(other.to_string()),
    })?;
    let row = |owner: Owner| Partition {
        task_list: owner.task_list.to_string(),
        partition: owner.partition,
        state: owner.state.name(),
        node_id: owner.node.map(|node| node.to_string()),
        term: owner.term.number(),
    };
    Ok(Json(owners.into_iter().map(row).collect()))
}
