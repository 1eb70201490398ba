//! Errors as programs read them: RFC 9457, `application/problem+json`.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use tenure::StoreError;
use utoipa::ToSchema;

/// Why a request was not answered as asked.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// `about:blank`: the title says it all.
    #[serde(rename = "type")]
    kind: &'static str,
    /// What is wrong.
    title: String,
    /// The status code, once more.
    status: u16,
    /// What is now true, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// More about it.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, title: impl Into<String>) -> Self {
        let (title, status) = (title.into(), status.as_u16());
        Self { kind: "about:blank", title, status, detail: None, more: Map::new() }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Whether the same request may succeed a moment later.
    const fn may_pass(&self) -> bool {
        matches!(self.status, 429 | 503)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the store gave no answer").detail(error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Strings and numbers always have a text.
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.may_pass() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
