//! The API's description of itself: OpenAPI.

use axum::Json;
use utoipa::openapi::path::PathItem;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::{cluster, events, lists, metrics, orders, page, probes, work};

#[derive(OpenApi)]
#[openapi(
    info(title = "Tenure", description = "The API of a node: who leads, who is there, what has happened."),
    paths(
        cluster::status, cluster::leader, cluster::health, cluster::nodes, lists::elections, lists::partitions,
        events::events, probes::leader, probes::follower, probes::live, probes::ready, metrics::metrics,
        orders::resign, orders::transfer, work::mine, work::work, work::release, page::page, page::script, page::story,
        page::map, page::style, openapi
    ),
    modifiers(&Token, &Manners, &Probes),
    tags(
        (name = "cluster", description = "What this node knows"),
        (name = "probes", description = "For load balancers and orchestrators"),
        (name = "orders", description = "What changes something: needs the token"),
        (name = "about", description = "This API"),
    )
)]
struct Description;

struct Token;

impl Modify for Token {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        if let Some(components) = &mut openapi.components {
            let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
            components.add_security_scheme("token", bearer);
        }
    }
}

/// What is answered whatever is asked: see `manners`. Probes answer to any name.
struct Manners;

impl Modify for Manners {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let operations = openapi.paths.paths.values_mut().flat_map(|path| [&mut path.get, &mut path.post]);
        for operation in operations.flatten() {
            if operation.tags.iter().flatten().any(|tag| tag == "probes") {
                continue;
            }
            let has_body = operation.request_body.is_some();
            let responses = &mut operation.responses.responses;
            responses.insert(String::from("421"), problem("This node does not go by that name"));
            if has_body {
                responses.insert(String::from("408"), problem("The body did not come in time"));
            }
        }
    }
}

fn problem(description: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new().description(description);
    RefOr::T(response.content("application/problem+json", content).build())
}

/// Load balancers may also ask by HEAD, which is answered like GET, without a body, and by OPTIONS, which is
/// answered like GET.
struct Probes;

impl Modify for Probes {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let named = |path: &str, method: &str| Some(format!("{method}_{}", path.trim_start_matches('/')));
        for (path, item) in &mut openapi.paths.paths {
            let PathItem { get: Some(get), head, options, .. } = item else { continue };
            if !["/leader", "/follower"].contains(&path.as_str()) {
                continue;
            }
            let mut asked = get.clone();
            asked.operation_id = named(path, "head");
            for response in asked.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    response.content.clear();
                }
            }
            *head = Some(asked);
            let mut asked = get.clone();
            asked.operation_id = named(path, "options");
            *options = Some(asked);
        }
    }
}

/// The OpenAPI document.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// This description
#[utoipa::path(get, path = "/openapi.json", tag = "about", responses(
    (status = 200, description = "OpenAPI", content_type = "application/json", body = Object)))]
pub(super) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(description())
}
