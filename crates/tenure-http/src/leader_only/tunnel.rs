//! What follows an upgrade: bytes both ways, until one side has enough or leadership is over.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tenure::Pass;

use super::body::Foreign;
use super::headers;

/// A request that asks for another protocol, and the client's end of what may follow.
pub(super) struct Upgrade {
    protocol: HeaderValue,
    client: OnUpgrade,
}

impl Upgrade {
    /// Takes what a request says about its connection out of it, the wish for an upgrade apart.
    pub(super) fn take(request: &mut Request<Foreign>) -> Option<Self> {
        let protocol = headers::upgrade(request.headers());
        headers::strip_connection(request.headers_mut());
        let client = request.extensions_mut().remove::<OnUpgrade>();
        let upgrade = Self { protocol: protocol?, client: client? };
        ask(request.headers_mut(), upgrade.protocol.clone());
        Some(upgrade)
    }

    /// Joins client and server, if the server has agreed. Under a pass the tunnel ends with its term.
    pub(super) fn join(self, response: &mut Response<Foreign>, server: OnUpgrade, pass: Option<Pass>) {
        let protocol = response.headers().get(header::UPGRADE).cloned().unwrap_or(self.protocol);
        headers::strip_connection(response.headers_mut());
        ask(response.headers_mut(), protocol);
        tokio::spawn(async move {
            let (Ok(client), Ok(server)) = tokio::join!(self.client, server) else { return };
            let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            let copying = tokio::io::copy_bidirectional(&mut client, &mut server);
            match pass {
                Some(pass) => {
                    let lost = pass.lost();
                    tokio::select! {
                        _ = copying => {}
                        () = lost.cancelled() => {}
                    }
                }
                None => drop(copying.await),
            }
        });
    }
}

/// Whether the server has agreed to another protocol.
pub(super) fn is_agreed<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

fn ask(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}
