//! What an operator should know: what `tenure check` shows.

use std::time::Duration;

use tenure_store::{Finding, StoreError};
use zookeeper_client::Client;

use crate::error::{Over, classify};
use crate::inner::Inner;
use crate::registry::{self, MOST_ENDED};

pub(crate) async fn examine(inner: &Inner, client: &Client) -> Result<Vec<Finding>, StoreError> {
    let failed = |error| classify(&error, Over::Store);
    let hosts = &inner.link.address.hosts;
    let tick = inner.link.tick().await?;
    let (_, stat) = client.get_data(&inner.paths().identity()).await.map_err(failed)?;
    let (acl, _) = client.get_acl(&inner.paths().base).await.map_err(failed)?;
    let (live, ended) = registry::count(inner, client).await?;
    let open = acl.iter().any(|acl| acl.scheme() == "world");
    let say = |duration: Duration| format!("{} ms", duration.as_millis());
    Ok(vec![
        Finding::new("place", true, format!("{} below {}", whose(hosts), inner.paths().base), ""),
        servers(hosts),
        Finding::new(
            "shortest ttl",
            true,
            format!("{} (the servers tick every {} at most)", say(tick * 2), say(tick)),
            "",
        ),
        term(inner),
        Finding::new(
            "rights",
            !open,
            String::from(if open { "anybody may change Tenure's znodes" } else { "only their maker's" }),
            "name a user in the store URL (zk://user:password@…) before the first use of this path",
        ),
        Finding::new(
            "ended nodes",
            ended <= MOST_ENDED,
            format!("{ended} remembered, at most {MOST_ENDED}; {live} live"),
            "the oldest are forgotten when the next node starts",
        ),
        Finding::new("since", true, format!("transaction {:#x}", stat.czxid), ""),
    ])
}

fn whose(hosts: &str) -> &str {
    if hosts.is_empty() { "the servers of the client that was given" } else { hosts }
}

fn servers(hosts: &str) -> Finding {
    if hosts.is_empty() {
        return Finding::new("servers", true, String::from("as the client was told"), "");
    }
    let count = hosts.split(',').count();
    let advice = "two servers fail when either does: name three, or one";
    Finding::new("servers", count != 2, format!("{count} in the store URL"), advice)
}

/// What a term is worth here.
fn term(inner: &Inner) -> Finding {
    let Some(shared) = &inner.foreign else {
        return Finding::new("term", true, String::from("a counter in the election's own znode"), "");
    };
    Finding {
        name: "term",
        fine: true,
        value: format!(
            "the transaction that made the leader's znode, in the layout `{}`",
            shared.layout.name()
        ),
        advice: Some(String::from(
            "it rises with every leader; but only Tenure's nodes show it, it has gaps, a restore of the servers \
             may rewind it, and there is no history, priority or end",
        )),
    }
}
