//! The demo in a terminal: what is so, and keys to change it.

use super::Demo;
use super::episode::{Episode, Mischief};
use crate::commands::crew::Plight;
use crate::commands::picture;
use crate::failure::{Exit, Failure};
use crate::output::{FAINT, GOOD, HEAD, length, styled};
use crate::screen::Screen;

const KEYS: [&str; 2] = [
    "  k kill the leader   s stop it / let it go on   r ask it to resign   c cut it off / connect it again",
    "  a add a node   b bring the killed back   q quit",
];

/// How many measurements are shown.
const MEASURED: usize = 6;

pub async fn play(demo: &mut Demo, nodes: u8) -> Result<Exit, Failure> {
    for _ in 0..nodes {
        demo.crew.add()?;
    }
    let mut live = Live { screen: Screen::enter()?, running: None, measured: Vec::new(), refusal: None };
    loop {
        live.screen.paint(&live.picture(demo))?;
        tokio::select! {
            key = live.screen.key() => match key {
                Some(key) => live.refusal = live.press(demo, key).await?,
                None => return Ok(Exit::DONE),
            },
            looked = demo.look() => {
                looked?;
            }
        }
        live.measure(demo);
    }
}

struct Live {
    screen: Screen,
    /// What was done to a leader, until another leads.
    running: Option<Episode>,
    measured: Vec<String>,
    /// Why the last key did nothing.
    refusal: Option<String>,
}

impl Live {
    /// Does what the key stands for, or says why not.
    async fn press(&mut self, demo: &mut Demo, key: char) -> Result<Option<String>, Failure> {
        match key {
            'k' => self.strike(demo, Mischief::Kill).await,
            'r' => self.strike(demo, Mischief::Resign).await,
            's' => self.toggle(demo, Plight::Stopped, Mischief::Stop).await,
            'c' => self.toggle(demo, Plight::Cut, Mischief::Cut).await,
            'b' => match demo.crew.names(Plight::Killed).as_slice() {
                [] => Ok(Some(String::from("no node is killed"))),
                names => names.iter().try_for_each(|name| demo.crew.restore(name)).map(|()| None),
            },
            'a' => demo.crew.add().map(|_| None),
            key => Ok(Some(format!("`{}` has no meaning here", key.escape_default()))),
        }
    }

    /// Whoever suffers it is released; if nobody does, the leader shall.
    async fn toggle(
        &mut self,
        demo: &mut Demo,
        plight: Plight,
        mischief: Mischief,
    ) -> Result<Option<String>, Failure> {
        match demo.crew.names(plight).as_slice() {
            [] => self.strike(demo, mischief).await,
            names => names.iter().try_for_each(|name| demo.crew.restore(name)).map(|()| None),
        }
    }

    async fn strike(&mut self, demo: &mut Demo, mischief: Mischief) -> Result<Option<String>, Failure> {
        // One at a time, or nobody knows what was measured.
        if let Some(Episode { victim, mischief, .. }) = &self.running {
            return Ok(Some(match demo.crew.names(Plight::Runs).is_empty() {
                true => String::from(
                    "no node is left that could lead: press b, s or c to bring one back, or a to add one",
                ),
                false => format!("wait until another leads: {victim} {}", mischief.done()),
            }));
        }
        self.running = demo.strike(mischief).await?;
        Ok(self.running.is_none().then(|| String::from("nobody leads yet")))
    }

    fn measure(&mut self, demo: &Demo) {
        let Some((episode, outcome)) =
            self.running.as_ref().and_then(|episode| Some((episode, episode.outcome(&demo.scene)?)))
        else {
            return;
        };
        let took = styled(GOOD, length(outcome.took));
        let (victim, done) = (&episode.victim, episode.mischief.done());
        self.measured.push(format!("  {victim} {done}: {} leads after {took}", outcome.leader));
        let surplus = self.measured.len().saturating_sub(MEASURED);
        self.measured.drain(..surplus);
        self.running = None;
    }

    fn picture(&self, demo: &Demo) -> Vec<String> {
        let (columns, rows) = Screen::size();
        let ttl = humantime::format_duration(demo.ttl);
        let mut lines = vec![
            styled(HEAD, format!("tenure demo · ttl {ttl} · token for the pages: {}", demo.crew.token)),
            String::new(),
        ];
        lines.extend(picture::leader(&demo.scene, columns));
        lines.push(String::new());
        lines.extend(picture::nodes(&demo.scene, columns, rows / 3, |name| plight(demo, name)));
        lines.push(String::new());
        lines.push(styled(HEAD, "  measured"));
        match (&self.running, self.measured.as_slice()) {
            (None, []) => lines.push(styled(FAINT, "  nothing yet: press a key below")),
            (_, measured) => lines.extend(measured.iter().cloned()),
        }
        if let Some(episode) = &self.running {
            lines.push(format!("  {} {} …", episode.victim, episode.mischief.done()));
        }
        lines.extend(self.refusal.as_ref().map(|refusal| format!("  {refusal}")));
        lines.push(String::new());
        let room = rows.saturating_sub(lines.len() + KEYS.len() + 2);
        lines.extend(picture::events(&demo.scene, room));
        lines.push(String::new());
        lines.extend(KEYS.iter().map(|keys| styled(FAINT, keys)));
        lines
    }
}

fn plight(demo: &Demo, name: &str) -> Option<&'static str> {
    let actor = demo.crew.actors.iter().find(|actor| actor.name == name)?;
    match actor.plight {
        Plight::Runs => None,
        Plight::Killed => Some("killed"),
        Plight::Stopped => Some("stopped"),
        Plight::Cut => Some("cut off"),
    }
}
