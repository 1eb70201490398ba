//! The way to the leader, from a node that is not.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tenure::{Gate, KnownLeader, Pass};

use super::answer::{self, Problem};
use super::body::Foreign;
use super::headers::{self, TENURE_FORWARDED_BY};
use super::layer::origin;
use super::tunnel::{self, Upgrade};
use super::wire::{self, Failure, Limits, Wire};

/// A request has been misled more often than nodes can disagree.
const MOST_HOPS: usize = 8;

/// How often the leader is looked for again when it cannot be reached.
const MOST_TRIES: u32 = 3;

/// Passes requests on to the leader. Clones share their connections.
#[derive(Clone)]
pub struct Forwarder {
    wire: Arc<Wire>,
}

impl Forwarder {
    /// With these limits. Leaders with an `https` address are verified by what the system trusts.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { wire: Wire::new(limits, None) }
    }

    /// The same, with other roots of trust, or with a certificate of this node's own.
    #[must_use]
    pub fn with_tls(limits: Limits, tls: Arc<rustls::ClientConfig>) -> Self {
        Self { wire: Wire::new(limits, Some(tls)) }
    }

    pub(super) async fn forward(
        self,
        gate: Gate,
        mut leader: Arc<KnownLeader>,
        mut request: Request<Foreign>,
    ) -> Response<Foreign> {
        let refuse = |problem| answer::problem(problem, &gate, false);
        let own = headers::node(gate.node());
        let hops: Vec<_> = request.headers().get_all(TENURE_FORWARDED_BY).iter().collect();
        if hops.len() >= MOST_HOPS || hops.contains(&&own) {
            return refuse(Problem::Loop);
        }
        address(&mut request);
        let mut upgrade = Upgrade::take(&mut request);
        request.headers_mut().append(TENURE_FORWARDED_BY, own);
        for _ in 0..MOST_TRIES {
            let Some(origin) = origin(&leader) else { return refuse(Problem::NoAddress) };
            // The leader makes the check.
            match self.wire.send(&origin, request, || true).await {
                Ok(response) => return received(response, upgrade.take(), None),
                Err(Failure::Unsent(unsent)) => request = *unsent,
                Err(Failure::TooLate) => return refuse(Problem::NotLeader),
                Err(Failure::Broken) => return refuse(Problem::Broken),
                Err(Failure::TimedOut) => return refuse(Problem::TimedOut),
            }
            // Nothing was sent. If another leads by now, it is asked instead.
            match gate.leader().filter(|next| next.term > leader.term && next.node != *gate.node()) {
                Some(next) => leader = next,
                None => break,
            }
        }
        refuse(Problem::LeaderUnreachable)
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forwarder")
    }
}

/// Gives a request the form that it has on an HTTP/1.1 connection: a path, and the host in a header.
pub(super) fn address(request: &mut Request<Foreign>) {
    let host = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if let Some(host) = host.and_then(|host| host.parse().ok()) {
        request.headers_mut().entry(http::header::HOST).or_insert(host);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    if let Ok(path) = path.parse() {
        *request.uri_mut() = path;
    }
    *request.version_mut() = http::Version::HTTP_11;
}

/// A response as it is passed back, and the tunnel behind it if there is one.
pub(super) fn received(
    mut response: Response<Incoming>,
    upgrade: Option<Upgrade>,
    pass: Option<Pass>,
) -> Response<Foreign> {
    let agreed = tunnel::is_agreed(&response);
    let server = agreed.then(|| hyper::upgrade::on(&mut response));
    let mut response = wire::boxed(response);
    match (upgrade, server) {
        (Some(upgrade), Some(server)) => upgrade.join(&mut response, server, pass),
        _ => headers::strip_connection(response.headers_mut()),
    }
    response
}
