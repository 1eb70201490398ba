//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str = "\
usage: candidate --store URL --node ID --election NAME… --log FILE --register FILE
                 [--ttl-ms N] [--renew-every-ms N] [--priority N] [--takeover-delay-ms N] [--write-every-ms N]
                 [--coordinate] [--task-list NAME] [--watch-every-ms N] [--lead] [--new-handles] [--stubborn]
                 [--blind]

  --coordinate   stands for `coordinator` as well, and divides the work while it leads there
  --task-list    works on its partitions; then it need not stand for anything
  --lead         works under `Election::lead`, not by hand under `Election::elected`
  --new-handles  asks for a new `Election` for every candidacy, and keeps none
  --stubborn     its work goes on for two ttl after leadership is lost
  --blind        a planted bug: it takes itself for the leader without asking its check";

/// The election whose leader divides the work.
pub const COORDINATOR: &str = "coordinator";

/// How a candidate behaves.
#[derive(Debug)]
pub struct Args {
    pub store: String,
    pub node: String,
    pub elections: Vec<String>,
    pub log: PathBuf,
    pub register: PathBuf,
    pub ttl: Duration,
    pub renew_every: Option<Duration>,
    pub priority: i32,
    pub takeover_delay: Duration,
    pub write_every: Duration,
    pub watch_every: Duration,
    pub task_list: Option<String>,
    pub lead: bool,
    pub new_handles: bool,
    pub stubborn: bool,
    pub blind: bool,
}

impl Args {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            store: String::new(),
            node: String::new(),
            elections: Vec::new(),
            log: PathBuf::new(),
            register: PathBuf::new(),
            ttl: Duration::from_secs(2),
            renew_every: None,
            priority: 0,
            takeover_delay: Duration::ZERO,
            write_every: Duration::from_millis(10),
            watch_every: Duration::from_millis(1),
            task_list: None,
            lead: false,
            new_handles: false,
            stubborn: false,
            blind: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--store" => args.store = value()?,
                "--node" => args.node = value()?,
                "--election" => args.elections.push(value()?),
                "--log" => args.log = PathBuf::from(value()?),
                "--register" => args.register = PathBuf::from(value()?),
                "--ttl-ms" => args.ttl = Duration::from_millis(number(&word, &value()?)?),
                "--renew-every-ms" => {
                    args.renew_every = Some(Duration::from_millis(number(&word, &value()?)?))
                }
                "--priority" => args.priority = number(&word, &value()?)?,
                "--takeover-delay-ms" => {
                    args.takeover_delay = Duration::from_millis(number(&word, &value()?)?)
                }
                "--write-every-ms" => args.write_every = Duration::from_millis(number(&word, &value()?)?),
                "--watch-every-ms" => args.watch_every = Duration::from_millis(number(&word, &value()?)?),
                "--coordinate" => args.elections.push(COORDINATOR.to_owned()),
                "--task-list" => args.task_list = Some(value()?),
                "--lead" => args.lead = true,
                "--new-handles" => args.new_handles = true,
                "--stubborn" => args.stubborn = true,
                "--blind" => args.blind = true,
                _ => return Err(format!("`{word}` is not understood")),
            }
        }
        let missing = args.store.is_empty()
            || args.node.is_empty()
            || (args.elections.is_empty() && args.task_list.is_none())
            || args.log.as_os_str().is_empty()
            || args.register.as_os_str().is_empty();
        if missing { Err(String::from("something is missing")) } else { Ok(args) }
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{word} {value}` is no number"))
}
