//! Everything at once, in an order that a seed decides; how the processes take it is theirs.
//! `cargo xtask torture --chaos` does the same at length, with a seed of its own.

use std::collections::HashMap;
use std::time::Duration;

use tenure_store::clock;
use tenure_torture::journal::incumbent;

use super::crew::Crew;

const TTL: Duration = Duration::from_millis(1500);
/// How many things are done, unless `TENURE_FAULTS` says otherwise: about ten seconds.
const DEEDS: u64 = 60;
/// Which, unless `TENURE_SEED` does.
const SEED: u64 = 19;
const ELECTIONS: [&str; 2] = ["reports", "mails"];
/// `clara` does not stop when she is told to, so that nobody can count on her.
const NODES: [(&str, &[&str]); 4] =
    [("anna", &[]), ("ben", &["--lead"]), ("clara", &["--stubborn"]), ("dora", &["--lead"])];

/// After so long a process that was started or woken takes part like any other: it may have to wait
/// for a ttl for its own former session, and needs some time to start.
const SETTLES: Duration = Duration::from_secs(4);

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.roll(to - from))
    }
}

/// The world, and who of it is up since when.
struct Chaos {
    crew: Crew,
    dice: Dice,
    up: HashMap<&'static str, tenure_core::Instant>,
    /// When who is to be started or woken.
    down: Vec<(tenure_core::Instant, &'static str)>,
    did: Vec<String>,
}

impl Chaos {
    fn run(&mut self, deeds: u64) {
        for _ in 0..deeds {
            let pause = self.dice.millis(20, 300);
            std::thread::sleep(pause);
            self.bring_back(clock::now());
            let (node, _) = NODES[self.pick(NODES.len())];
            let action = self.dice.roll(8);
            match action {
                0..=2 => self.take_down(node, true),
                3..=5 => self.take_down(node, false),
                _ => self.hand_over(node, action == 6),
            }
        }
        self.bring_back(clock::now() + TTL * 10);
    }

    fn pick(&mut self, sides: usize) -> usize {
        usize::try_from(self.dice.roll(sides as u64)).unwrap()
    }

    /// Takes a process down, unless it is the last on whom the others can count: L1 promises nothing
    /// without a healthy candidate.
    fn take_down(&mut self, node: &'static str, kill: bool) {
        let settled = clock::now() - SETTLES;
        let counted_on = |(&other, &since): (&&str, &tenure_core::Instant)| {
            other != node && other != "clara" && since < settled
        };
        if !self.up.contains_key(node) || !self.up.iter().any(counted_on) {
            return;
        }
        let back = clock::now()
            + if kill {
                self.crew.kill(node);
                self.dice.millis(0, 1500)
            } else {
                self.crew.stop(node);
                self.dice.millis(50, 4000)
            };
        self.did.push(format!("{} {node}", if kill { "kill" } else { "stop" }));
        self.up.remove(node);
        self.down.push((back, node));
    }

    fn bring_back(&mut self, now: tenure_core::Instant) {
        let (due, later) = self.down.drain(..).partition(|(at, _)| *at <= now);
        self.down = later;
        let due: Vec<_> = due;
        for (_, node) in due {
            if self.crew.is_stopped(node) {
                self.crew.go_on(node);
            } else {
                let flags = NODES.iter().find(|(name, _)| *name == node).unwrap().1;
                self.crew.spawn(node, flags);
            }
            self.up.insert(node, clock::now());
        }
    }

    fn hand_over(&mut self, to: &str, named: bool) {
        let election = ELECTIONS[self.pick(ELECTIONS.len())];
        let up: Vec<u32> = self.up.keys().map(|node| self.crew.pid(node)).collect();
        let Some(leader) = incumbent(&self.crew.said(), election, &up) else { return };
        let order = if named { format!("transfer {election} {to}") } else { format!("resign {election}") };
        self.did.push(format!("{} {order}", leader.node()));
        self.crew.order(&leader.node(), &order);
        if !named {
            self.crew.order(&leader.node(), &format!("stand {election}"));
        }
    }
}

#[test]
fn whoever_is_killed_or_stopped_one_leads_at_a_time_and_terms_rise() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let (deeds, seed) = (setting("TENURE_FAULTS").unwrap_or(DEEDS), setting("TENURE_SEED").unwrap_or(SEED));
    eprintln!("TENURE_SEED={seed} TENURE_FAULTS={deeds}");
    let mut crew = Crew::of(TTL, &ELECTIONS);
    let mut up = HashMap::new();
    for (node, flags) in NODES {
        crew.start_with(node, flags);
        up.insert(node, clock::now());
    }
    let mut chaos = Chaos { crew, dice: Dice(seed), up, down: Vec::new(), did: Vec::new() };
    chaos.run(deeds);

    // The faults are over; now progress is demanded.
    let mut crew = chaos.crew;
    let up: Vec<u32> = crew.living().iter().map(|node| crew.pid(node)).collect();
    for election in ELECTIONS {
        crew.wait("somebody leads in the end", |events| incumbent(events, election, &up));
    }
    let evidence = crew.verdict();
    eprintln!(
        "{} leaderships, {} rows, {} register writes ({} refused), after {}",
        evidence.leaderships.len(),
        evidence.ledger.len(),
        evidence.register.len(),
        evidence.register.iter().filter(|write| !write.accepted).count(),
        chaos.did.join(", "),
    );
}
