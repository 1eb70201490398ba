//! Without a terminal: everything is done once, and a transcript is printed.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_store::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Demo;
use super::episode::Mischief;
use crate::failure::{Exit, Failure};
use crate::output::{self, length};

/// Far beyond everything that is promised: reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub async fn play(demo: &mut Demo, nodes: u8, json: bool) -> Result<Exit, Failure> {
    let mut tour = Tour { demo, json };
    tour.gather(nodes).await?;
    tour.episode(Mischief::Resign).await?;
    let killed = tour.episode(Mischief::Kill).await?;
    tour.restore(&killed, "is started again").await?;
    let stopped = tour.episode(Mischief::Stop).await?;
    tour.restore(&stopped, "goes on (SIGCONT)").await?;
    tour.follows(&stopped).await?;
    let cut = tour.episode(Mischief::Cut).await?;
    tour.follows(&cut).await?;
    tour.restore(&cut, "reaches the store again").await?;
    let name = tour.demo.crew.add()?;
    tour.joined(&name).await?;
    Ok(Exit::DONE)
}

struct Tour<'a> {
    demo: &'a mut Demo,
    json: bool,
}

impl Tour<'_> {
    async fn gather(&mut self, nodes: u8) -> Result<(), Failure> {
        let ttl = humantime::format_duration(self.demo.ttl);
        if !self.json {
            output::say(format!(
                "{nodes} nodes on this machine; a session lives {ttl} without renewal. Each node's page is at its \
                 address.\n"
            ))?;
        }
        for _ in 0..nodes {
            let name = self.demo.crew.add()?;
            self.joined(&name).await?;
        }
        self.until("somebody leads", |demo| demo.scene.leader().is_some()).await?;
        let (leader, term) =
            (self.demo.scene.leader().unwrap_or_default().to_owned(), self.demo.scene.term());
        self.say("elected", &leader, &format!("leads under term {term}"), json!({"term": term}))
    }

    async fn joined(&mut self, name: &str) -> Result<(), Failure> {
        self.back(name).await?;
        let page = self.demo.scene.node(name).and_then(|node| node.info.address.clone()).unwrap_or_default();
        self.say("joined", name, &format!("has joined: {page}/"), json!({"page": page}))
    }

    /// Something is done to the leader, and waited until another leads; who it was done to.
    async fn episode(&mut self, mischief: Mischief) -> Result<String, Failure> {
        self.until("somebody leads", |demo| demo.scene.leader().is_some()).await?;
        let episode = self.demo.strike(mischief).await?;
        let episode = episode.ok_or_else(|| Failure::System(String::from("nobody leads")))?;
        self.say(mischief.name(), &episode.victim, mischief.done(), json!({}))?;
        self.until("another leads", |demo| episode.outcome(&demo.scene).is_some()).await?;
        if let Some(next) = episode.outcome(&self.demo.scene) {
            let how = if mischief == Mischief::Resign { "handed over" } else { "failed over" };
            let sentence = format!("leads under term {}: {how} in {}", next.term, length(next.took));
            let took = output::millis(next.took);
            let data = json!({"term": next.term, "after": mischief.name(), "failover_ms": took});
            self.say("elected", &next.leader, &sentence, data)?;
        }
        Ok(episode.victim)
    }

    async fn restore(&mut self, name: &str, how: &str) -> Result<(), Failure> {
        self.demo.crew.restore(name)?;
        self.say("restored", name, how, json!({}))?;
        self.back(name).await
    }

    /// Waits until a node is registered and heard of.
    async fn back(&mut self, name: &str) -> Result<(), Failure> {
        let pid = self.demo.crew.get(name).map(|actor| actor.pid()).unwrap_or_default();
        self.until("the node is registered", |demo| demo.scene.lives(name, pid)).await
    }

    /// The node itself is asked whether it thinks that it leads.
    async fn follows(&mut self, name: &str) -> Result<(), Failure> {
        let address =
            self.demo.scene.node(name).and_then(|node| node.info.address.clone()).unwrap_or_default();
        let answer = probe(&address).await?;
        let sentence = match answer {
            503 => "itself says that it does not lead (GET /leader: 503)".to_owned(),
            other => return Err(Failure::System(format!("`{name}` answers {other} although another leads"))),
        };
        self.say("asked", name, &sentence, json!({"leader_status": answer}))
    }

    async fn until(&mut self, what: &str, met: impl Fn(&Demo) -> bool) -> Result<(), Failure> {
        let end = clock::now() + PATIENCE + self.demo.ttl * 3;
        while !met(self.demo) {
            if clock::now() >= end {
                return Err(Failure::System(format!("waited in vain until {what}")));
            }
            self.demo.look().await?;
        }
        Ok(())
    }

    fn say(&self, step: &str, node: &str, sentence: &str, data: Value) -> Result<(), Failure> {
        let at = clock::now().since(self.demo.begun);
        if self.json {
            let mut told = json!({"step": step, "at_ms": output::millis(at), "node": node});
            if let (Some(told), Value::Object(data)) = (told.as_object_mut(), data) {
                told.extend(data);
            }
            return output::json(&told);
        }
        output::say(format!("{:>8.3} s  {node:<6} {sentence}", at.as_secs_f64()))
    }
}

/// What `GET /leader` answers.
async fn probe(address: &str) -> Result<u16, Failure> {
    let place = address.trim_start_matches("http://");
    let asked = async {
        let mut stream = TcpStream::connect(place).await?;
        let request = format!("GET /leader HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.map_err(Failure::system)??;
    let line = String::from_utf8_lossy(&answer);
    let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.ok_or_else(|| Failure::System(format!("{address} does not answer")))
}
