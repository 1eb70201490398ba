//! The verdict: everything that was left behind, read and judged by the checker.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tenure::sqlite::rusqlite::Connection;
use tenure_testkit::checker::{Leadership, LeadershipViolation, Write, check_leaderships, check_writes};
use tenure_testkit::patience::{HANG, until};
use tenure_torture::evidence::{asked_of_register, leaderships, writes};

use super::crew::Crew;

/// What is left behind when everybody is gone.
pub struct Evidence {
    pub leaderships: Vec<Leadership>,
    /// Rows that fenced transactions wrote, in the order of their commits.
    pub ledger: Vec<Write>,
    /// What the register was asked for, in the order in which it judged.
    pub register: Vec<Write>,
    pub history: Vec<Line>,
}

/// A line of the store's history.
#[derive(Debug)]
pub struct Line {
    pub election: String,
    pub sequence: i64,
    pub kind: String,
    pub node: String,
    pub term: u64,
}

impl Crew {
    /// Ends everybody, and judges. Every test ends with this, or with a part of it where the world
    /// it made is one in which not everything is promised.
    pub fn verdict(&mut self) -> Evidence {
        let (database, register) = (self.database(), self.place("register.db"));
        until("somebody writes", || {
            !ledger(&database).is_empty() && !asked_of_register(&register).is_empty()
        });
        let evidence = self.evidence();
        evidence.assert_sound();
        evidence
    }

    /// Ends everybody, and reads what they left behind.
    pub fn evidence(&mut self) -> Evidence {
        self.dismiss();
        let revived: Vec<_> = self
            .said()
            .into_iter()
            .filter(|event| event.kind == "revived" || event.kind == "gibberish")
            .collect();
        assert!(revived.is_empty(), "a check that had failed passed again: {revived:?}");
        Evidence {
            leaderships: leaderships(&self.place("logs")),
            ledger: ledger(&self.database()),
            register: asked_of_register(&self.place("register.db")),
            history: history(&self.database()),
        }
    }
}

impl Evidence {
    pub fn assert_sound(&self) {
        assert!(!self.leaderships.is_empty(), "nobody ever led: nothing was tested");
        assert_eq!(check_leaderships(&self.leaderships), [], "leaderships");
        self.assert_writes();
        self.assert_history();
    }

    /// No accepted write is below the highest term, in either register.
    pub fn assert_writes(&self) {
        assert!(!self.ledger.is_empty() && !self.register.is_empty(), "nobody ever wrote");
        assert_eq!(check_writes(&self.ledger), [], "the ledger");
        assert_eq!(check_writes(&self.register), [], "the register");
    }

    /// The history has no gap, its terms rise, and everything else that happened is in it.
    pub fn assert_history(&self) {
        let mut last: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
        let mut granted: HashMap<(&str, u64), &str> = HashMap::new();
        for line in &self.history {
            let (sequence, term) = last.entry(&line.election).or_default();
            assert_eq!(line.sequence, *sequence + 1, "the history has a gap before {line:?}");
            *sequence = line.sequence;
            if line.kind == "leader_elected" {
                assert!(line.term > *term, "terms do not rise at {line:?}");
                *term = line.term;
                granted.insert((&line.election, line.term), &line.node);
            }
        }
        let terms = self.leaderships.iter().map(|led| (&led.election, led.term, &led.node));
        let written = self.ledger.iter().map(|write| (&write.election, write.term, &write.node));
        for (election, term, node) in terms.chain(written) {
            let holder = granted.get(&(election.as_str(), term));
            assert_eq!(holder, Some(&node.as_str()), "term {term} of {election} in the history");
        }
    }

    /// Only what is promised whatever happens to the store: no two at once.
    pub fn assert_no_overlap(&self) {
        let is_overlap = |found: &LeadershipViolation| matches!(found, LeadershipViolation::Overlap { .. });
        let overlaps: Vec<_> = check_leaderships(&self.leaderships).into_iter().filter(is_overlap).collect();
        assert_eq!(overlaps, []);
    }

    /// The leadership under this term.
    pub fn under(&self, term: u64) -> &Leadership {
        self.leaderships.iter().find(|led| led.term == term).expect("somebody led under this term")
    }
}

/// The rows that were accepted in a file; none if the file never had a ledger.
pub fn ledger(database: &Path) -> Vec<Write> {
    let file = Connection::open(database).unwrap();
    file.busy_timeout(HANG).unwrap();
    if !file.table_exists(None, "ledger").unwrap() {
        return Vec::new();
    }
    writes(&file, "SELECT election, node, pid, term, 1 FROM ledger ORDER BY id")
}

fn history(database: &Path) -> Vec<Line> {
    let file = Connection::open(database).unwrap();
    let mut statement = file
        .prepare(
            "SELECT election, sequence, kind, coalesce(node, ''), term FROM tenure_events
             WHERE election IS NOT NULL ORDER BY election, sequence",
        )
        .unwrap();
    let rows = statement.query_map([], |row| {
        Ok(Line {
            election: row.get(0)?,
            sequence: row.get(1)?,
            kind: row.get(2)?,
            node: row.get(3)?,
            term: row.get::<_, i64>(4)?.cast_unsigned(),
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}
