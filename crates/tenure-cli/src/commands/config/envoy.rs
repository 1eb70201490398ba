//! The configuration of Envoy.

use std::fmt::Write;

use super::balancer::{Cluster, Member};

pub fn configure(cluster: &Cluster) -> String {
    let mut endpoints = String::new();
    for node in &cluster.nodes {
        let _ = write!(endpoints, "{}", endpoint(node));
    }
    let tls = if cluster.https { TLS } else { "" };
    let group = |name: &str, path: &str, interval: &str| {
        CLUSTER
            .replace("NAME", name)
            .replace("PATH", path)
            .replace("INTERVAL", interval)
            .replace("TLS", tls)
            .replace("ENDPOINTS", endpoints.trim_end())
    };
    let listen = cluster.listen;
    let head = HEAD.replace("LISTEN_ADDRESS", &listen.ip().to_string());
    let head = head.replace("LISTEN_PORT", &listen.port().to_string());
    format!("{head}{}{}", group("tenure_any", "/live", "1s"), group("tenure_leader", "/leader", "0.25s"))
}

/// Addresses have been looked at: they are host names and IP addresses, so they need no escapes.
fn endpoint(node: &Member) -> String {
    format!(
        "        - endpoint:  # {}\n            address: {{ socket_address: {{ address: \"{}\", port_value: {} }} }}\n",
        node.id,
        node.origin.host(),
        node.origin.port()
    )
}

/// `connect-failure` and 503 say that nothing was executed; nothing else is sent again, unless it only reads.
const HEAD: &str = r#"# From `tenure config envoy`. Print it again when nodes have come or gone.
static_resources:
  listeners:
  - name: tenure
    address: { socket_address: { address: "LISTEN_ADDRESS", port_value: LISTEN_PORT } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: tenure
          upgrade_configs: [{ upgrade_type: websocket }]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
          route_config:
            virtual_hosts:
            - name: tenure
              domains: ["*"]
              routes:
              - match:
                  prefix: "/"
                  headers:
                  - { name: ":method", string_match: { safe_regex: { regex: "GET|HEAD|OPTIONS" } } }
                  - { name: upgrade, present_match: true, invert_match: true }
                route:
                  cluster: tenure_any
                  timeout: 0s
                  retry_policy:
                    retry_on: connect-failure,reset,gateway-error
                    num_retries: 3
                    retry_host_predicate: [{ name: envoy.retry_host_predicates.previous_hosts, typed_config: { "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate } }]
              - match: { prefix: "/" }
                route:
                  cluster: tenure_leader
                  timeout: 0s
                  retry_policy:
                    retry_on: connect-failure,retriable-status-codes
                    retriable_status_codes: [503]
                    num_retries: 3
                    retry_host_predicate: [{ name: envoy.retry_host_predicates.previous_hosts, typed_config: { "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate } }]
  clusters:
"#;

/// Without a healthy node Envoy asks all of them (its "panic"): as in a failover, that is right.
const CLUSTER: &str = r#"  - name: NAME
    type: STRICT_DNS
    connect_timeout: 2s
    lb_policy: ROUND_ROBIN
    common_lb_config: { healthy_panic_threshold: { value: 1 } }
    health_checks:
    - timeout: 2s
      interval: INTERVAL
      unhealthy_threshold: 1
      healthy_threshold: 1
      http_health_check: { path: PATH }
TLS    load_assignment:
      cluster_name: NAME
      endpoints:
      - lb_endpoints:
ENDPOINTS
"#;

const TLS: &str = r#"    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        auto_host_sni: true
        auto_sni_san_validation: true
        common_tls_context:
          validation_context: { trusted_ca: { filename: /etc/ssl/certs/ca-certificates.crt } }
"#;
