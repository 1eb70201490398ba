//! A store in a directory of its own, the built command, and nodes that stand.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tenure::{ElectionName, Leadership, Node, NodeBuilder, NodeId, NodeInfo, SessionId, Store};
use tenure_core::{Opening, Standing};
use tenure_store::{Claim, Open};
pub use tenure_testkit::patience::{HANG, until};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// The command, with nothing of ours in its environment, and nothing of the user's.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (name, _) in std::env::vars_os() {
        let ours = name.to_string_lossy().starts_with("TENURE_");
        if ours || name == "XDG_STATE_HOME" || name == "CLICOLOR_FORCE" {
            command.env_remove(name);
        }
    }
    command
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// It was done.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It was not, with this code and these words on stderr.
    #[track_caller]
    pub fn refused(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(words), "`{words}` is not in {self:?}");
        self
    }

    /// The only object that was printed.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The objects that were printed, one per line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The names of the fields of an object, sorted.
pub fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Says what the command says to these arguments.
pub fn tenure(arguments: &[&str]) -> Said {
    Said::of(&command().args(arguments).output().unwrap())
}

/// A store, and a runtime for whoever stands.
pub struct Stage {
    pub directory: TempDir,
    pub url: String,
    pub store: Arc<dyn Store>,
    runtime: Runtime,
}

impl Stage {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("tenure.db").display());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = runtime.block_on(tenure::connect(&url)).unwrap();
        Self { directory, url, store, runtime }
    }

    /// Says what the command says about this store.
    pub fn tenure(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command.args(arguments).args(["--store", &self.url]);
        command
    }

    /// Starts a command that goes on.
    pub fn spawn(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// A node that stands for `nightly`, and leads until it is asked to make way.
    pub fn stands(&self, id: &str) -> Player {
        self.stands_as(Node::builder(id).ttl(Duration::from_secs(60)))
    }

    pub fn stands_as(&self, builder: NodeBuilder) -> Player {
        let node = self.runtime.block_on(builder.start(Arc::clone(&self.store))).unwrap();
        let (works, may_stop) = watch::channel(false);
        let election = node.election("nightly").unwrap();
        self.runtime.spawn(async move {
            let work = |leadership: Leadership| {
                let mut works = may_stop.clone();
                async move {
                    leadership.lost().await;
                    // A test that is over has nobody who would say so.
                    let _ = works.wait_for(|busy| !busy).await;
                    Ok::<_, std::convert::Infallible>(())
                }
            };
            election.lead(work).await
        });
        Player { node, works, handle: self.runtime.handle().clone() }
    }

    /// A node that leads, as far as the store knows.
    pub fn leads(&self, id: &str) -> Player {
        let player = self.stands(id);
        self.until_leads(id);
        player
    }

    /// Waits until this node leads `nightly`.
    pub fn until_leads(&self, id: &str) {
        until("nobody else should lead", || self.leader().is_some_and(|(leader, _)| leader == id));
    }

    /// Waits until these stand behind the leader, in this order.
    pub fn until_standing(&self, expected: &[&str]) {
        let standing = || self.runtime.block_on(self.store.candidates(nightly())).unwrap().value;
        until("candidates should stand", || {
            standing().iter().map(|candidate| candidate.node.as_str()).eq(expected.iter().copied())
        });
    }

    /// Who holds `nightly`, under which term.
    pub fn leader(&self) -> Option<(String, u64)> {
        let record = self.runtime.block_on(self.store.read(nightly())).unwrap().value;
        record.holder.map(|holder| (holder.node.to_string(), holder.term.number()))
    }

    /// A leader that renews only when it is told to: so it dies as it likes.
    pub fn ghost(&self, id: &str, ttl: Duration) -> Ghost<'_> {
        let session = SessionId::from_u128(0xDEAD);
        let node = NodeInfo::new(NodeId::new(id).unwrap(), "gone");
        let open = Open { session, sequence: 1, ttl, node, supersedes: None, over: None };
        let opened = self.runtime.block_on(self.store.open(open)).unwrap().value;
        assert!(matches!(opened, Opening::Opened { .. }));
        let claim = Claim::plain(session, nightly(), 1);
        let standing = self.runtime.block_on(self.store.claim(claim)).unwrap().value;
        assert!(matches!(standing, Standing::Leading { .. }));
        Ghost { stage: self, session, renewals: Cell::new(1) }
    }
}

fn nightly() -> ElectionName {
    ElectionName::new("nightly").unwrap()
}

/// A leader without a program behind it.
pub struct Ghost<'a> {
    stage: &'a Stage,
    session: SessionId,
    renewals: Cell<u64>,
}

impl Ghost<'_> {
    pub fn renews(&self) {
        self.renewals.set(self.renewals.get() + 1);
        let renewal = self.stage.store.renew(self.session, self.renewals.get(), 1);
        self.stage.runtime.block_on(renewal).unwrap();
    }
}

/// A node on stage.
pub struct Player {
    node: Node,
    works: watch::Sender<bool>,
    handle: tokio::runtime::Handle,
}

impl Player {
    /// From now on its work does not stop when it is told to.
    pub fn is_busy(&self) {
        self.works.send_replace(true);
    }

    /// Its work may stop.
    pub fn is_done(&self) {
        self.works.send_replace(false);
    }

    /// It leaves, and gives up whatever it holds.
    pub fn leaves(self) {
        self.handle.block_on(self.node.close());
    }
}

/// A command that goes on, until it ends or is dropped.
pub struct Running {
    child: Reaped,
    out: Receiver<String>,
    err: Receiver<String>,
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // The stream is closed when nobody reads it any more.
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child: Reaped(child), out, err }
    }

    /// The next line on stdout.
    #[track_caller]
    pub fn line(&self) -> String {
        self.out.recv_timeout(HANG).expect("another line on stdout")
    }

    /// A line on stdout, if there is one already.
    pub fn try_line(&self) -> Option<String> {
        self.out.try_recv().ok()
    }

    /// The next line on stderr.
    #[track_caller]
    pub fn complaint(&self) -> String {
        self.err.recv_timeout(HANG).expect("another line on stderr")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The code that it exits with.
    pub fn code(&mut self) -> Option<i32> {
        self.child.code()
    }
}

/// A process that does not outlive its test.
pub struct Reaped(pub Child);

impl Reaped {
    /// The code that it exits with.
    pub fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the command should end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
