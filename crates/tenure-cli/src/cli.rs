//! The words of the command line. Help, completions and the man page all come from here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use tenure::{ElectionName, Namespace, NodeId};

const AFTER: &str = "\
Example, on every machine that shares the store:

  tenure run --election nightly -- ./job

Settings: flag > environment (TENURE_ and the flag's name) > file (--config) > default.
Exit codes: 0 done, 1 the answer is no, 2 usage, 69 store not reachable.";

/// Leader election for any program: of several copies exactly one is in charge, and when it fails,
/// another takes over.
#[derive(Parser, Debug)]
#[command(name = "tenure", version, after_help = AFTER, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(Args, Debug, Clone)]
pub struct Global {
    /// The store that all copies share, such as sqlite:/var/lib/tenure.db [default: a SQLite file in
    /// the user's state directory]
    #[arg(long, global = true, env = "TENURE_STORE", hide_env_values = true, value_name = "URL")]
    pub store: Option<String>,
    /// Read the store's password from this file; without it from TENURE_STORE_PASSWORD, if that is set
    #[arg(long, global = true, env = "TENURE_STORE_PASSWORD_FILE", hide_env_values = true, value_name = "FILE",
          value_hint = ValueHint::FilePath)]
    pub store_password_file: Option<PathBuf>,
    /// Separates users of one store
    #[arg(long, global = true, env = "TENURE_NAMESPACE", value_name = "NAME", default_value = "default")]
    pub namespace: Namespace,
    /// Read settings from this file
    #[arg(long, global = true, env = "TENURE_CONFIG", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Answer in JSON: one object, or one per line for streams
    #[arg(long, global = true)]
    pub json: bool,
    /// Tell more on stderr; twice: even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// What a node is told: of `run`, and of everything else that stands.
#[derive(Args, Debug, Clone)]
pub struct NodeSettings {
    /// This node's id, unique among the live ones [default: host name and a short random word]
    #[arg(long, env = "TENURE_NODE", value_name = "ID")]
    pub node: Option<NodeId>,
    /// URL where this node's API is reached
    #[arg(long, env = "TENURE_ADDRESS", value_name = "URL")]
    pub address: Option<String>,
    /// How long a session lives without renewal: what the loss of a machine costs
    #[arg(long, env = "TENURE_TTL", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub ttl: Duration,
    /// How often the session is renewed [default: a third of the ttl]
    #[arg(long, env = "TENURE_RENEW_EVERY", value_name = "TIME", value_parser = duration)]
    pub renew_every: Option<Duration>,
    /// How often to look where the store cannot push [default: a sixth of the ttl]
    #[arg(long, env = "TENURE_POLL_EVERY", value_name = "TIME", value_parser = duration)]
    pub poll_every: Option<Duration>,
    /// Wait so long after a leader's loss, against flapping
    #[arg(long, env = "TENURE_TAKEOVER_DELAY", value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub takeover_delay: Duration,
    /// Whether this node may lead
    #[arg(long, env = "TENURE_ELIGIBLE", value_name = "BOOL", default_value = "true", action = ArgAction::Set)]
    pub eligible: bool,
    /// Higher stands first; whoever leads is not pushed out
    #[arg(
        long,
        env = "TENURE_PRIORITY",
        value_name = "NUMBER",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub priority: i32,
}

/// What `run` is told beside the program itself.
#[derive(Args, Debug, Clone)]
pub struct RunSettings {
    /// How long the program may take to stop after SIGTERM when the lease is still held
    #[arg(long, env = "TENURE_GRACE", value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub grace: Duration,
    /// Whether to stand again after the program has ended
    #[arg(long, env = "TENURE_RESTART", value_name = "WHEN", default_value = "never")]
    pub restart: Restart,
    /// End with code 75 when leadership is lost, instead of standing again
    #[arg(long, env = "TENURE_EXIT_ON_LOSS", value_name = "BOOL", default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub exit_on_loss: bool,
    /// Whether to give the program a control group of its own, where that is possible
    #[arg(long, env = "TENURE_CGROUP", value_name = "WHEN", default_value = "auto")]
    pub cgroup: Grouping,
}

/// Whether the program gets a control group of its own.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Where version 2 is mounted and ours to change
    Auto,
    /// Not at all: its tree is found by walking through it
    Never,
}

/// When `run` stands again after its program has ended.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Not at all: exit with its code
    Never,
    /// If it failed
    OnFailure,
    /// Whatever it said
    Always,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Run(Run),
    Leader(Leader),
    Status(Status),
    Elections(Elections),
    Nodes(Nodes),
    Events(Events),
    Watch(Watch),
    Resign(Resign),
    Transfer(Transfer),
    Delete(Delete),
    Check(Check),
    Explain(Explain),
    #[command(subcommand)]
    Config(Config),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

/// Run a program while elected: it waits its turn, starts, and is gone before anybody else leads
///
/// The program gets TENURE_ELECTION, TENURE_NODE, TENURE_TERM and TENURE_NAMESPACE in its environment,
/// and stdin, stdout and stderr are its own. When leadership is lost, its whole process tree gets SIGTERM,
/// then SIGKILL, and is gone before the lease can be granted to another: also when this command itself
/// is stopped or killed. When the program ends, the lease is free at once.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tenure run --election nightly -- ./job --full
  tenure run --election scheduler --restart always --ttl 5s -- python3 scheduler.py

Exits with the program's own code (128 + n for a signal); 127 if it is not found, 126 if it cannot be
executed; 75 if leadership was lost and --exit-on-loss was given.")]
pub struct Run {
    /// The election to stand for
    #[arg(long, env = "TENURE_ELECTION", value_name = "NAME")]
    pub election: ElectionName,
    #[command(flatten)]
    pub run: RunSettings,
    #[command(flatten)]
    pub node: NodeSettings,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub program: Vec<OsString>,
}

/// Print who leads an election; exit 1 if nobody does
#[derive(Args, Debug)]
#[command(after_help = "Example: test \"$(tenure leader nightly)\" = alpha && echo alpha leads")]
pub struct Leader {
    /// The election
    pub election: ElectionName,
}

/// Show leader, term, age, who comes next, and how soon if the leader died now
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure status nightly")]
pub struct Status {
    /// Only this election
    pub election: Option<ElectionName>,
}

/// List all elections
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure elections --json | jq .election")]
pub struct Elections {}

/// List all nodes that ever registered
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure nodes")]
pub struct Nodes {}

/// Print the history: who was elected, lost, resigned, and when
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure events --election nightly --since 2h
  tenure events --follow --json")]
pub struct Events {
    /// Only of this election
    #[arg(long, value_name = "NAME")]
    pub election: Option<ElectionName>,
    /// Go on as things happen
    #[arg(short, long)]
    pub follow: bool,
    /// Only from then on: an age such as 90m, a time such as 2026-11-15T20:00:00Z, or the id of an event, for
    /// what came after it
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only the newest so many
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub limit: Option<u32>,
}

/// Print every change of leader as it happens
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure watch nightly | while read line; do notify \"$line\"; done")]
pub struct Watch {
    /// The election
    pub election: ElectionName,
}

/// Ask the leader to step down, and wait until it has
///
/// Its work is stopped first; the first in the order of succession leads next.
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure resign nightly")]
pub struct Resign {
    /// The election
    pub election: ElectionName,
    /// Wait no longer than this
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

/// Hand leadership over to a named candidate, and wait until it leads
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure transfer nightly --to beta")]
pub struct Transfer {
    /// The election
    pub election: ElectionName,
    /// Who is to lead; it must stand
    #[arg(long, value_name = "NODE")]
    pub to: NodeId,
    /// Wait no longer than this
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

/// End an election: all its candidates are told
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure delete nightly --force")]
pub struct Delete {
    /// The election
    pub election: ElectionName,
    /// Also while somebody leads: the leader is told, and stops by itself
    #[arg(long)]
    pub force: bool,
}

/// Examine the store: reachable, writable, durable, how fast, and what ttl it supports
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure check --store sqlite:/var/lib/tenure.db")]
pub struct Check {}

/// Tell the story of a term: who, when, why it ended, and how long nobody led
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure explain nightly --term 7")]
pub struct Explain {
    /// The election
    pub election: ElectionName,
    /// The term [default: the latest]
    #[arg(long, value_name = "NUMBER")]
    pub term: Option<u64>,
}

/// Settings
#[derive(Subcommand, Debug)]
#[command(after_help = "Example: tenure config show")]
pub enum Config {
    Show(Show),
}

/// Print every setting that is in force, and where it came from
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure config show --config tenure.toml")]
pub struct Show {
    #[command(flatten)]
    pub run: RunSettings,
    #[command(flatten)]
    pub node: NodeSettings,
}

/// Print shell completions
#[derive(Args, Debug)]
#[command(
    after_help = "Example: tenure completions bash > ~/.local/share/bash-completion/completions/tenure"
)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Print the man page, or write all pages into a directory
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure man | man -l -")]
pub struct Man {
    /// Write tenure.1 and a page per command here
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Print the version, and the stores that this build knows
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure version --json | jq -r .version")]
pub struct Version {}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 250ms, 10s or 1m30s"))
}
