//! From settings to a registered node.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure::{ConnectError, Labels, Node, NodeBuilder, Setup, StartError, Store, StoreError};

use crate::cli::{Global, NodeSettings, SeatSettings};
use crate::failure::{Failure, chain};
use crate::voice::Voice;
use crate::{output, serving, severed, store};

/// How soon an unreachable store is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The host name and a short random word, unless it was given.
pub fn node_id(settings: &NodeSettings) -> String {
    settings.node.as_ref().map_or_else(
        || {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let random = getrandom::u32().unwrap_or_else(|_| std::process::id());
            format!("{host}-{:05x}", random & 0xf_ffff)
        },
        ToString::to_string,
    )
}

/// Says in the first line where others have to be to take part, and warns where they cannot be.
pub fn introduce(global: &Global, listen: Option<SocketAddr>, voice: &Voice) {
    let (store, namespace) = (store::shown(global), global.namespace.as_str());
    let local = if global.store.is_none() {
        "; there is no --store, so only processes on this machine take part"
    } else {
        ""
    };
    let sentence = format!("store {store}, namespace `{namespace}`{local}");
    voice.say("using_store", &sentence, json!({"store": store, "namespace": namespace}));
    let in_kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let sign = match listen {
        _ if in_kubernetes => String::from("this is a Kubernetes pod (KUBERNETES_SERVICE_HOST is set)"),
        Some(address) if !address.ip().is_loopback() => format!("--listen {address} is for other machines"),
        _ => return,
    };
    if global.store.is_none() {
        let sentence = format!(
            "warning: {sign}, and the store is a file of this machine: every machine elects a leader of its own; \
             give all of them the same --store, such as postgres://user@host/database"
        );
        voice.say("local_store", &sentence, json!({"store": store}));
    }
}

/// Connects and registers, as the settings say and `shape` adds. A store that is away is waited for; one
/// that cannot be used is an error.
pub async fn start(
    global: &Global,
    settings: &NodeSettings,
    id: &str,
    voice: &Voice,
    shape: impl FnOnce(NodeBuilder) -> NodeBuilder,
) -> Result<Node, Failure> {
    if let Some(address) = &settings.address {
        serving::origin(address)?;
    }
    let labels = Labels::parse(settings.label.iter().map(String::as_str));
    let store = reach(global, &settings.seat, voice).await?;
    let mut builder = Node::builder(id)
        .ttl(settings.ttl)
        .takeover_delay(settings.takeover_delay)
        .eligible(settings.eligible)
        .priority(settings.priority)
        .failback(settings.failback)
        .labels(labels.map_err(|error| Failure::Usage(error.to_string()))?);
    if let Some(every) = settings.renew_every {
        builder = builder.renew_every(every);
    }
    if let Some(every) = settings.poll_every {
        builder = builder.poll_every(every);
    }
    if let Some(address) = &settings.address {
        builder = builder.address(address);
    }
    if let Some(verdict) = settings.health.start(settings.ttl, voice)? {
        builder = builder.health(move || std::future::ready(verdict.is_healthy()));
    }
    let mut starting = pin!(shape(builder).start(store));
    // Most often it is there at once. If not, somebody at a terminal wants to know why.
    let node = match tokio::time::timeout(Duration::from_millis(500), &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            let sentence = format!(
                "registering as `{id}` takes a while: the store is slow, or an earlier process with this id has \
                 not lapsed yet (at most {})",
                output::length(settings.ttl)
            );
            voice.say("registering", &sentence, json!({}));
            starting.await
        }
    };
    node.map_err(|error| match error {
        StartError::NodeIdTaken { .. } => {
            Failure::No(format!("{}; give this one another with --node, or leave --node out", chain(&error)))
        }
        StartError::Misconfigured { .. } | StartError::TimedOut { .. } => Failure::Store(chain(&error)),
        StartError::System(_) | StartError::DriverDied => Failure::System(chain(&error)),
        _ => Failure::Usage(chain(&error)),
    })
}

async fn reach(global: &Global, seat: &SeatSettings, voice: &Voice) -> Result<Arc<dyn Store>, Failure> {
    let mut said = None;
    loop {
        let url = store::url_with_seat(global, seat)?;
        match store::open(url.as_deref(), &global.namespace, Setup::Create).await {
            Err(ConnectError::Store(error @ (StoreError::Unavailable(_) | StoreError::Indeterminate(_)))) => {
                let problem = chain(&error);
                if said.as_ref() != Some(&problem) {
                    voice.say("waiting_for_store", &format!("waiting for the store: {problem}"), json!({}));
                    said = Some(problem);
                }
                tokio::time::sleep(RETRY).await;
            }
            connected => return Ok(severed::severable(connected?)),
        }
    }
}
