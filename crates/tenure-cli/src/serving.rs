//! From settings to an HTTP API that is served.

use std::net::SocketAddr;
use std::time::Duration;

use tenure::{Cluster, ClusterSettings, Election, Node, NodeBuilder};
use tenure_http::leader_only::Origin;
use tenure_http::{Access, Api, ApiSettings, Metrics, Server, Tls, Token, Worker};
use tokio_util::sync::CancellationToken;

use crate::cli::{NodeSettings, ServeSettings};
use crate::failure::{Failure, chain};
use crate::upstream::Program;

/// A socket that waits to be served, and what was settled before.
pub struct Door {
    server: Server,
    /// How it proves who it is.
    pub tls: Option<Tls>,
    access: Access,
    /// Where others reach it.
    address: Option<String>,
    /// Where it listens.
    pub url: String,
    metrics: Metrics,
    min_nodes: usize,
}

/// Whom a node serves beside itself.
#[derive(Default)]
pub struct Beside {
    /// A program that gets what is not the API's.
    pub program: Option<Program>,
    /// A program that works on the node's partitions.
    pub worker: Option<Worker>,
}

/// An API that is being served.
pub struct Service {
    api: Api,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Door {
    /// Checks all that can be checked, and listens: before anything is registered.
    pub async fn open(
        listen: SocketAddr,
        serve: &ServeSettings,
        node: &NodeSettings,
    ) -> Result<Self, Failure> {
        let tls = match (&serve.tls_cert, &serve.tls_key) {
            (Some(certificate), Some(key)) => {
                let tls = Tls::from_files(certificate, key, serve.tls_ca.as_ref());
                Some(tls.map_err(|error| Failure::Usage(chain(&error)))?)
            }
            _ => None,
        };
        if !listen.ip().is_loopback() && tls.is_none() && !serve.plaintext {
            return Err(Failure::Usage(format!(
                "`--listen {listen}` reaches beyond this machine, and there is no TLS; give --tls-cert and \
                 --tls-key, or --plaintext if whoever is on the way may read everything"
            )));
        }
        let token = serve.token_file.as_deref().map(Token::from_file).transpose();
        let token = token.map_err(|error| Failure::Usage(chain(&error)))?;
        let given = node.address.as_deref().map(origin).transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let cannot = |error| {
            Failure::System(format!("cannot listen at {listen}: {error}; give another address with --listen"))
        };
        let server = Server::bind(listen).map_err(cannot)?.tls(tls.clone());
        let bound = server.address().map_err(cannot)?;
        let url = format!("{scheme}://{bound}");
        let address = node.address.clone().or_else(|| (!bound.ip().is_unspecified()).then(|| url.clone()));
        let mut hosts = serve.allow_host.clone();
        hosts.push(rustix::system::uname().nodename().to_string_lossy().into_owned());
        hosts.extend(given.map(|origin| origin.host().to_owned()));
        let access = Access { token, hosts };
        let metrics = Metrics::default();
        Ok(Self { server, tls, access, address, url, metrics, min_nodes: serve.min_nodes })
    }

    /// What the node shall tell and be told of this.
    pub fn introduce(&self, builder: NodeBuilder) -> NodeBuilder {
        let builder = builder.observer(self.metrics.observer());
        match &self.address {
            Some(address) => builder.address(address),
            None => builder,
        }
    }

    /// Serves the API of this node. What it tells of the leader is about this election, for which
    /// somebody else stands.
    pub fn serve(
        self,
        node: &Node,
        election: &Election,
        settings: &NodeSettings,
        beside: Beside,
    ) -> Result<Service, Failure> {
        let Beside { program, worker } = beside;
        let watched = ClusterSettings {
            minimum: self.min_nodes,
            look_every: (settings.ttl / 3).max(Duration::from_millis(50)),
            ..ClusterSettings::default()
        };
        let cluster: Cluster = node.cluster(&election.gate(), watched).map_err(Failure::system)?;
        let api = Api::new(
            node.clone(),
            cluster,
            ApiSettings {
                access: self.access,
                ttl: settings.ttl,
                stands: settings.eligible,
                metrics: self.metrics,
                worker,
                ..ApiSettings::default()
            },
        );
        let stop = CancellationToken::new();
        let router = match program {
            Some(program) => api.in_front_of(program),
            None => api.router(),
        };
        let serving = self.server.serve(router, stop.clone()).map_err(Failure::system)?;
        let task = tokio::spawn(serving);
        Ok(Service { api, stop, task })
    }
}

impl Service {
    /// Says that it is on its way out: streams end, and it is not ready any more. It still answers.
    pub fn stopping(&self) {
        self.api.stop();
    }

    /// Answers what was asked, and then nothing more.
    pub async fn end(self) {
        self.stop.cancel();
        // A panic in there is none of ours.
        let _ = self.task.await;
    }
}

/// Threads that serve. The session is renewed on a thread of its own.
const THREADS: usize = 2;

/// A runtime for whoever serves.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(THREADS).enable_all().build().map_err(Failure::system)
}

/// An address that others may be sent to.
///
/// # Errors
/// If it is more or less than scheme, host and port, or no address of a server.
pub fn origin(address: &str) -> Result<Origin, Failure> {
    address.parse().map_err(|error| {
        Failure::Usage(format!("`--address {}` is refused: {error}", address.escape_debug()))
    })
}

/// More connections than the usual 1,024 need more descriptors; the hard limit is the administrator's.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused: then there are fewer connections, and whoever comes too many waits.
    let _ = setrlimit(Resource::Nofile, limit);
}
