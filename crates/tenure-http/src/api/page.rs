//! The page for people: the cluster at a glance, as it changes.
//!
//! It is five files, served as they are. It shows what it is told as text, runs no script but its own, and
//! asks nobody but nodes of this cluster: when the node that served it dies, it reads on from another.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use tenure::View;

use super::Api;
use crate::leader_only::Origin;

const HTML: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STORY: &str = include_str!("page/story.js");
const MAP: &str = include_str!("page/map.js");
const STYLE: &str = include_str!("page/page.css");

/// How many other nodes a page may turn to: enough, and a header has its limits.
const OTHERS: usize = 32;

/// The page
#[utoipa::path(get, path = "/", tag = "about", responses(
    (status = 200, description = "HTML", content_type = "text/html", body = String)))]
pub(super) async fn page(State(api): State<Api>) -> Response {
    let mut response = file("text/html; charset=utf-8", HTML);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy(&api.cluster().view()));
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Its script
#[utoipa::path(get, path = "/page.js", tag = "about", responses(
    (status = 200, description = "JavaScript", content_type = "text/javascript", body = String)))]
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

/// Its words for what the history tells
#[utoipa::path(get, path = "/story.js", tag = "about", responses(
    (status = 200, description = "JavaScript", content_type = "text/javascript", body = String)))]
pub(super) async fn story() -> Response {
    file("text/javascript; charset=utf-8", STORY)
}

/// Its map of partitions
#[utoipa::path(get, path = "/map.js", tag = "about", responses(
    (status = 200, description = "JavaScript", content_type = "text/javascript", body = String)))]
pub(super) async fn map() -> Response {
    file("text/javascript; charset=utf-8", MAP)
}

/// Its style
#[utoipa::path(get, path = "/page.css", tag = "about", responses(
    (status = 200, description = "CSS", content_type = "text/css", body = String)))]
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// Nothing but our own files, and answers of this node and of those that lived when it was served.
fn policy(view: &View) -> HeaderValue {
    let mut policy = String::from(
        "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; connect-src 'self'",
    );
    for origin in origins(view).take(OTHERS) {
        policy.push(' ');
        policy.push_str(&origin.to_string());
    }
    // An origin is made of letters, digits and a few signs: it always fits in a header.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Where the live nodes are. Addresses come from the registry, and only bare origins pass.
fn origins(view: &View) -> impl Iterator<Item = Origin> {
    let live = view.members.iter().filter(|member| member.lives);
    live.filter_map(|member| member.record.info.address.as_deref()?.parse().ok())
}

/// Whose page a browser may show an answer to: that of a node which lives in this cluster, and nobody else's.
pub(super) fn reader(view: &View, headers: &HeaderMap) -> Option<HeaderValue> {
    let asking = headers.get(header::ORIGIN)?;
    let known = asking.to_str().ok().and_then(|text| text.parse::<Origin>().ok())?;
    let member = |member: &tenure::Member| {
        let address = member.record.info.address.as_deref();
        address.and_then(|address| address.parse().ok()).is_some_and(|origin: Origin| origin == known)
    };
    // Also of one that has just died: its page is the one that needs another to read from.
    view.members.iter().any(member).then(|| asking.clone())
}
