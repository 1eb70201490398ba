//! What changes something: the leader is asked to make way. It needs the token.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure::{ElectionName, NodeId};
use tenure_store::Petitioned;
use utoipa::{IntoResponses, ToSchema};

use super::Api;
use super::answers::Asked;
use super::lists::ask;
use crate::problem::Problem;

/// Which election's leader shall make way. The body may be empty.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resignation {
    /// The election; this node's own if it is not said.
    #[schema(min_length = 1, max_length = 128)]
    election: Option<String>,
}

/// Who shall lead.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Transfer {
    /// A candidate.
    #[schema(min_length = 1, max_length = 128)]
    to: String,
    /// The election; this node's own if it is not said.
    #[schema(min_length = 1, max_length = 128)]
    election: Option<String>,
}

/// Why an order is not carried out: for the description, which is all that reads it.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes")]
pub(super) enum Refused {
    /// The request makes no sense
    #[response(status = 400, content_type = "application/problem+json")]
    Senseless(Problem),
    /// The token is missing or wrong
    #[response(status = 401, content_type = "application/problem+json")]
    Stranger(Problem),
    /// It comes from another site's page; or this node was started without a token, so that nobody can change anything through it
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// It cannot be done as things are: nobody leads, the node that was named does not stand, the task list is not worked on, or the partition is not to be released
    #[response(status = 409, content_type = "application/problem+json")]
    Nobody(Problem),
    /// The body is too long
    #[response(status = 413, content_type = "application/problem+json")]
    TooLong(Problem),
    /// The store gives no answer
    #[response(status = 503, content_type = "application/problem+json")]
    NoAnswer(Problem),
}

/// Asks the leader to step down, for the first in line
#[utoipa::path(post, path = "/cluster/resign", tag = "orders", request_body = Option<Resignation>,
    security(("token" = [])), responses(
    (status = 202, description = "The leader was asked, and resigns once its work has stopped", body = Asked),
    Refused))]
pub(super) async fn resign(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Asked>), Problem> {
    api.access().may_change(&headers)?;
    let body = whole(body)?;
    let asked: Option<Resignation> = if body.is_empty() { None } else { parse(&body)? };
    let Resignation { election } = asked.unwrap_or_default();
    petition(&api, election, None).await
}

/// Hands leadership over to a named candidate
#[utoipa::path(post, path = "/cluster/transfer", tag = "orders", request_body = Transfer,
    security(("token" = [])), responses(
    (status = 202, description = "The leader was asked, and hands over once its work has stopped", body = Asked),
    (status = 200, description = "The node that was named leads already", body = Asked),
    Refused))]
pub(super) async fn transfer(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Asked>), Problem> {
    api.access().may_change(&headers)?;
    let Transfer { to, election } = parse(&whole(body)?)?;
    let to = NodeId::new(to).map_err(|error| bad(error.to_string()))?;
    petition(&api, election, Some(to)).await
}

pub(super) fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is longer than anything that makes sense here",
        ),
        _ => bad(String::from("the body did not come whole")),
    })
}

pub(super) fn bad(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "the request makes no sense").detail(detail)
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| bad(format!("the body is not the JSON that is wanted: {error}")))
}

async fn petition(
    api: &Api,
    election: Option<String>,
    to: Option<NodeId>,
) -> Result<(StatusCode, Json<Asked>), Problem> {
    let election = match election {
        Some(name) => ElectionName::new(name).map_err(|error| bad(error.to_string()))?,
        None => api.gate().election().clone(),
    };
    let conflict = |title: String| Err(Problem::new(StatusCode::CONFLICT, title));
    let _turn = api.turn().await?;
    match ask(api.node().store().petition(election.clone(), to.clone())).await? {
        Petitioned::Noted { leader, term } => {
            let to = to.map(|to| to.to_string());
            let asked = Asked { leader_id: leader.to_string(), term: term.number(), to };
            Ok((StatusCode::ACCEPTED, Json(asked)))
        }
        Petitioned::NobodyLeads => conflict(format!("nobody leads `{election}`")),
        Petitioned::NotStanding => {
            // A request that is repeated is no error.
            let record = ask(api.node().store().read(election.clone())).await?;
            if let Some(holder) = record.holder.filter(|holder| Some(&holder.node) == to.as_ref()) {
                let leader = holder.node.to_string();
                let asked = Asked { leader_id: leader.clone(), term: holder.term.number(), to: Some(leader) };
                return Ok((StatusCode::OK, Json(asked)));
            }
            let to = to.map(|to| to.to_string()).unwrap_or_default();
            conflict(format!("`{to}` does not stand for `{election}`"))
        }
    }
}
