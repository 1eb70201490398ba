//! From settings to a registered node.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure::{ConnectError, Labels, Node, NodeBuilder, SettingsError, Setup, StartError, Store, StoreError};
use tenure_store::clock;

use crate::cli::{Global, NodeSettings, SeatSettings};
use crate::failure::{Failure, chain};
use crate::voice::Voice;
use crate::{output, serving, severed, store};

use crate::origins::Origins;
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
    let mut builder = Node::builder(id)
        .ttl(settings.ttl)
        .takeover_delay(settings.takeover_delay)
        .eligible(settings.eligible)
        .priority(settings.priority)
        .failback(settings.failback)
        .labels(labels.map_err(|error| Failure::Usage(error.to_string()))?);
    if let Some(limit) = settings.start_timeout {
        builder = builder.start_timeout(limit.saturating_sub(clock::now().since(begun)));
    }
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
        builder = builder.health(move || verdict.clone().outcome());
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
        StartError::TimedOut { limit, problem, .. } => {
            gave_up(settings.start_timeout.unwrap_or(limit), &problem)
        }
        StartError::Misconfigured { .. } => Failure::Store(chain(&error)),
        StartError::Settings(error) => Failure::Usage(blamed(&error, &global.origins)),
        StartError::System(_) | StartError::DriverDied => Failure::System(chain(&error)),
        _ => Failure::Usage(chain(&error)),
    })
}

/// The problem under the name that the setting has where it was written.
fn blamed(error: &SettingsError, origins: &Origins) -> String {
    let setting = error.setting();
    error.to_string().replace(&format!("`{setting}`"), &format!("`--{}`", setting.replace('_', "-")))
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
