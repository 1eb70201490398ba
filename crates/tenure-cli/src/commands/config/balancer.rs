//! `tenure config nginx|haproxy|envoy`: a load balancer's configuration for the nodes that live now.
//!
//! All three do the same. Reads go to any node. Writes go from node to node until one does not answer 503,
//! which says that nothing was executed; a request that may have been executed is never sent again.
//! docs/load-balancers.md has the reasons.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tenure::{NodeId, NodeState, Store};
use tenure_http::leader_only::Origin;

use super::{envoy, haproxy, nginx};
use crate::cli::Balancer;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};
use crate::store::ask;

/// Which load balancer.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Nginx,
    Haproxy,
    Envoy,
}

/// What there is to balance.
pub struct Cluster {
    /// Where clients come.
    pub listen: SocketAddr,
    /// The nodes, by id.
    pub nodes: Vec<Member>,
    pub https: bool,
}

/// A node as a load balancer wants it. Its address is one that was looked at.
pub struct Member {
    pub id: NodeId,
    pub origin: Origin,
}

impl Member {
    /// `host:port`, with the brackets of IPv6.
    pub fn server(&self) -> String {
        let host = self.origin.host();
        let port = self.origin.port();
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

pub async fn print(store: Arc<dyn Store>, asked: &Balancer, kind: Kind) -> Result<Exit, Failure> {
    let cluster = Cluster::read(&*store, asked).await?;
    output::say(cluster.configure(kind)?.trim_end())?;
    Ok(Exit::DONE)
}

impl Cluster {
    async fn read(store: &dyn Store, asked: &Balancer) -> Result<Self, Failure> {
        let mut nodes = BTreeMap::new();
        for node in ask(store.nodes()).await? {
            if node.state != NodeState::Live {
                continue;
            }
            let Some(address) = &node.info.address else { continue };
            match address.parse::<Origin>() {
                Ok(origin) => drop(nodes.insert(node.info.id, origin)),
                Err(error) => output::notice(
                    false,
                    &format!(
                        "`{}` is left out: its address `{}` cannot be used: {error}",
                        node.info.id,
                        harmless(address)
                    ),
                ),
            }
        }
        Self::of(asked.listen, nodes.into_iter().map(|(id, origin)| Member { id, origin }).collect())
    }

    fn of(listen: SocketAddr, nodes: Vec<Member>) -> Result<Self, Failure> {
        let Some(first) = nodes.first() else {
            return Err(Failure::No(String::from(
                "no live node has an address, so there is nothing to balance; start some with \
                 `tenure node --listen ADDR --address URL`",
            )));
        };
        let https = first.origin.is_https();
        if nodes.iter().any(|node| node.origin.is_https() != https) {
            return Err(Failure::No(String::from(
                "some nodes have an http address and others https; give all of them the same scheme",
            )));
        }
        Ok(Self { listen, nodes, https })
    }

    fn configure(&self, kind: Kind) -> Result<String, Failure> {
        match kind {
            Kind::Nginx => nginx::configure(self),
            Kind::Haproxy => Ok(haproxy::configure(self)),
            Kind::Envoy => Ok(envoy::configure(self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(addresses: &[&str]) -> Result<Cluster, Failure> {
        let member = |(number, address): (usize, &&str)| Member {
            id: NodeId::new(format!("node {number}")).unwrap(),
            origin: address.parse().unwrap(),
        };
        let nodes = addresses.iter().enumerate().map(member).collect();
        Cluster::of("127.0.0.1:8080".parse().unwrap(), nodes)
    }

    #[test]
    fn every_node_is_named_with_host_and_port() {
        let cluster = cluster(&["http://10.0.0.7:8001", "http://[::1]", "http://c.example:1"]).unwrap();
        for kind in [Kind::Nginx, Kind::Haproxy] {
            let text = cluster.configure(kind).unwrap();
            for server in ["10.0.0.7:8001", "[::1]:80", "c.example:1", "127.0.0.1:8080"] {
                assert!(text.contains(server), "{server} in {text}");
            }
        }
        let text = cluster.configure(Kind::Envoy).unwrap();
        for part in ["address: \"10.0.0.7\"", "address: \"::1\"", "port_value: 8001"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn nodes_with_tls_are_verified_or_refused() {
        let cluster = cluster(&["https://a.example", "https://b.example"]).unwrap();
        let text = cluster.configure(Kind::Haproxy).unwrap();
        assert!(text.contains("a.example:443 ssl verify required"), "{text}");
        assert!(cluster.configure(Kind::Envoy).unwrap().contains("UpstreamTlsContext"));
        assert!(cluster.configure(Kind::Nginx).unwrap_err().to_string().contains("haproxy"));
    }

    #[test]
    fn nothing_to_balance_and_mixed_schemes_are_told() {
        assert!(cluster(&[]).is_err_and(|error| error.to_string().contains("no live node")));
        let mixed = cluster(&["http://a.example", "https://b.example"]);
        assert!(mixed.is_err_and(|error| error.to_string().contains("same scheme")));
    }
}
