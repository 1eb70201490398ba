//! Who takes part: what each node does, how patient it is, and what may be done to all of them.

use std::time::Duration;

/// The election that nodes stand for to lead, and to write under its term.
const REPORTS: &str = "reports";
/// The election whose leader divides the work.
const COORDINATOR: &str = "coordinator";
/// The work that is divided.
pub const TASK_LIST: &str = "torture/work";

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It leads, divides the work, and has its own part of it.
    Everything,
    /// It divides the work, and has none.
    Coordinator,
    /// It works.
    Worker,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Role {
    pub name: String,
    pub ttl: Duration,
    pub part: Part,
}

impl Role {
    fn new(letter: char, number: usize, ttl: u64, part: Part) -> Self {
        Self { name: format!("{letter}{number}"), ttl: Duration::from_millis(ttl), part }
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Cast {
    pub roles: Vec<Role>,
    pub partitions: u32,
    /// The election that is told about.
    pub election: &'static str,
    /// How often each writes under each term that it has.
    pub write_every: Duration,
    /// How often each is asked for all its checks.
    pub watch_every: Duration,
    /// The longest pause between two faults.
    pub pause: Duration,
    /// Whether the store suffers too; or else everybody is restarted now and then, one after the other.
    pub blows: bool,
}

impl Cast {
    /// Five nodes with different ttl that do everything.
    pub fn five() -> Self {
        let ttls = [1000, 1500, 2000, 3000, 4000];
        let role = |(number, ttl)| Role::new('n', number, ttl, Part::Everything);
        Self {
            roles: ttls.into_iter().enumerate().map(role).collect(),
            partitions: 12,
            election: REPORTS,
            write_every: Duration::from_millis(25),
            watch_every: Duration::from_millis(1),
            pause: Duration::from_millis(500),
            blows: true,
        }
    }

    /// Three coordinators and ten workers, and so many partitions.
    pub fn division(partitions: u32) -> Self {
        let worker = |number| Role::new('w', number, [2000, 3000, 4000][number % 3], Part::Worker);
        let coordinator = |number| Role::new('c', number, [2000, 3000, 4000][number], Part::Coordinator);
        Self {
            roles: (0..3).map(coordinator).chain((0..10).map(worker)).collect(),
            partitions,
            election: COORDINATOR,
            // A thousand partitions write and are watched more often than one leader, all in all.
            write_every: Duration::from_secs(1),
            watch_every: Duration::from_millis(20),
            pause: Duration::from_secs(1),
            blows: false,
        }
    }

    /// The longest ttl.
    pub fn longest(&self) -> Duration {
        self.roles.iter().map(|role| role.ttl).max().unwrap_or_default()
    }

    /// Who may lead.
    pub fn candidates(&self) -> Vec<&str> {
        self.roles.iter().filter(|role| role.part != Part::Worker).map(|role| role.name.as_str()).collect()
    }

    /// For people.
    pub fn told(&self) -> String {
        let count = |part: Part| self.roles.iter().filter(|role| role.part == part).count();
        let shortest = self.roles.iter().map(|role| role.ttl).min().unwrap_or_default();
        let who = match count(Part::Everything) {
            0 => format!("{} coordinators, {} workers", count(Part::Coordinator), count(Part::Worker)),
            nodes => format!("{nodes} nodes"),
        };
        format!("{who}, ttl {shortest:?} to {:?}, {} partitions", self.longest(), self.partitions)
    }
}
