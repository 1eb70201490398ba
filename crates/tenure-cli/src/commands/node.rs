//! `tenure node`: a member of a cluster that watches it, and tells of it over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;

use futures_util::StreamExt;
use serde_json::json;
use tenure::{Election, LeaderChange, Node};
use tenure_http::{Coordinator, Worker};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::arranging::arrange;
use crate::cli::{Global, NodeCommand};
use crate::failure::{Exit, Failure};
use crate::service::Service;
use crate::serving::{self, Beside, Door};
use crate::voice::Voice;
use crate::{outage, registration};

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8001);

pub fn node(global: &Global, asked: &NodeCommand) -> Result<Exit, Failure> {
    serving::raise_descriptor_limit();
    let runtime = serving::runtime()?;
    let exit = runtime.block_on(live(global, asked));
    // Nothing that a store has left running keeps us.
    runtime.shutdown_background();
    exit
}

async fn live(global: &Global, asked: &NodeCommand) -> Result<Exit, Failure> {
    let mut end = End::listen()?;
    let id = registration::node_id(&asked.node);
    let voice = Voice { json: global.json, election: asked.election.clone(), node: id.clone() };
    registration::introduce(global, &asked.node, asked.serve.listen, &voice);
    let door = Door::open(asked.serve.listen.unwrap_or(LISTEN), &asked.serve, &asked.node).await?;
    let started = {
        let starting = registration::start(global, &asked.node, &id, &voice, |node| door.introduce(node));
        let starting = pin!(starting);
        tokio::select! {
            started = starting => started?,
            () = end.wanted() => return Ok(Exit::DONE),
        }
    };
    outage::tell(&started, voice.clone(), true);
    let election = started.election(asked.election.as_str()).map_err(|error| {
        Failure::Usage(format!("`{}` is no name for an election: {error}", asked.election))
    })?;
    let url = door.url.clone();
    let program = asked.upstream.behind(&election.gate(), door.tls.as_ref());
    let worker = match &asked.tasks.work[..] {
        [] => None,
        lists => Some(Worker::start(&started, election.name().as_str(), lists.to_vec(), asked.node.ttl)?),
    };
    let works = worker.is_some();
    let served = door.serve(&started, &election, &asked.node, Beside { program, worker })?;
    let arranging = arrange(&started, asked.election.as_str(), &asked.tasks.task_list, global.json)?;
    let coordinator = Coordinator::start(election.clone());
    voice.say("serving", &format!("node `{id}` serves {url}"), json!({"url": url}));
    Service.ready();
    tokio::select! {
        () = end.wanted() => {}
        ended = tell(&election, &voice) => ended?,
        () = closed(&started) => return Err(Failure::Store(String::from("the node has come to its end"))),
        () = Service.keep_alive() => unreachable!("it never ends"),
    }
    Service.stopping();
    coordinator.stop().await;
    if let Some(arranging) = arranging {
        arranging.abort();
    }
    if works {
        // The program is told to stop, and says when it has, over what is still served.
        let limit = asked.node.ttl * 3;
        tokio::select! {
            () = started.close() => {}
            () = tokio::time::sleep(limit) => abandon(&voice),
            () = end.wanted() => abandon(&voice),
        }
        served.stopping();
        served.end().await;
        return Ok(Exit::DONE);
    }
    served.stopping();
    started.close().await;
    served.end().await;
    Ok(Exit::DONE)
}

/// A session under which a program may still work is not closed.
fn abandon(voice: &Voice) {
    let sentence = "the program has not released all partitions; the session is left to lapse by itself";
    voice.say("abandoned", sentence, json!({}));
}

/// Says who leads, whenever that changes. Never returns as long as the node lives.
async fn tell(election: &Election, voice: &Voice) -> Result<(), Failure> {
    let mut changes = election.observe();
    while let Some(LeaderChange { leader, term }) = changes.next().await {
        let term = term.number();
        let (sentence, data) = match leader {
            Some(leader) => {
                let sentence = format!("`{leader}` leads `{}` under term {term}", election.name());
                (sentence, json!({"leader_id": leader.as_str(), "term": term}))
            }
            None => (
                format!("no leader of `{}` is known at the moment", election.name()),
                json!({"leader_id": null, "term": term}),
            ),
        };
        voice.say("leader_changed", &sentence, data);
    }
    Err(Failure::Store(String::from(
        "the node has come to its end: the store cannot be used, or its id is taken",
    )))
}

/// Waits until the node has come to its end by itself.
async fn closed(node: &Node) {
    let mut held = node.held();
    while held.changed().await.is_some() {}
}

/// The signals that end a node.
struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    fn listen() -> Result<Self, Failure> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn wanted(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
