//! Asking a node, as its page does.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;

use crate::leader_only::wire::Wire;
use crate::leader_only::{Limits, Origin, body};

/// For an answer, all of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks nodes over HTTP. Connections are used again; nodes with an `https` address are verified by what the system
/// trusts.
#[derive(Debug)]
pub struct Client {
    wire: Arc<Wire>,
    timeout: Duration,
}

/// A node that was asked has given no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0} gives no answer")]
pub struct NoAnswer(pub Origin);

impl Default for Client {
    fn default() -> Self {
        Self::with_timeout(PATIENCE)
    }
}

impl Client {
    /// A client that gives up on an answer after this time, instead of 5 s.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self { wire: Wire::new(Limits { answer: timeout, ..Limits::default() }, None), timeout }
    }

    /// What this node answers to `GET path`, whatever its status.
    ///
    /// # Errors
    /// If there is no answer within the timeout.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed by asking.
    pub async fn get(&self, node: &Origin, path: &str) -> Result<(StatusCode, Bytes), NoAnswer> {
        let silent = || NoAnswer(node.clone());
        let mut request = Request::new(body::text(String::new()));
        *request.uri_mut() = path.parse().map_err(|_| silent())?;
        let host = HeaderValue::from_str(node.authority()).map_err(|_| silent())?;
        request.headers_mut().insert(header::HOST, host);
        let asked = async {
            let response = self.wire.send(node, request, || true).await.map_err(|_| silent())?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|_| silent())?;
            Ok((status, body.to_bytes()))
        };
        tokio::time::timeout(self.timeout, asked).await.map_err(|_| silent())?
    }
}
