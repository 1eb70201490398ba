//! The configuration of HAProxy.

use std::fmt::Write;

use super::balancer::{Cluster, Member};

/// HAProxy asks every node whether it leads. Between two questions, what it believes may be old: a leader of
/// yesterday answers 503, is taken out at once, and the request goes on to the others (the backups). In the same way
/// reads go to all of them when none seems to live: nodes that were restarted one after the other may be back.
pub fn configure(cluster: &Cluster) -> String {
    let [mut any, mut spare, mut leading, mut others] = [const { String::new() }; 4];
    for (number, node) in (1..).zip(&cluster.nodes) {
        let (server, tls) = (node.server(), tls(node));
        let _ = writeln!(any, "    server node{number} {server}{tls} check  # {}", node.id);
        let _ = writeln!(spare, "    server spare{number} {server}{tls} no-check backup");
        let _ = writeln!(leading, "    server leader{number} {server}{tls} check");
        let _ = writeln!(others, "    server other{number} {server}{tls} no-check backup");
    }
    TEMPLATE
        .replace("ANY", any.trim_end())
        .replace("SPARE", spare.trim_end())
        .replace("LEADING", leading.trim_end())
        .replace("OTHERS", others.trim_end())
        .replace("LISTEN", &cluster.listen.to_string())
}

fn tls(node: &Member) -> String {
    if !node.origin.is_https() {
        return String::new();
    }
    let host = node.origin.host();
    format!(
        " ssl verify required ca-file @system-ca sni str({host}) verifyhost {host} check-sni {host} alpn http/1.1"
    )
}

const TEMPLATE: &str = "\
# From `tenure config haproxy`. Print it again when nodes have come or gone.
defaults
    mode http
    # Also how long HAProxy waits before it connects once more where it knows of one node only (a second, if this is
    # longer): a leader that was just restarted would cost every client that second. Nodes far away need more.
    timeout connect 250ms
    timeout client 75s
    timeout server 75s
    timeout tunnel 1h
    timeout check 2s
    option redispatch 1
    option forwardfor

frontend tenure
    bind LISTEN
    acl reads method GET HEAD OPTIONS
    acl upgrades req.hdr(Upgrade) -m found
    use_backend tenure_any if reads !upgrades
    default_backend tenure_leader

backend tenure_any
    balance roundrobin
    option httpchk GET /live
    http-check expect status 200
    retries 6
    retry-on conn-failure empty-response 502 503 504
    option allbackups
    # One that cannot be connected to is taken out at once: requests do not go in circles among those that restart.
    default-server inter 1s fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
ANY
SPARE

backend tenure_leader
    balance roundrobin
    option httpchk GET /leader
    http-check expect status 200
    # A connection for each write: none meets one that is just being closed.
    option http-server-close
    # Only what was certainly not executed is sent again: no connection, or 503.
    retries 6
    retry-on conn-failure 503
    option allbackups
    default-server inter 250ms fall 1 rise 1 observe layer7 error-limit 1 on-error mark-down
LEADING
OTHERS
";
