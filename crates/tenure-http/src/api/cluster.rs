//! What a node knows of its cluster, from its own watch: nobody's request costs the store anything.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;
use tenure::{NodeId, Term, View};
use tenure_core::Instant;
use tenure_store::clock;

use super::Api;
use super::answers::{Child, Condition, Health, Leader, Lease, Node, Role, Status, millis, timestamp};
use crate::problem::Problem;

/// The cluster at the instant of a request.
pub(super) struct Now {
    view: Arc<View>,
    now: Instant,
    /// This node's own term, if it leads.
    own: Option<Term>,
    leader: Option<Led>,
}

/// Who leads, and for how long that is certain.
struct Led {
    node: NodeId,
    term: Term,
    age: Duration,
    left: Duration,
    hostname: Option<String>,
    api_url: Option<String>,
}

impl Now {
    pub(super) fn of(api: &Api) -> Self {
        let now = clock::now();
        let view = api.cluster().view();
        let own = api.gate().check().ok();
        let leader = Self::led(api, &view, now, own);
        Self { view, now, own, leader }
    }

    /// The store's word with its age, corrected by what this node has heard since: that it was elected
    /// itself, or that another was.
    fn led(api: &Api, view: &View, now: Instant, own: Option<Term>) -> Option<Led> {
        let holder = view.record.holder.as_ref();
        let heard = api.gate().leader();
        let newer = heard.filter(|heard| heard.term > view.record.term);
        let (node, term, age, ttl) = match (own, newer, holder) {
            (Some(term), ..) if holder.is_none_or(|holder| holder.term != term) => {
                (api.node().id().clone(), term, Duration::ZERO, api.ttl())
            }
            (_, Some(heard), _) => (heard.node.clone(), heard.term, heard.age(), api.ttl()),
            (_, None, Some(holder)) => {
                let (age, ttl) = view.pulse(now)?;
                (holder.node.clone(), holder.term, age, ttl)
            }
            (_, None, None) => return None,
        };
        if age >= ttl && own != Some(term) {
            return None;
        }
        let live = |member: &&tenure::Member| member.record.info.id == node && member.lives;
        let info = view.members.iter().find(live).map(|member| &member.record.info);
        let left = match own {
            Some(_) => api.node().held().now().until.since(now),
            None => ttl.saturating_sub(age),
        };
        let (hostname, api_url) =
            (info.map(|info| info.hostname.clone()), info.and_then(|i| i.address.clone()));
        Some(Led { node, term, age, left, hostname, api_url })
    }

    pub(super) fn leader(&self) -> Option<&NodeId> {
        self.leader.as_ref().map(|led| &led.node)
    }

    pub(super) fn term(&self, api: &Api) -> Term {
        let known = self.view.record.term.max(api.gate().term());
        self.leader.as_ref().map_or(known, |led| led.term)
    }

    fn leader_id(&self) -> Option<String> {
        self.leader().map(ToString::to_string)
    }

    fn role(&self, api: &Api) -> Role {
        match () {
            () if self.own.is_some() => Role::Leader,
            () if api.is_stopping() || api.node().session().is_none() => Role::Stopped,
            () if self.leader.is_none() && api.stands() => Role::Candidate,
            () => Role::Follower,
        }
    }

    /// Whether what is known is recent enough to act on.
    pub(super) fn fresh(&self, api: &Api) -> bool {
        api.node().session().is_some() && self.view.age(self.now).is_some_and(|age| age < api.ttl())
    }

    /// Another leads.
    pub(super) fn follows(&self) -> bool {
        self.own.is_none() && self.leader.is_some()
    }

    fn ready(&self, api: &Api) -> bool {
        self.fresh(api) && self.leader.is_some() && self.view.live() >= api.cluster().minimum()
    }

    fn condition(&self, api: &Api) -> Condition {
        match () {
            () if !self.fresh(api) => Condition::Unhealthy,
            () if !self.ready(api) => Condition::Degraded,
            () => Condition::Healthy,
        }
    }

    fn lease(&self, api: &Api) -> Option<Lease> {
        let led = self.leader.as_ref()?;
        let wall = SystemTime::now();
        Some(Lease {
            leader_id: led.node.to_string(),
            term: led.term.number(),
            acquired_at: api.feed().elected_at(led.term).map(timestamp),
            renewed_at: timestamp(wall - led.age),
            expires_at: timestamp(wall + led.left),
            hostname: led.hostname.clone(),
            api_url: led.api_url.clone(),
        })
    }

    fn known_ms_ago(&self) -> Option<u64> {
        self.view.age(self.now).map(millis)
    }
}

/// Everything that this node knows of its cluster
#[utoipa::path(get, path = "/cluster/status", tag = "cluster", responses(
    (status = 200, description = "What is known, and how old that is", body = Status)))]
pub(super) async fn status(State(api): State<Api>) -> Json<Status> {
    let now = Now::of(&api);
    Json(Status {
        node_id: api.node().id().to_string(),
        election: api.gate().election().to_string(),
        state: now.role(&api),
        is_leader: now.own.is_some(),
        leader_id: now.leader_id(),
        term: now.term(&api).number(),
        cluster_size: now.view.live(),
        minimum_size: api.cluster().minimum(),
        cluster_ready: now.ready(&api),
        known_ms_ago: now.known_ms_ago(),
        nodes: now.view.members.iter().map(Node::of).collect(),
        lease: now.lease(&api),
        children: api.children().into_iter().map(Child::of).collect(),
    })
}

/// Who leads
#[utoipa::path(get, path = "/cluster/leader", tag = "cluster", responses(
    (status = 200, description = "Who leads, under which term, and how certain that is", body = Leader),
    (status = 503, description = "Nobody is known to lead; with what was last known", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn leader(State(api): State<Api>) -> Result<Json<Leader>, Problem> {
    let now = Now::of(&api);
    let Some(led) = &now.leader else { return Err(nobody(&api, &now)) };
    Ok(Json(Leader {
        leader_id: led.node.to_string(),
        term: led.term.number(),
        api_url: led.api_url.clone(),
        hostname: led.hostname.clone(),
        age_ms: millis(led.age),
        expires_in_ms: millis(led.left),
    }))
}

/// Nobody is known to lead: says who was, and how old that knowledge is.
fn nobody(api: &Api, now: &Now) -> Problem {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "nobody is known to lead")
        .with("term", now.term(api).number())
        .with("known_ms_ago", now.known_ms_ago());
    let read = now.view.record.holder.as_ref();
    // It may have heard of one, or have led itself, since it last read the store.
    let heard = api.gate().last_leader().filter(|heard| read.is_none_or(|read| heard.term > read.term));
    let problem = match (heard, read) {
        (Some(heard), _) => problem
            .with("last_leader_id", heard.node.as_str())
            .with("last_leader_age_ms", millis(heard.age())),
        (None, Some(holder)) => {
            let age = now.view.pulse(now.now).map(|(age, _)| millis(age));
            problem.with("last_leader_id", holder.node.as_str()).with("last_leader_age_ms", age)
        }
        (None, None) => problem.with("last_leader_id", Value::Null),
    };
    match &now.view.trouble {
        Some(trouble) => problem.detail(format!("this node has lost the store: {trouble}")),
        None => problem.detail("an election may be under way; ask again in a moment"),
    }
}

/// Whether this node and its cluster are well
#[utoipa::path(get, path = "/cluster/health", tag = "cluster", responses(
    (status = 200, description = "Healthy, or degraded", body = Health),
    (status = 503, description = "Unhealthy", body = Health)))]
pub(super) async fn health(State(api): State<Api>) -> Response {
    let now = Now::of(&api);
    let status = now.condition(&api);
    let health = Health {
        status,
        clustering: "enabled",
        node_id: api.node().id().to_string(),
        state: now.role(&api),
        is_leader: now.own.is_some(),
        leader_id: now.leader_id(),
        cluster_size: now.view.live(),
        cluster_ready: now.ready(&api),
        store_error: now.view.trouble.clone(),
        timestamp: timestamp(SystemTime::now()),
        version: env!("CARGO_PKG_VERSION"),
    };
    let code = if status == Condition::Unhealthy { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (code, Json(health)).into_response()
}

/// Every node that is remembered
#[utoipa::path(get, path = "/cluster/nodes", tag = "cluster", responses(
    (status = 200, description = "By id", body = [Node])))]
pub(super) async fn nodes(State(api): State<Api>) -> Json<Vec<Node>> {
    Json(api.cluster().view().members.iter().map(Node::of).collect())
}
