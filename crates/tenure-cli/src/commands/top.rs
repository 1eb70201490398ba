//! `tenure top`: an election at a glance, as it changes: straight from a store, or as a node tells it.

use std::io::IsTerminal;
use std::time::Duration;

use tenure::{ElectionName, EventRecord};

use super::follow::News;
use super::picture;
use super::remote::Remote;
use super::scene::Scene;
use super::unknown::unknown;
use crate::cli::{Global, Top};
use crate::failure::{Exit, Failure};
use crate::output::{BAD, FAINT, HEAD, harmless, styled};
use crate::screen::Screen;
use crate::store::{self, ask};

/// How often the lease is seen running down.
const PAINT_EVERY: Duration = Duration::from_millis(200);

/// What is stood for where nobody says what.
const USUAL: &str = "coordinator";

pub fn top(global: &Global, asked: &Top) -> Result<Exit, Failure> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        let election = asked.election.as_ref().map_or(USUAL, ElectionName::as_str);
        let instead = match &asked.api {
            None => format!("tenure status {election}, or tenure watch {election}"),
            Some(url) => format!("curl {url}/cluster/status"),
        };
        return Err(Failure::Usage(format!("`tenure top` needs a terminal; without one: {instead}")));
    }
    crate::runtime()?.block_on(async {
        match &asked.api {
            None => of_store(global, asked).await,
            Some(url) => of_node(url, asked).await,
        }
    })
}

async fn of_store(global: &Global, asked: &Top) -> Result<Exit, Failure> {
    let usual = || ElectionName::new(USUAL).map_err(Failure::system);
    let election = asked.election.clone().map_or_else(usual, Ok)?;
    let store = store::connect(global).await?;
    if !ask(store.elections()).await?.iter().any(|(name, _)| *name == election) {
        return Err(unknown(&store, &election).await?);
    }
    let news = News::of(&store, None);
    show(Scene::look(store, election).await?, Some(news)).await
}

async fn of_node(url: &str, asked: &Top) -> Result<Exit, Failure> {
    let scene = Scene::over(Remote::new(url)?).await?;
    let own = &scene.sight.election;
    if let Some(wanted) = asked.election.as_ref().filter(|wanted| wanted.as_str() != own) {
        let own = harmless(own);
        return Err(Failure::No(format!(
            "that node stands for `{own}`, not for `{wanted}`: ask one that does"
        )));
    }
    show(scene, None).await
}

/// Without news it is looked at as often as it is painted.
async fn show(mut scene: Scene, mut news: Option<News>) -> Result<Exit, Failure> {
    let mut screen = Screen::enter()?;
    let mut trouble = None;
    let mut events: Vec<EventRecord> = Vec::new();
    loop {
        trouble = match (trouble, scene.divide(&events).await) {
            (trouble, Ok(())) => trouble,
            (_, Err(Failure::Store(problem))) => Some(problem),
            (_, Err(other)) => return Err(other),
        };
        screen.paint(&lines(&scene, trouble.as_deref()))?;
        let waited = async {
            match &mut news {
                Some(news) => news.wait(PAINT_EVERY).await,
                None => tokio::time::sleep(PAINT_EVERY).await,
            }
        };
        tokio::select! {
            key = screen.key() => if key.is_none() { return Ok(Exit::DONE) },
            () = waited => {
                trouble = match scene.again().await {
                    Ok(new) => { events = new; None }
                    Err(Failure::Store(problem)) => Some(problem),
                    Err(other) => return Err(other),
                };
            }
        }
    }
}

fn lines(scene: &Scene, trouble: Option<&str>) -> Vec<String> {
    let (columns, rows) = Screen::size();
    let live = scene.nodes.iter().filter(|node| scene.lives(node.info.id.as_str(), node.info.pid)).count();
    let nodes = if live == 1 { "node" } else { "nodes" };
    let head = format!("{} · {live} live {nodes}", harmless(&scene.sight.election));
    let mut lines = vec![styled(HEAD, head)];
    lines.push(trouble.map(|problem| styled(BAD, format!("  stale: {problem}"))).unwrap_or_default());
    lines.extend(picture::leader(scene, columns));
    lines.extend(picture::division(scene));
    lines.push(String::new());
    lines.extend(picture::nodes(scene, columns, rows / 2, |_| None));
    lines.push(String::new());
    let room = rows.saturating_sub(lines.len() + 3);
    lines.extend(picture::events(scene, room));
    lines.push(styled(FAINT, "  q quit"));
    lines
}
