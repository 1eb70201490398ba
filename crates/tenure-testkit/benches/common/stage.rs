//! Candidates in processes of their own, on one SQLite file, and the bench that watches them.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tenure_core::Instant;
use tenure_store::clock;

use super::Outcome;
use super::floor::Row;
use super::place::Place;
use super::process::Troupe;

/// The fields are dropped in this order: the processes end before their directory is gone.
pub struct Stage {
    pub troupe: Troupe,
    /// For the floor, in the same directory.
    pub floor: Row,
    reader: Connection,
    /// Keeps the log of the candidates' file, which was made old beforehand, like that of the floor.
    _aged: Row,
    pub place: Place,
    ttl: Duration,
    launched: usize,
}

impl Stage {
    /// Starts so many candidates, and waits until one leads and all others stand.
    pub fn open(processes: usize, ttl: Duration) -> Outcome<Self> {
        let place = Place::on_disk()?;
        let aged = Row::open(&place.database())?;
        let floor = Row::open(&place.floor())?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(place.database(), flags)?;
        reader.busy_timeout(Duration::from_secs(5))?;
        let troupe = Troupe::new();
        let mut stage = Self { troupe, floor, reader, _aged: aged, place, ttl, launched: 0 };
        for _ in 0..processes {
            stage.launch()?;
        }
        stage.troupe.hear_word("leads")?;
        stage.wait_for(processes - 1)?;
        Ok(stage)
    }

    /// Starts another candidate, under a name that none has had.
    pub fn launch(&mut self) -> Outcome<()> {
        self.launched += 1;
        let url = format!("sqlite:{}", self.place.database().display());
        self.troupe.launch(&format!("node-{}", self.launched), &[&url, &self.ttl.as_millis().to_string()])
    }

    /// Waits until so many stand, the leader not among them.
    pub fn wait_for(&self, candidates: usize) -> Outcome<()> {
        let patience = clock::now() + Duration::from_secs(60);
        while self.standing()?.len() != candidates {
            if clock::now() > patience {
                return Err("the candidates do not stand".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Who stands, in order of arrival.
    pub fn standing(&self) -> Outcome<Vec<String>> {
        let sql = "SELECT s.node FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session
                   WHERE s.state = 'live' ORDER BY c.arrival";
        let mut statement = self.reader.prepare_cached(sql)?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Who leads, and the instant of the last renewal that the store has applied.
    pub fn leader(&self) -> Outcome<(String, Instant)> {
        let sql = "SELECT s.node, s.renewed_boot_ns FROM tenure_elections e JOIN tenure_sessions s
                   ON s.id = e.session";
        let (node, renewed): (String, i64) =
            self.reader.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((node, Instant::from_nanos(u64::try_from(renewed)?)))
    }

    /// When the transaction of the latest event of this kind began: the history has it by the wall
    /// clock, in microseconds.
    pub fn latest(&self, kind: &str) -> Outcome<Instant> {
        let sql = "SELECT unixepoch(time) * 1000000 + CAST(substr(time, 21, 6) AS INTEGER)
                   FROM tenure_events WHERE kind = ?1 ORDER BY id DESC LIMIT 1";
        let micros: i64 = self.reader.prepare_cached(sql)?.query_row([kind], |row| row.get(0))?;
        let ago = clock::wall().saturating_sub(Duration::from_micros(u64::try_from(micros)?));
        Ok(clock::now() - ago)
    }
}

/// What came of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Round {
    Measured,
    /// A leader lost its lease although nobody wanted that: the machine or its disk stood still for
    /// most of a ttl. Such a round measures nothing, and the next begins on a new stage.
    Disturbed,
}
