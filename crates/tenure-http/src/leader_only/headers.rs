//! The names of our headers, and what may not travel on.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tenure::{NodeId, Term};

/// The term under which a request was let through; elsewhere, the highest that the node knows.
pub const TENURE_TERM: HeaderName = HeaderName::from_static("tenure-term");
/// The id of the node that leads.
pub const TENURE_LEADER: HeaderName = HeaderName::from_static("tenure-leader");
/// The nodes that have forwarded a request, in order.
pub const TENURE_FORWARDED_BY: HeaderName = HeaderName::from_static("tenure-forwarded-by");

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// A node's id as a header. It has no control characters, so it is always one.
#[must_use]
pub fn node(id: &NodeId) -> HeaderValue {
    HeaderValue::from_bytes(id.as_str().as_bytes()).unwrap_or_else(|_| HeaderValue::from_static("?"))
}

/// A term as a header.
#[must_use]
pub fn term(term: Term) -> HeaderValue {
    HeaderValue::from(term.number())
}

/// Removes what is meant for one connection only: the list of RFC 9110, and what `Connection` names.
pub(super) fn strip_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    let always = [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
    ];
    for name in named.iter().chain(&always) {
        headers.remove(name);
    }
}

/// The protocol that a request or response changes to, if it does.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    if asks { headers.get(header::UPGRADE).cloned() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_one_connection_does_not_travel_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, X-Mine"), ("x-mine", "1"), ("keep-alive", "5"), ("accept", "*/*")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(upgrade(&headers), None);
        strip_connection(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn an_upgrade_is_one_that_both_headers_speak_of() {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        assert_eq!(upgrade(&headers), None);
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert_eq!(upgrade(&headers), Some(HeaderValue::from_static("websocket")));
    }
}
