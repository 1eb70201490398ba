//! The nodes: real processes of the command, whose words go to a small disk.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_store::clock;
use tenure_testkit::server::{Disk, free_port};

use super::{NODES, TTL};
use crate::stores::place::Place;
use crate::stores::vitals::Vitals;
use crate::{Outcome, beside};

/// The least that a disk can be filled in.
const MEGABYTES: u32 = 1;

pub struct Nodes {
    all: Vec<Node>,
    disk: Disk,
    full: bool,
}

struct Node {
    name: String,
    process: Child,
    address: SocketAddr,
    vitals: Vitals,
}

impl Nodes {
    /// They count as warm after a tenth of the time.
    pub fn start(place: &Place, directory: &Path, length: Duration) -> Outcome<Self> {
        let logs = directory.join("logs");
        std::fs::create_dir(&logs)?;
        let disk = Disk::mounted(&logs, MEGABYTES);
        let mut all = Vec::new();
        for number in 0..NODES {
            let name = format!("n{number}");
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let said = File::create(logs.join(format!("{name}.stderr")))?;
            let mut command = Command::new(beside("tenure")?);
            command.args(["node", "-v", "--node", &name, "--listen", &address.to_string()]);
            command.args(["--ttl", &format!("{}s", TTL.as_secs())]).env("TENURE_STORE", place.url(number));
            let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn()?;
            all.push(Node { name, process, address, vitals: Vitals::warm_after(length / 10) });
        }
        Ok(Self { all, disk, full: false })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(|node| node.address).collect()
    }

    /// Whether each answers that it lives, and has joined.
    pub fn all_serve(&self) -> bool {
        self.all.iter().all(|node| ready(node.address).unwrap_or(false))
    }

    pub fn feel(&mut self) {
        for node in &mut self.all {
            node.vitals.feel(node.process.id(), clock::now());
        }
    }

    /// From now on nothing that they say is kept.
    pub fn fill_the_disk(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            self.disk.fill();
        }
    }

    /// For people.
    pub fn growth(&self) -> Vec<String> {
        self.all.iter().map(|node| format!("{}: {}", node.name, node.vitals.growth())).collect()
    }

    /// Who grew by more than so much.
    pub fn grown(&self, most: f64) -> Vec<String> {
        let grew = |node: &&Node| node.vitals.share().is_none_or(|share| share > most);
        self.all
            .iter()
            .filter(grew)
            .map(|node| format!("{} grew: {}", node.name, node.vitals.growth()))
            .collect()
    }

    /// Who has ended, although nobody told it to.
    pub fn ended(&mut self) -> Outcome<Vec<String>> {
        let mut ended = Vec::new();
        for node in &mut self.all {
            if let Some(status) = node.process.try_wait()? {
                ended.push(format!("{} has ended: {status}", node.name));
            }
        }
        Ok(ended)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.all {
            // It is ours, and is reaped here only.
            let _ = node.process.kill();
            let _ = node.process.wait();
        }
    }
}

fn ready(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
