//! From settings to a registered node.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure::{
    ConnectError, Labels, Node, NodeBuilder, NodeRecord, NodeState, SettingsError, Setup, StartError, Store,
    StoreError,
};
use tenure_store::clock;

use crate::cli::{Global, NodeSettings, SeatSettings};
use crate::failure::{Failure, chain};
use crate::origins::Origins;
use crate::voice::Voice;
use crate::{output, serving, severed, store};

/// How soon an unreachable store is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How often it is said that it still cannot be reached.
const REMIND: Duration = Duration::from_secs(60);

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
pub fn introduce(global: &Global, settings: &NodeSettings, listen: Option<SocketAddr>, voice: &Voice) {
    let (store, namespace) = (store::shown(global), global.namespace.as_str());
    let local = if global.store.is_none() {
        "; there is no --store, so only processes on this machine take part"
    } else {
        ""
    };
    let url = global.store.as_deref();
    let new = if store::file(url).is_some_and(|file| !file.exists()) {
        "; the file does not exist yet and is created"
    } else {
        ""
    };
    let sentence = format!("store {store}, namespace `{namespace}`{local}{new}");
    voice.say("using_store", &sentence, json!({"store": store, "namespace": namespace}));
    let in_kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let sign = match listen {
        _ if in_kubernetes => String::from("this is a Kubernetes pod (KUBERNETES_SERVICE_HOST is set)"),
        Some(address) if !address.ip().is_loopback() => format!("--listen {address} is for other machines"),
        _ if is_unit_of_several_hosts(settings) => {
            String::from("this is a systemd unit (INVOCATION_ID is set) and its --node names the host")
        }
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

/// Whether a service manager started us under a name that was made for more than one machine: `--node=%H`.
fn is_unit_of_several_hosts(settings: &NodeSettings) -> bool {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let named = settings.node.as_ref().is_some_and(|node| node.as_str().contains(&host));
    named && !host.is_empty() && std::env::var_os("INVOCATION_ID").is_some()
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
    // Before the store is reached, and perhaps created.
    builder.validate().map_err(|error| not_started(error, global, settings))?;
    let begun = clock::now();
    let store = match settings.start_timeout {
        None => reach(global, &settings.seat, voice, &mut None).await?,
        Some(limit) => {
            let mut problem = None;
            let reached =
                tokio::time::timeout(limit, reach(global, &settings.seat, voice, &mut problem)).await;
            reached.map_err(|_| gave_up(limit, problem.as_deref().unwrap_or("it does not answer")))??
        }
    };
    if let Some(limit) = settings.start_timeout {
        builder = builder.start_timeout(limit.saturating_sub(clock::now().since(begun)));
    }
    if let Some(verdict) = settings.health.start(settings.ttl, voice)? {
        builder = builder.health(move || verdict.clone().outcome());
    }
    let mut starting = pin!(shape(builder).start(Arc::clone(&store)));
    // Most often it is there at once. If not, somebody at a terminal wants to know why.
    let node = match tokio::time::timeout(Duration::from_millis(500), &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            let (sentence, data) = tokio::select! {
                biased;
                said = why_registering_takes(&store, id) => said,
                started = &mut starting => return started.map_err(|error| not_started(error, global, settings)),
            };
            voice.say("registering", &sentence, data);
            starting.await
        }
    };
    node.map_err(|error| not_started(error, global, settings))
}

/// Why registering takes a while: who else has the id, if somebody has.
async fn why_registering_takes(store: &Arc<dyn Store>, id: &str) -> (String, serde_json::Value) {
    let nodes = store::ask(store.nodes()).await.unwrap_or_default();
    let other = nodes.into_iter().find(|node| node.info.id.as_str() == id && node.state == NodeState::Live);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    match other {
        // It may be this process, registered a moment ago; or one before it, in a container that was started again.
        Some(node) if node.info.pid == std::process::id() && node.info.hostname == host => {
            let sentence = format!(
                "registering as `{id}` takes a while: the store is slow, or an earlier session of this id has not lapsed yet \
                 (it does {} after its last renewal)",
                output::length(node.pulse.ttl)
            );
            (sentence, json!({}))
        }
        Some(NodeRecord { info, pulse, renewed_at, .. }) => {
            let (host, pid) = (output::harmless(&info.hostname), info.pid);
            let sentence = format!(
                "the node id `{id}` is in use by process {pid} on {host}, which renewed {}; waiting until that session \
                 lapses ({} after its last renewal), or refusing to start if it is renewed",
                output::ago(renewed_at),
                output::length(pulse.ttl)
            );
            (sentence, json!({"hostname": info.hostname, "pid": pid}))
        }
        None => (format!("registering as `{id}` takes a while: the store is slow"), json!({})),
    }
}

fn not_started(error: StartError, global: &Global, settings: &NodeSettings) -> Failure {
    match error {
        StartError::NodeIdTaken { .. } => {
            Failure::No(format!("{}; give this one another with --node, or leave --node out", chain(&error)))
        }
        StartError::TimedOut { limit, problem, .. } => {
            gave_up(settings.start_timeout.unwrap_or(limit), &problem)
        }
        StartError::Misconfigured { .. } => Failure::Store(chain(&error)),
        StartError::Settings(error) => Failure::Usage(blamed(&error, &global.origins)),
        StartError::System(_) | StartError::DriverDied => Failure::System(chain(&error)),
        _ => Failure::Usage(chain(&error)),
    }
}

/// The problem under the name that the setting has where it was written.
fn blamed(error: &SettingsError, origins: &Origins) -> String {
    let setting = error.setting();
    error.to_string().replace(&format!("`{setting}`"), &origins.name(setting))
}

fn gave_up(limit: Duration, problem: &str) -> Failure {
    let limit = humantime::format_duration(limit);
    Failure::Store(format!("the store could not be reached within {limit} (--start-timeout): {problem}"))
}

/// Connects as soon as the store can be reached; `problem` is why it cannot be.
async fn reach(
    global: &Global,
    seat: &SeatSettings,
    voice: &Voice,
    problem: &mut Option<String>,
) -> Result<Arc<dyn Store>, Failure> {
    let begun = clock::now();
    let mut said = begun;
    loop {
        let url = store::url_with_seat(global, seat)?;
        match store::open(url.as_deref(), &global.namespace, Setup::Create).await {
            Err(ConnectError::Store(StoreError::Unavailable(error) | StoreError::Indeterminate(error))) => {
                let (found, now) = (chain(&*error), clock::now());
                if problem.as_ref() != Some(&found) || now.since(said) >= REMIND {
                    let sentence = format!("waiting for the store, trying again every second: {found}");
                    voice.say("waiting_for_store", &sentence, json!({"problem": found}));
                    said = now;
                    *problem = Some(found);
                }
                tokio::time::sleep(RETRY).await;
            }
            connected => {
                let store = connected.map_err(|error| store::refused(global, error))?;
                if problem.is_some() {
                    let away = clock::now().since(begun);
                    let sentence = format!("the store is reached, after {}", output::length(away));
                    voice.say("store_back", &sentence, json!({"away_ms": output::millis(away)}));
                }
                return Ok(severed::severable(store));
            }
        }
    }
}
