//! A private ZooKeeper: one server, or an ensemble of them.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tenure_core::Instant;

use super::process::{Running, free_port, plain};
use super::template;
use crate::authority::Identity;
use crate::monotonic;

const JARS: &str = "/usr/share/java";
/// Fine enough for tests that wait for a session to expire.
const TICK: Duration = Duration::from_millis(200);

/// ZooKeeper servers of our own. Servers of an ensemble are numbered from 0.
pub struct ZooKeeper {
    /// Gone before their directory.
    servers: Vec<Server>,
    directory: TempDir,
    settings: Vec<String>,
    /// What lies beside every server's configuration, by name.
    files: Vec<(&'static str, String)>,
    /// Where connections are encrypted.
    secure: Option<u16>,
    /// What the JVM does with its archive of classes.
    archive: String,
}

struct Server {
    port: u16,
    quorum: u16,
    election: u16,
    child: Option<Running>,
}

impl ZooKeeper {
    /// Starts one server with nothing on it. Nothing is synced to disk: for tests that do not kill it.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(1, &["forceSync=no"])
    }

    /// Starts an ensemble of so many servers that keep what they said over a kill.
    ///
    /// # Panics
    /// As for [`ZooKeeper::start`].
    #[must_use]
    pub fn ensemble(servers: usize) -> Self {
        Self::start_with(servers, &[])
    }

    /// The same with these lines in every server's configuration.
    ///
    /// # Panics
    /// As for [`ZooKeeper::start`].
    #[must_use]
    pub fn start_with(servers: usize, settings: &[&str]) -> Self {
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self::made(servers, settings, Vec::new())
    }

    /// Starts one server that also encrypts connections, on a port of their own. With the root of their
    /// certificates, only for clients that have one.
    ///
    /// # Panics
    /// As for [`ZooKeeper::start`].
    #[must_use]
    pub fn start_encrypted(identity: &Identity, clients: Option<&Path>) -> Self {
        let port = free_port();
        let mut settings = vec![
            String::from("forceSync=no"),
            format!("secureClientPort={port}"),
            String::from("secureClientPortAddress=127.0.0.1"),
            String::from("serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"),
            String::from("ssl.keyStore.location=server.pem"),
            format!("ssl.clientAuth={}", if clients.is_some() { "need" } else { "none" }),
        ];
        let mut files = vec![("server.pem", format!("{}{}", identity.key_pem(), identity.certificate_pem()))];
        if let Some(root) = clients {
            settings.push(String::from("ssl.trustStore.location=clients.pem"));
            files.push(("clients.pem", std::fs::read_to_string(root).expect("the root can be read")));
        }
        let mut zookeeper = Self::made(1, settings, files);
        zookeeper.secure = Some(port);
        zookeeper
    }

    /// Starts one server with a user of SASL (DIGEST-MD5).
    ///
    /// # Panics
    /// As for [`ZooKeeper::start`].
    #[must_use]
    pub fn start_with_sasl_user(user: &str, password: &str) -> Self {
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        let users = format!("Server {{ {module} required user_{user}=\"{password}\"; }};\n");
        let settings = [
            "forceSync=no",
            "-Djava.security.auth.login.config=jaas.conf",
            "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        ];
        Self::made(1, settings.map(str::to_owned).to_vec(), vec![("jaas.conf", users)])
    }

    fn made(servers: usize, settings: Vec<String>, files: Vec<(&'static str, String)>) -> Self {
        let archive = format!("-XX:SharedArchiveFile={}", classes().display());
        Self::launched(servers, settings, files, archive)
    }

    fn launched(
        servers: usize,
        settings: Vec<String>,
        files: Vec<(&'static str, String)>,
        archive: String,
    ) -> Self {
        let directory = TempDir::with_prefix("tenure-zk-").expect("there is a place for temporary files");
        let one = |_| Server { port: free_port(), quorum: free_port(), election: free_port(), child: None };
        let servers = (0..servers).map(one).collect();
        let mut zookeeper = Self { directory, servers, settings, files, secure: None, archive };
        for number in 0..zookeeper.servers.len() {
            zookeeper.spawn(number);
        }
        for number in 0..zookeeper.servers.len() {
            zookeeper.await_ready(number);
        }
        zookeeper
    }

    /// The shortest step in which the servers count session time-outs.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        TICK
    }

    /// Starts a server on its data, on the same port as before, and waits until it serves.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&mut self, number: usize) {
        self.spawn(number);
        self.await_ready(number);
    }

    /// Starts a server, which may not serve before others are there too.
    ///
    /// # Panics
    /// If it does not start.
    pub fn spawn(&mut self, number: usize) {
        let home = self.directory.path().join(number.to_string());
        std::fs::create_dir_all(home.join("data")).expect("the server has a place");
        std::fs::write(home.join("zoo.cfg"), self.configuration(number)).expect("the server has a place");
        std::fs::write(home.join("data/myid"), (number + 1).to_string()).expect("the server has a place");
        for (name, text) in &self.files {
            std::fs::write(home.join(name), text).expect("the server has a place");
        }
        let mut command = plain(Path::new("java"));
        // Few threads and no optimiser: a server of a test lives for seconds.
        command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", &self.archive, "-cp"]);
        // The first names what it needs itself, but for what that needs to encrypt.
        let jars = [
            "zookeeper",
            "slf4j-simple",
            "netty-codec",
            "netty-resolver",
            "netty-transport-native-unix-common",
        ];
        command.arg(jars.map(|jar| format!("{JARS}/{jar}.jar")).join(":"));
        for property in self.settings.iter().filter_map(|line| line.strip_prefix("-D")) {
            command.arg(format!("-D{property}"));
        }
        command.args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]).current_dir(&home);
        self.servers[number].child = Some(Running::start(&mut command, &home.join("log")));
    }

    fn configuration(&self, number: usize) -> String {
        let server = &self.servers[number];
        let mut text = format!(
            "tickTime={}\ninitLimit=20\nsyncLimit=5\ndataDir=data\nclientPort={}\n\
             clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n\
             maxClientCnxns=0\nmaxSessionTimeout=3600000\n",
            TICK.as_millis(),
            server.port
        );
        for line in self.settings.iter().filter(|line| !line.starts_with("-D")) {
            let _ = writeln!(text, "{line}"); // to a string: cannot fail
        }
        if self.servers.len() > 1 {
            for (index, other) in self.servers.iter().enumerate() {
                let (id, quorum, election) = (index + 1, other.quorum, other.election);
                let _ = writeln!(text, "server.{id}=127.0.0.1:{quorum}:{election}");
            }
        }
        text
    }

    fn await_ready(&mut self, number: usize) {
        let log = self.directory.path().join(number.to_string()).join("log");
        let port = self.servers[number].port;
        let child = self.servers[number].child.as_mut().expect("it was started");
        child.until_ready(&log, || ask(port, "mntr").contains("zk_server_state"));
    }

    /// The port of a server.
    #[must_use]
    pub fn port(&self, number: usize) -> u16 {
        self.servers[number].port
    }

    /// Where all servers listen: the first part of a store URL.
    #[must_use]
    pub fn hosts(&self) -> String {
        let hosts: Vec<String> = self.servers.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        hosts.join(",")
    }

    /// A store URL with all servers.
    #[must_use]
    pub fn url(&self) -> String {
        format!("zk://{}", self.hosts())
    }

    /// The same by way of another port: that of a [`Proxy`](crate::proxy::Proxy).
    #[must_use]
    pub fn url_by(&self, port: u16) -> String {
        format!("zk://127.0.0.1:{port}")
    }

    /// The same as this user, `user:password`.
    #[must_use]
    pub fn url_as(&self, user: &str) -> String {
        format!("zk://{user}@{}", self.hosts())
    }

    /// A store URL of the port where connections are encrypted, with these files.
    ///
    /// # Panics
    /// If it was not started to encrypt.
    #[must_use]
    pub fn url_encrypted(&self, files: &[(&str, &Path)]) -> String {
        let port = self.secure.expect("it encrypts");
        let files: Vec<String> =
            files.iter().map(|(name, file)| format!("{name}={}", file.display())).collect();
        format!("{}?{}", self.url_by(port), files.join("&"))
    }

    /// What a server says to a command of four letters; nothing if it does not serve.
    #[must_use]
    pub fn ask(&self, number: usize, word: &str) -> String {
        ask(self.servers[number].port, word)
    }

    /// A number that a server tells about itself with `mntr`.
    ///
    /// # Panics
    /// If it does not serve, or has no such number.
    #[must_use]
    pub fn measure(&self, number: usize, name: &str) -> u64 {
        let said = self.ask(number, "mntr");
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in: {said}"))
    }

    /// The connections of a server that carry a session.
    #[must_use]
    pub fn connections(&self, number: usize) -> Vec<Connection> {
        self.ask(number, "cons").lines().filter_map(Connection::parse).collect()
    }

    /// The server that leads the ensemble, if one does.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        (0..self.servers.len()).find(|&number| self.ask(number, "srvr").contains("Mode: leader"))
    }

    /// Kills a server as a machine that stops does.
    pub fn kill(&mut self, number: usize) {
        self.servers[number].child = None;
    }

    /// Signals a server: stops it for a while, say.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal(&self, number: usize, signal: Signal) {
        self.servers[number].child.as_ref().expect("it runs").signal(signal);
    }
}

/// A connection, as its server tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Of ZooKeeper.
    pub session: i64,
    /// How many packets came over it.
    pub received: u64,
    /// The time-out that was granted.
    pub timeout: Duration,
    /// When the last packet came that was answered.
    pub heard: Instant,
}

impl Connection {
    /// From a line like `/127.0.0.1:41234[1](queued=0,recved=5,…,sid=0x1000,…,to=6000,…,lresp=81234,llat=1,…)`.
    fn parse(line: &str) -> Option<Self> {
        let told = line.trim_end().strip_suffix(')')?.split_once('(')?.1;
        let word = |name: &str| {
            told.split(',')
                .find_map(|word| word.split_once('=').filter(|(key, _)| *key == name))
                .map(|(_, v)| v)
        };
        let number = |name: &str| word(name)?.parse::<u64>().ok();
        let session = u64::from_str_radix(word("sid")?.strip_prefix("0x")?, 16).ok()?.cast_signed();
        // An answer has the time at which it was sent, and how long it took.
        let heard = Duration::from_millis(number("lresp")?.saturating_sub(number("llat")?));
        let timeout = Duration::from_millis(number("to")?);
        Some(Self { session, received: number("recved")?, timeout, heard: monotonic::instant(heard) })
    }
}

/// The classes of a server that serves, as the JVM keeps them in memory. To load and verify them anew takes a third of the
/// processor time of a start.
fn classes() -> PathBuf {
    let jar = Path::new(JARS).join("zookeeper.jar");
    assert!(jar.is_file(), "this test needs ZooKeeper: install zookeeper (`cargo xtask setup` does)");
    let name = "classes.jsa";
    let archives = template::shared(&jar, include_str!("zookeeper.rs"), |directory| {
        let data = directory.join("data");
        std::fs::create_dir(&data).expect("the archive has a place");
        let archive = format!("-XX:ArchiveClassesAtExit={}", data.join(name).display());
        let mut server = ZooKeeper::launched(1, vec![String::from("forceSync=no")], Vec::new(), archive);
        server.servers[0].child.take().expect("it runs").end(Signal::TERM);
    });
    archives.join(name)
}

fn ask(port: u16, word: &str) -> String {
    let mut said = String::new();
    let heard = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(word.as_bytes())?;
        stream.read_to_string(&mut said)
    });
    heard.map(|_| said).unwrap_or_default()
}
