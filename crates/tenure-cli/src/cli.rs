//! The words of the command line. Help, completions and the man page all come from here.

mod partitions;
#[cfg(feature = "raft")]
mod raft;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use tenure::{ElectionName, Namespace, NodeId, TaskListName};

pub use partitions::{Counted, Create, Divided, Drain, Move, Partitions, Pause, Resize, TaskListSettings};
#[cfg(feature = "raft")]
pub use raft::Raft;

use crate::health::HealthSettings;
use crate::origins::Origins;
use crate::upstream::UpstreamSettings;

const AFTER: &str = "\
Example, on every machine that shares the store:

  tenure run --store postgres://tenure@db.example/app --election scheduler -- ./scheduler

Without --store, only processes of one user on one machine take part.

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
#[command(next_help_heading = "Store and output")]
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
    /// With a raft:// store: nobody else is on the network, so nothing need be encrypted outside loopback
    #[arg(long, global = true, env = "TENURE_RAFT_PLAINTEXT", value_name = "BOOL", default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub raft_plaintext: bool,
    /// Read settings from this file
    #[arg(long, global = true, env = "TENURE_CONFIG", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Answer in JSON: one object, or one per line for streams
    #[arg(long, global = true)]
    pub json: bool,
    /// Tell more on stderr; twice: even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Where the values came from.
    #[arg(skip)]
    pub origins: Origins,
}

/// What a node is told: of `run`, and of everything else that stands.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Node")]
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
    /// Give up with code 69 if the store cannot be reached, or the node not be registered, in this time after the
    /// start [default: wait without end]
    #[arg(long, env = "TENURE_START_TIMEOUT", value_name = "TIME", value_parser = duration)]
    pub start_timeout: Option<Duration>,
    /// Wait so long after a leader's loss, against flapping
    #[arg(long, env = "TENURE_TAKEOVER_DELAY", value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub takeover_delay: Duration,
    /// Whether this node may lead
    #[arg(long, env = "TENURE_ELIGIBLE", value_name = "BOOL", default_value = "true", action = ArgAction::Set)]
    pub eligible: bool,
    /// Higher stands first; whoever leads is not pushed out, unless with --failback
    #[arg(
        long,
        env = "TENURE_PRIORITY",
        value_name = "NUMBER",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub priority: i32,
    /// Ask a leader of lower priority to make way for this node, once it has stood behind it for a ttl
    #[arg(long, env = "TENURE_FAILBACK", value_name = "BOOL", default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub failback: bool,
    /// What else there is to say of this node, such as zone=eu-1; may be given several times
    #[arg(long, env = "TENURE_LABEL", value_name = "NAME=VALUE", value_delimiter = ',')]
    pub label: Vec<String>,
    #[command(flatten)]
    pub health: HealthSettings,
    #[command(flatten)]
    pub seat: SeatSettings,
}

/// A member of the group of a raft:// store, as this process is one.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Raft member")]
pub struct SeatSettings {
    /// With a raft:// store: take part in the group, and keep its log in this directory
    #[arg(long, env = "TENURE_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// With --data: where the other members reach this one, as in the URL
    #[arg(long, env = "TENURE_RAFT_LISTEN", value_name = "ADDR")]
    pub raft_listen: Option<String>,
}

/// What whoever serves the HTTP API is told: `node`, and `run` with `--listen`.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "HTTP API")]
pub struct ServeSettings {
    /// Serve the HTTP API at this address; port 0 means any free one [default: 127.0.0.1:8001 for `node`,
    /// none for `run`]
    #[arg(long, env = "TENURE_LISTEN", value_name = "ADDR", value_parser = listen)]
    pub listen: Option<SocketAddr>,
    /// How many nodes must live: below it the cluster is degraded, and says so
    #[arg(long, env = "TENURE_MIN_NODES", value_name = "NUMBER", default_value = "1")]
    pub min_nodes: usize,
    /// Read the token from this file that whoever changes something must show; without it nothing can be
    /// changed over HTTP
    #[arg(long, env = "TENURE_TOKEN_FILE", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Serve with TLS, with this certificate (PEM)
    #[arg(long, env = "TENURE_TLS_CERT", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, env = "TENURE_TLS_KEY", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let only clients in whose certificate was signed by one of these (PEM)
    #[arg(long, env = "TENURE_TLS_CA", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Serve without TLS beyond this machine: whoever is on the way reads the token
    #[arg(long, env = "TENURE_PLAINTEXT", value_name = "BOOL", default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub plaintext: bool,
    /// Answer also to this name, besides addresses, localhost, the host name and the name in --address
    #[arg(long, env = "TENURE_ALLOW_HOST", value_name = "NAME", value_delimiter = ',')]
    pub allow_host: Vec<String>,
}

/// What `run` is told beside the program itself.
#[derive(Args, Debug, Clone)]
pub struct RunSettings {
    /// How long the program may take to stop after SIGTERM when the lease is still held
    #[arg(long, env = "TENURE_GRACE", value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub grace: Duration,
    /// Whether to stand again after the program has ended; with --partitions, whether to start it again [default:
    /// never; with --partitions on-failure]
    #[arg(long, env = "TENURE_RESTART", value_name = "WHEN")]
    pub restart: Option<Restart>,
    /// Run it to success once, on one of the copies: when the program has ended with code 0, the election is closed,
    /// and every copy with --once, also one that is started later, ends with 0 without running it
    #[arg(long, env = "TENURE_ONCE", value_name = "BOOL", default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub once: bool,
    /// End with code 75 when leadership, or with --partitions the session, is lost, instead of waiting again
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

/// When a program that has ended is run again.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Not at all: exit with its code; with --partitions, nothing runs for the partition any more
    Never,
    /// If it failed
    OnFailure,
    /// Whatever it said
    Always,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Run(Run),
    Node(NodeCommand),
    Demo(Demo),
    Leader(Leader),
    Status(Status),
    Elections(Elections),
    Nodes(Nodes),
    Events(Events),
    Watch(Watch),
    Top(Top),
    Resign(Resign),
    Transfer(Transfer),
    Delete(Delete),
    Check(Check),
    Bench(Bench),
    Explain(Explain),
    #[command(subcommand)]
    Partitions(Partitions),
    #[cfg(feature = "raft")]
    #[command(subcommand)]
    Raft(Raft),
    Witness(Witness),
    #[command(subcommand)]
    Config(Config),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

/// Run a program while elected, or one for each partition that this node owns
///
/// It waits its turn, starts the program, and has it gone before anybody else leads.
///
/// The program gets TENURE_ELECTION, TENURE_NODE, TENURE_TERM and TENURE_NAMESPACE in its environment,
/// and stdin, stdout and stderr are its own. When leadership is lost, its whole process tree gets SIGTERM,
/// then SIGKILL, and is gone before the lease can be granted to another: also when this command itself
/// is stopped or killed. When the program ends, the lease is free at once, and the next copy starts its own: so this
/// is for programs that go on, unless with --once.
///
/// With --partitions, the program runs once for each partition of a task list that this node is given; {partition}
/// in its words stands for the number. It gets TENURE_PARTITION and TENURE_TASK_LIST instead of TENURE_ELECTION, and
/// the partition's own TENURE_TERM. A partition that is revoked is given to another node when nothing of its program
/// is left. Who divides the work is a `tenure node`, and what there is to divide says `tenure partitions create`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tenure run --store postgres://tenure@db.example/app --election scheduler -- ./scheduler
  tenure run --partitions billing/invoices -- ./invoices --part {partition}
  tenure run --election scheduler --restart always --ttl 5s -- python3 scheduler.py
  tenure run --election scheduler --health-cmd 'mountpoint -q /data' -- ./scheduler
  tenure run --election migration-42 --once -- ./migrate

Exits with the program's own code (128 + n for a signal); 127 if it is not found, 126 if it cannot be
executed; 75 if leadership was lost and --exit-on-loss was given. With --partitions, a signal n ends it with
128 + n.")]
pub struct Run {
    /// The election to stand for; with --partitions the one whose leader divides the work, `coordinator` if it is not
    /// given
    #[arg(long, env = "TENURE_ELECTION", value_name = "NAME", required_unless_present = "partitions")]
    election: Option<ElectionName>,
    /// Run the program for each partition of this task list that this node owns, instead of standing
    #[arg(long, env = "TENURE_PARTITIONS", value_name = "DOMAIN/TASKLIST", conflicts_with = "once",
          value_parser = task_list)]
    pub partitions: Option<TaskListName>,
    #[command(flatten)]
    pub run: RunSettings,
    #[command(flatten)]
    pub node: NodeSettings,
    #[command(flatten)]
    pub serve: ServeSettings,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD", help_heading = None::<&'static str>)]
    pub program: Vec<OsString>,
}

impl Run {
    /// The election to stand for, or whose leader divides the work.
    pub fn election(&self) -> ElectionName {
        let coordinator = || ElectionName::new("coordinator").expect("it is a name");
        self.election.clone().unwrap_or_else(coordinator)
    }
}

/// Be a node of a cluster: registered, standing for an election, watching the others, and telling it
/// over HTTP
///
/// The node that leads retires others that have fallen silent, and says in the history when too few are left.
/// SIGTERM: it hands over, deregisters, and exits with 0.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tenure node --store postgres://tenure@db/app --min-nodes 3
  tenure node --task-list billing/invoices=64
  tenure node --work billing/invoices --token-file token
  tenure node --upstream http://127.0.0.1:9000 --leader-only forward
  tenure node --health-url http://127.0.0.1:9000/health
  tenure node --listen 0.0.0.0:8001 --tls-cert node.pem --tls-key node.key --token-file token \\
              --address https://node-1.example:8001

  curl http://127.0.0.1:8001/cluster/status")]
pub struct NodeCommand {
    /// The election that makes the coordinator
    #[arg(long, env = "TENURE_ELECTION", value_name = "NAME", default_value = "coordinator")]
    pub election: ElectionName,
    #[command(flatten)]
    pub tasks: TaskListSettings,
    #[command(flatten)]
    pub upstream: UpstreamSettings,
    #[command(flatten)]
    pub node: NodeSettings,
    #[command(flatten)]
    pub serve: ServeSettings,
}

/// See it work: a cluster on this machine, with keys to kill, stop and cut off its leader
///
/// Starts real `tenure node` processes on a store of their own, shows who leads, and measures how long it
/// takes until another does. Without a terminal it does everything once, and prints a transcript. Nothing is
/// left behind.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tenure demo
  tenure demo --nodes 5 --ttl 1s
  tenure demo </dev/null         everything once, as a transcript")]
pub struct Demo {
    /// How many nodes
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = clap::value_parser!(u8).range(2..=50))]
    pub nodes: u8,
    /// How long their sessions live without renewal: what a crash costs
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub ttl: Duration,
}

/// Print who leads an election; exit 1 if nobody does, or there is no such election
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

/// Show an election in the terminal as it changes: leader, lease, nodes, partitions, events
///
/// Straight from the store; or, with --api, as a node tells it, and when that dies, as another does.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure top nightly
  tenure top --api http://127.0.0.1:8001")]
pub struct Top {
    /// The election [default: coordinator; with --api: that of the node]
    pub election: Option<ElectionName>,
    /// Ask the node whose API is there, and no store
    #[arg(long, value_name = "URL")]
    pub api: Option<String>,
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
///
/// A store on which Tenure was never used is only looked at, unless with --write: then it is set up, and measured.
/// What the measurement writes is removed, except for one event in the namespace `tenure-check`.
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure check --store sqlite:/var/lib/tenure.db --write")]
pub struct Check {
    /// Set the store up if Tenure was never used on it: create the file, the tables or the znodes
    #[arg(long)]
    pub write: bool,
}

/// Measure hand-overs, failovers and what standing costs, on your store
///
/// Works in a random namespace, whatever `--namespace` says. An ended election and one event of it stay in the store.
/// A failover takes most of a ttl, so the default takes about a minute.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tenure bench --store postgres://tenure@db/app
  tenure bench --rounds 200 --crashes 0 --json")]
pub struct Bench {
    /// Set the store up if Tenure was never used on it: create the file, the tables or the znodes
    #[arg(long)]
    pub write: bool,
    /// How many planned hand-overs
    #[arg(long, value_name = "NUMBER", default_value = "50")]
    pub rounds: u32,
    /// How many times a leader is killed
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    pub crashes: u32,
    /// How long sessions live without renewal: what a crash costs
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub ttl: Duration,
}

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

/// Vote in the group of a raft:// store, and do nothing else: the third of two machines
#[derive(Args, Debug)]
#[command(after_help = "Example:
  tenure witness --store raft://h1:7101,h2:7101,h3:7101 --data /var/lib/tenure --raft-listen h3:7101")]
pub struct Witness {
    #[command(flatten)]
    pub seat: SeatSettings,
}

/// Settings, and configurations of load balancers
#[derive(Subcommand, Debug)]
#[command(after_help = "Example: tenure config show")]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub enum Config {
    Show(Show),
    /// Print a configuration of nginx for the live nodes
    #[command(after_help = "Example: tenure config nginx > nginx.conf && nginx -c $PWD/nginx.conf")]
    Nginx(Balancer),
    /// Print a configuration of HAProxy for the live nodes
    #[command(after_help = "Example: tenure config haproxy > haproxy.cfg && haproxy -f haproxy.cfg")]
    Haproxy(Balancer),
    /// Print a configuration of Envoy for the live nodes
    #[command(after_help = "Example: tenure config envoy > envoy.yaml && envoy -c envoy.yaml")]
    Envoy(Balancer),
}

/// What a load balancer is told beside the nodes, which are those in the store.
#[derive(Args, Debug)]
pub struct Balancer {
    /// Where clients come
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = listen)]
    pub listen: SocketAddr,
}

/// Print every setting that is in force, and where it came from
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure config show --config tenure.toml")]
pub struct Show {
    #[command(flatten)]
    pub run: RunSettings,
    #[command(flatten)]
    pub node: NodeSettings,
    #[command(flatten)]
    pub serve: ServeSettings,
    #[command(flatten)]
    pub upstream: UpstreamSettings,
    #[command(flatten)]
    pub tasks: TaskListSettings,
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

/// The name of a task list; without a domain, it is one of `default`.
pub fn task_list(text: &str) -> Result<TaskListName, String> {
    let whole =
        if text.is_empty() || text.contains('/') { text.to_owned() } else { format!("default/{text}") };
    TaskListName::new(whole).map_err(|error| error.to_string())
}

/// An address to listen at: an IP address or `localhost`, and a port.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let numbered = match text.strip_prefix("localhost") {
        Some("") => String::from("127.0.0.1:8001"),
        Some(port) => format!("127.0.0.1{port}"),
        None => text.to_owned(),
    };
    numbered
        .parse()
        .map_err(|_| format!("`{text}` is no address; write it like 127.0.0.1:8001 or localhost:8001"))
}

pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 250ms, 10s or 1m30s"))
}
