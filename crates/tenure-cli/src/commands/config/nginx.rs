//! The configuration of nginx.
//!
//! nginx does not look at nodes by itself, so writes find the leader by asking one node after the other: a
//! location for each. Its own way of trying the next server (`proxy_next_upstream`) is for reads only. It
//! cannot tell "no connection" from "no answer", and the latter may have been executed.

use std::fmt::Write;

use super::balancer::Cluster;
use crate::failure::Failure;

/// nginx ends a chain of more internal redirects with an error.
const MOST_NODES: usize = 9;

pub fn configure(cluster: &Cluster) -> Result<String, Failure> {
    if cluster.https {
        return Err(Failure::No(String::from(
            "nginx cannot verify several nodes with a name each; use `tenure config haproxy` or \
             `tenure config envoy` for nodes with https addresses",
        )));
    }
    if cluster.nodes.len() > MOST_NODES {
        return Err(Failure::No(format!(
            "nginx asks at most {MOST_NODES} nodes one after the other, and there are {}; use \
             `tenure config haproxy`",
            cluster.nodes.len()
        )));
    }
    let (mut servers, mut maps, mut locations) = (String::new(), String::new(), String::new());
    for (number, node) in (1..).zip(&cluster.nodes) {
        let last = number == cluster.nodes.len();
        let next = if last { String::from("nobody") } else { (number + 1).to_string() };
        let (server, id) = (node.server(), &node.id);
        // Whatever it answers, it is there: the others are not asked less because of it.
        let _ = writeln!(servers, "        server {server} max_fails=0;  # {id}");
        let _ = writeln!(
            maps,
            "    map $upstream_connect_time $tenure_after_{number} {{ volatile; \"~-$\" @tenure_{next}; \
             default @tenure_unknown; }}"
        );
        let passed_on = if last {
            String::new()
        } else {
            format!("            proxy_intercept_errors on;\n            error_page 503 = @tenure_{next};\n")
        };
        let _ = writeln!(
            locations,
            "        location @tenure_{number} {{  # {id}\n            proxy_pass http://{server};\n{passed_on}            \
             error_page 502 504 = $tenure_after_{number};\n        }}"
        );
    }
    Ok(TEMPLATE
        .replace("SERVERS", servers.trim_end())
        .replace("MAPS", maps.trim_end())
        .replace("LOCATIONS", locations.trim_end())
        .replace("LISTEN", &cluster.listen.to_string()))
}

const TEMPLATE: &str = r#"# From `tenure config nginx`. Print it again when nodes have come or gone.
events {}

http {
    upstream tenure_any {
        zone tenure_any 64k;
SERVERS
    }

    # What only reads goes to any node. What may write goes to the leader: also a socket.
    map "$request_method $http_upgrade" $tenure_leader_only {
        "~^(GET|HEAD|OPTIONS) $"  "";
        default                   1;
    }
    map $http_upgrade $tenure_connection {
        default  upgrade;
        ""       close;
    }

    # A node gave no answer. `-` says that there was no connection: nothing was sent, so the next one is asked.
MAPS

    server {
        listen LISTEN;

        proxy_http_version 1.1;
        proxy_connect_timeout 2s;
        proxy_buffering off;
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $tenure_connection;
        recursive_error_pages on;

        location / {
            error_page 418 = @tenure_1;
            if ($tenure_leader_only) { return 418; }
            proxy_next_upstream error timeout http_502 http_503 http_504;
            proxy_pass http://tenure_any;
        }

        # Writes: from node to node, as long as they answer 503, which says that nothing was executed.
LOCATIONS
        location @tenure_nobody {
            default_type application/problem+json;
            add_header Retry-After 1 always;
            return 503 '{"title":"no node can be reached","status":503,"executed":false}';
        }
        location @tenure_unknown {
            default_type application/problem+json;
            return 502 '{"title":"the answer was lost; the request may have been executed","status":502,"executed":null}';
        }
    }
}
"#;
