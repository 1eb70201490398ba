//! Several machines on a network of their own, whose packets can be lost between any two of them: network
//! namespaces on a bridge. Real packets are lost there, and nobody is told.
//!
//! It needs root. Everything of it is gone with the process, however that ends.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::server::succeed;

/// A network of machines, which nobody else can reach.
pub struct Lan {
    machines: Vec<Machine>,
    /// Keeps the bridge.
    _hub: File,
}

/// One machine on it.
#[derive(Clone)]
pub struct Machine {
    address: Ipv4Addr,
    namespace: Arc<File>,
}

impl Lan {
    /// Makes one with so many machines.
    ///
    /// # Panics
    /// If this is not allowed, or iproute2 is not installed.
    #[must_use]
    pub fn new(machines: u8) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("lan-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let hub = format!("{name}-hub");
        let hub_file = namespace(&hub);
        ip(&format!("-n {hub} link add br0 type bridge"));
        ip(&format!("-n {hub} link set br0 up"));
        let machines = (1..=machines).map(|number| {
            let (there, address) = (format!("{name}-{number}"), Ipv4Addr::new(10, 77, 0, number));
            let file = namespace(&there);
            ip(&format!("-n {there} link add eth0 type veth peer name port{number} netns {hub}"));
            ip(&format!("-n {hub} link set port{number} master br0 up"));
            ip(&format!("-n {there} addr add {address}/24 dev eth0"));
            ip(&format!("-n {there} link set eth0 up"));
            ip(&format!("-n {there} link set lo up"));
            // It lives as long as somebody is in it or has it open, and its cable with it.
            ip(&format!("netns del {there}"));
            Machine { address, namespace: Arc::new(file) }
        });
        let machines = machines.collect();
        ip(&format!("netns del {hub}"));
        Self { machines, _hub: hub_file }
    }

    /// The machines, in the order of their addresses.
    #[must_use]
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Loses everything between those on one side and all others.
    pub fn part(&self, side: &[&Machine]) {
        for machine in &self.machines {
            let here = side.iter().any(|one| one.address == machine.address);
            for other in &self.machines {
                let there = side.iter().any(|one| one.address == other.address);
                if here != there {
                    machine.lose_from(other);
                }
            }
        }
    }

    /// Nothing is lost any more.
    pub fn heal(&self) {
        self.machines.iter().for_each(Machine::heal);
    }
}

impl Machine {
    /// Where it is reached.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Does something there. The threads and processes that it starts are there too.
    ///
    /// # Panics
    /// If it does.
    pub fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let namespace = Arc::clone(&self.namespace);
        let there = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("root may enter");
            work()
        };
        thread::spawn(there).join().expect("whatever is done there succeeds")
    }

    /// How many packets it has sent over TCP, those that only acknowledge not counted.
    ///
    /// # Panics
    /// If the system does not tell.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let told = self.within(|| std::fs::read_to_string("/proc/thread-self/net/netstat"));
        let told = told.expect("the system counts packets");
        let lines: Vec<Vec<&str>> = told
            .lines()
            .filter(|line| line.starts_with("TcpExt:"))
            .map(|line| line.split(' ').collect())
            .collect();
        let [names, counts] = lines.as_slice() else { panic!("names, and a count for each") };
        let place = names.iter().position(|name| *name == "TCPOrigDataSent");
        let count = place.and_then(|place| counts.get(place)?.parse().ok());
        count.expect("the system counts packets with something in them")
    }

    /// From now on it hears nothing of another one.
    pub fn lose_from(&self, other: &Self) {
        self.iptables(&["-A", "INPUT", "-s", &other.address.to_string(), "-j", "DROP"]);
    }

    /// From now on it hears nothing of anybody but itself.
    pub fn deafen(&self) {
        self.iptables(&["-A", "INPUT", "-i", "eth0", "-j", "DROP"]);
    }

    /// From now on nobody else hears of it.
    pub fn mute(&self) {
        self.iptables(&["-A", "OUTPUT", "-o", "eth0", "-j", "DROP"]);
    }

    /// It loses nothing any more.
    pub fn heal(&self) {
        self.iptables(&["-F"]);
    }

    fn iptables(&self, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        self.within(move || succeed(Command::new("iptables").arg("-w").args(words)));
    }
}

/// A namespace of this name, held open.
fn namespace(name: &str) -> File {
    ip(&format!("netns add {name}"));
    File::open(format!("/run/netns/{name}")).expect("a namespace that was made can be opened")
}

fn ip(words: &str) {
    succeed(Command::new("ip").args(words.split(' ')));
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;
    use crate::patience::until;

    const PORT: u16 = 7;
    /// More than one exchange has packets.
    const EXCHANGES: u64 = 20;

    fn listens(machine: &Machine) {
        let address = SocketAddr::from((machine.address(), PORT));
        let listener = machine.within(move || TcpListener::bind(address).unwrap());
        thread::spawn(move || {
            listener.incoming().for_each(|stream| stream.unwrap().write_all(b"!").unwrap())
        });
    }

    fn hears(machine: &Machine, other: &Machine) -> bool {
        let address = SocketAddr::from((other.address(), PORT));
        machine.within(move || {
            let stream = TcpStream::connect_timeout(&address, Duration::from_millis(300));
            stream.and_then(|mut stream| stream.read_exact(&mut [0])).is_ok()
        })
    }

    /// The same, however long it takes.
    fn finds(machine: &Machine, other: &Machine) -> bool {
        until("they find each other", || hears(machine, other));
        true
    }

    #[test]
    fn packets_are_lost_where_they_are_told_to_be_and_nowhere_else() {
        let lan = Lan::new(3);
        let [a, b, c] = lan.machines() else { panic!("there are three") };
        lan.machines().iter().for_each(listens);
        assert!(finds(a, b) && finds(b, a) && finds(a, c));
        let (said, silent) = (b.messages(), c.messages());
        assert!((0..EXCHANGES).all(|_| finds(a, b)), "they find each other every time");
        assert!(b.messages() - said >= EXCHANGES, "what it answers is counted");
        // The end of an exchange from before may be on its way.
        assert!(c.messages() - silent < EXCHANGES, "and only there");
        lan.part(&[a]);
        assert!(!hears(a, b) && !hears(b, a) && !hears(c, a) && finds(b, c));
        lan.heal();
        assert!(finds(a, b));
        a.mute();
        assert!(!hears(b, a) && finds(a, a) && finds(b, c));
        lan.heal();
        a.deafen();
        assert!(!hears(a, b) && finds(a, a));
    }
}
