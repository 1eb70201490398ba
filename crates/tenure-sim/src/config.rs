//! One seed decides everything: the store's kind, the nodes, their clocks, the network, the faults.

use std::time::Duration;

use tenure_core::{Capabilities, Dice, ExpiryJudge, News, Plant, Sessions};

use crate::clock::{Real, nanos};
use crate::fault::{self, Fault};
use crate::proof;
use crate::scene::Scene;

/// At most so many elections are held in a run.
pub const MOST_ELECTIONS: usize = 3;

/// How the model store tells the age of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// Not at all.
    Unknown,
    /// All nodes live on one machine, and the age is taken on its clock.
    Exact,
    /// By the store's own clock, which may be stepped.
    Told,
}

/// A node as it is configured.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Rate of its clock, in thousandths.
    pub rate: u64,
    /// What its clock shows at the beginning.
    pub origin: u64,
    /// Its ttl; nodes may differ.
    pub ttl: Duration,
    /// How often it renews its session.
    pub renew_every: Duration,
    /// How often it looks where the store cannot push news.
    pub poll_every: Duration,
    /// How long before the end of its lease its work is told to stop.
    pub stop_margin: Duration,
    /// Its take-over delay.
    pub takeover_delay: Duration,
    /// Its priority.
    pub priority: i32,
    /// Whether it may lead.
    pub eligible: bool,
    /// Whether its user lets it stand again after it resigned or withdrew.
    pub persistent: bool,
    /// Whether its user wants to hear who leads, from the start.
    pub observes: bool,
    /// How often it looks who is there, if it watches the cluster.
    pub look_every: Option<Duration>,
    /// Whether it asks a leader of lower priority to make way.
    pub failback: bool,
}

/// How messages travel while nothing is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The shortest way from a node to the store or back.
    pub least: Real,
    /// How much longer it may take.
    pub spread: Real,
}

/// How partitions are divided, in a run that is about them.
#[derive(Clone, Debug)]
pub struct Division {
    /// The task lists, by how many partitions they have.
    pub lists: Vec<u32>,
    /// What they change to, and back, and at last.
    pub later: Vec<u32>,
    /// How many may be moved at a time.
    pub moves: u32,
    /// How long a node is expected back.
    pub grace: Duration,
}

/// Everything about one run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whence it all comes.
    pub seed: u64,
    /// What the model store can do.
    pub capabilities: Capabilities,
    /// How it tells ages.
    pub ages: Ages,
    /// Rate of the store's clock, in thousandths.
    pub store_rate: u64,
    /// The store keeps candidates in a line of its own: whoever stands at its head is served, and nobody else.
    pub strict_line: bool,
    /// Renewals tell candidates how their elections are.
    pub renewals_tell: bool,
    /// A store that judges by itself looks so often for sessions that have expired.
    pub tick: Real,
    /// By how much clock rates may differ, in thousandths; all nodes are told so.
    pub drift: u16,
    /// The nodes.
    pub nodes: Vec<NodeConfig>,
    /// How many elections there are.
    pub elections: usize,
    /// The network.
    pub network: Network,
    /// How late a driver may be woken, at most.
    pub latency: Real,
    /// When the faults end.
    pub calm_at: Real,
    /// The longest ttl of all nodes.
    pub ttl: Real,
    /// What goes wrong, in order.
    pub faults: Vec<Fault>,
    /// Faults that keep a node from the store strike whoever leads, if somebody does.
    pub aimed: bool,
    /// Whoever is elected first is cut off at once.
    pub ambushed: bool,
    /// The partitions, if it is about them.
    pub division: Option<Division>,
}

impl Config {
    /// Candidates decide that a session is over, as in the stores without a line of their own.
    pub(crate) fn judged_by_candidates(&mut self) {
        self.strict_line = false;
        (self.capabilities.expiry, self.capabilities.sessions) = (ExpiryJudge::Candidate, Sessions::Anywhere);
    }

    /// The run of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x7e4e_5eed);
        let (capabilities, strict_line) = kind_of_store(&mut dice);
        let ages = pick(&mut dice, &[Ages::Unknown, Ages::Exact, Ages::Told, Ages::Told]);
        let drift = pick(&mut dice, &[100, 100, 100, 0, 20, 50, 200]);
        let rho = u64::from(drift);
        let drifts = dice.below(3) > 0;
        // Mostly the extremes: whoever errs in counting is caught there.
        let rate = |dice: &mut Dice| match dice.below(5) {
            _ if !drifts => 1000,
            0 | 1 => 1000 - rho,
            2 | 3 => 1000 + rho,
            _ => 1000 - rho + dice.below(2 * rho + 1),
        };
        let base_ttl = Duration::from_secs(pick(&mut dice, &[2, 5, 10, 20, 30, 60]));
        let mixed = dice.below(4) == 0;
        let delayed = dice.below(5) == 0;
        let ranked = dice.below(4) == 0;
        let count = 2 + usize::try_from(dice.below(4)).unwrap_or(0);
        let machine = (rate(&mut dice), 1 + dice.below(1 << 50));
        let mut nodes: Vec<NodeConfig> = (0..count)
            .map(|_| {
                let (rate, origin) =
                    if ages == Ages::Exact { machine } else { (rate(&mut dice), 1 + dice.below(1 << 50)) };
                let ttl = if mixed { base_ttl * pick(&mut dice, &[1, 2, 3]) } else { base_ttl };
                NodeConfig {
                    rate,
                    origin,
                    ttl,
                    renew_every: ttl / pick(&mut dice, &[3, 3, 5, 10]),
                    poll_every: ttl / pick(&mut dice, &[6, 6, 3, 12]),
                    stop_margin: ttl / pick(&mut dice, &[20, 20, 10, 50]),
                    takeover_delay: if delayed { base_ttl / 2 } else { Duration::ZERO },
                    priority: if ranked { pick(&mut dice, &[0, 0, 5]) } else { 0 },
                    eligible: dice.below(8) > 0,
                    persistent: dice.below(5) > 0,
                    observes: dice.below(2) > 0,
                    look_every: None,
                    failback: false,
                }
            })
            .collect();
        // Somebody must be able to lead, and somebody must be left when it dies.
        for node in &mut nodes[..2] {
            node.eligible = true;
            node.persistent = true;
        }
        let mut habits = Dice::new(seed ^ 0x3e3b_e125);
        // The store does not know who stands while a take-over delay is due: a leader cannot make way for it.
        let (watched, fails_back) = (habits.below(2) == 0, habits.below(3) > 0 && ranked && !delayed);
        let renewals_tell = habits.below(3) > 0 && !strict_line;
        for node in &mut nodes {
            let every = node.ttl / pick(&mut habits, &[3, 3, 2, 6]);
            node.look_every = Some(every).filter(|_| habits.below(4) > 0 && watched);
            node.failback = habits.below(4) > 0 && fails_back;
        }
        let ttl = nodes.iter().map(|node| nanos(node.ttl)).max().unwrap_or(0);
        let shortest = nodes.iter().map(|node| nanos(node.ttl)).min().unwrap_or(0);
        let network = Network {
            least: 50_000 + dice.below(1_000_000),
            spread: pick(&mut dice, &[1_000_000, 5_000_000, shortest / 100]),
        };
        let margin = nodes.iter().map(|node| nanos(node.stop_margin)).min().unwrap_or(0);
        // A session's life is two to twenty ticks of ZooKeeper's.
        let tick = pick(&mut dice, &[1, shortest / 20, shortest / 6, shortest / 2]);
        let calm_at = ttl * (8 + dice.below(40));
        let mut config = Self {
            seed,
            capabilities,
            strict_line,
            renewals_tell,
            ages,
            store_rate: rate(&mut dice),
            tick,
            drift,
            elections: 1 + usize::try_from(dice.below(MOST_ELECTIONS as u64)).unwrap_or(0),
            network,
            latency: margin.min(shortest / 20) * 7 / 10,
            calm_at,
            ttl,
            nodes,
            faults: Vec::new(),
            aimed: false,
            ambushed: false,
            division: None,
        };
        config.faults = fault::plan(&config, &mut dice);
        if fails_back {
            fault::upset_failback(&mut config, &mut habits);
        }
        config
    }

    /// The shortest real time in which any clock that keeps assumption A1 counts `duration`.
    #[must_use]
    pub fn shortest(&self, duration: u64) -> u64 {
        duration * 1000 / (1000 + u64::from(self.drift))
    }

    /// The longest real time in which any clock that keeps assumption A1 counts `duration`.
    #[must_use]
    pub fn longest(&self, duration: u64) -> u64 {
        (duration * 1000).div_ceil(1000 - u64::from(self.drift))
    }

    /// The longest of these times of all nodes.
    #[must_use]
    pub fn longest_of(&self, time: impl Fn(&NodeConfig) -> Duration) -> Real {
        self.nodes.iter().map(|node| nanos(time(node))).max().unwrap_or(0)
    }

    /// The run of this seed in which the leader of the only election divides partitions among the nodes.
    #[must_use]
    pub fn with_partitions(seed: u64) -> Self {
        let mut config = Self { elections: 1, ..Self::from_seed(seed) };
        let mut dice = Dice::new(seed ^ 0x7a57_1157);
        let mut lists = || (0..1 + dice.below(3)).map(|_| count(dice.below(7))).collect();
        let (lists, later) = (lists(), lists());
        let ttl = Duration::from_nanos(config.ttl);
        let grace = pick(&mut dice, &[Duration::ZERO, ttl / 2, ttl]);
        let moves = 1 + count(dice.below(3));
        config.division = Some(Division { lists, later, moves, grace });
        config.faults = fault::plan(&config, &mut dice);
        config
    }
}

impl Config {
    /// The run of this seed in the search for this bug, or for none.
    #[must_use]
    pub fn for_plant(seed: u64, plant: Option<Plant>) -> Self {
        let partitions = plant.is_some_and(Plant::is_about_partitions);
        let config = if partitions { Self::with_partitions(seed) } else { Self::from_seed(seed) };
        config.with_scene(plant.and_then(proof::scene))
    }

    /// The same, with this scene set.
    #[must_use]
    pub fn with_scene(mut self, scene: Option<Scene>) -> Self {
        if let Some(scene) = scene {
            scene.set(&mut self);
        }
        self
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What the store can do, and whether it keeps candidates in a line of its own.
fn kind_of_store(dice: &mut Dice) -> (Capabilities, bool) {
    let strict_line = pick(dice, &[false, false, true]);
    let mut capabilities = Capabilities {
        expiry: pick(dice, &[ExpiryJudge::Candidate, ExpiryJudge::Candidate, ExpiryJudge::Store]),
        news: pick(dice, &[News::Push, News::Push, News::Poll]),
        sessions: Sessions::Anywhere,
    };
    // A place in a strict line can only be given up by its own session, so the store must judge when that is over.
    if strict_line {
        capabilities.expiry = ExpiryJudge::Store;
        capabilities.sessions = Sessions::OwnConnection;
    }
    (capabilities, strict_line)
}

/// One of these.
pub fn pick<T: Copy>(dice: &mut Dice, choices: &[T]) -> T {
    choices[usize::try_from(dice.below(choices.len() as u64)).unwrap_or(0)]
}
