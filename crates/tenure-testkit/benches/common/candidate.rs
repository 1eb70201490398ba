//! A candidate in a process of its own, as `handover` and `failover` measure it.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tenure::{Leadership, Node};
use tenure_store::clock;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Outcome;
use super::place::Place;
use super::process::{Troupe, say};

const ELECTION: &str = "bench";

/// Stands, and says `leads INSTANT` when elected, until stdin is closed. The order `resign` or
/// `transfer NODE` ends a leadership, and is answered with `resigned INSTANT`: when it was called.
/// After that it stands again only when told to `stand`, so that the successor is another.
pub fn part(words: &[&str]) -> Outcome<()> {
    let [name, path, ttl] = words else { return Err("usage: part NAME PATH TTL_MS".into()) };
    let ttl = Duration::from_millis(ttl.parse()?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(stand(name, path, ttl))
}

async fn stand(name: &str, path: &str, ttl: Duration) -> Outcome<()> {
    let store = tenure::connect(format!("sqlite:{path}")).await?;
    let node = Node::builder(name).ttl(ttl).start(store).await?;
    let election = node.election(ELECTION)?;
    let mut orders = orders();
    loop {
        let leadership = tokio::select! {
            elected = election.elected() => elected?,
            _ = orders.recv() => return Ok(()),
        };
        say("leads", clock::now().as_nanos());
        if !lead(leadership, &mut orders).await? {
            return Ok(());
        }
    }
}

/// False if there is nothing more to do.
async fn lead(leadership: Leadership, orders: &mut UnboundedReceiver<String>) -> Outcome<bool> {
    let order = tokio::select! {
        order = orders.recv() => order,
        reason = leadership.lost() => {
            say("lost", reason.name());
            return Ok(true);
        }
    };
    let Some(order) = order else { return Ok(false) };
    let called = clock::now();
    match order.split_once(' ') {
        Some(("transfer", to)) => leadership.transfer(to).await?,
        _ => leadership.resign().await?,
    }
    say("resigned", called.as_nanos());
    drop(leadership);
    Ok(orders.recv().await.is_some())
}

/// Lines of stdin, read by a thread of its own: reading a pipe cannot be cancelled.
fn orders() -> UnboundedReceiver<String> {
    let (tell, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    orders
}

/// The contest as the bench watches it, through a connection of its own.
pub struct Contest {
    connection: Connection,
}

impl Contest {
    /// Starts candidates by these names, and waits until one leads and all others stand.
    pub fn open(place: &Place, troupe: &mut Troupe, names: &[String], ttl: Duration) -> Outcome<Self> {
        for name in names {
            launch(place, troupe, name, ttl)?;
        }
        troupe.hear_word("leads")?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let contest = Self { connection: Connection::open_with_flags(place.database(), flags)? };
        contest.connection.busy_timeout(Duration::from_secs(5))?;
        contest.wait_for(names.len() - 1)?;
        Ok(contest)
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
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Who leads, and the instant of the last renewal that the store has applied.
    pub fn leader(&self) -> Outcome<(String, tenure_core::Instant)> {
        let sql = "SELECT s.node, s.renewed_boot_ns FROM tenure_elections e JOIN tenure_sessions s
                   ON s.id = e.session";
        let (node, renewed): (String, i64) =
            self.connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((node, tenure_core::Instant::from_nanos(u64::try_from(renewed)?)))
    }

    /// When the transaction of the latest event of this kind began: the history has it by the wall
    /// clock, in microseconds.
    pub fn latest(&self, kind: &str) -> Outcome<tenure_core::Instant> {
        let sql = "SELECT unixepoch(time) * 1000000 + CAST(substr(time, 21, 6) AS INTEGER)
                   FROM tenure_events WHERE kind = ?1 ORDER BY id DESC LIMIT 1";
        let micros: i64 = self.connection.prepare_cached(sql)?.query_row([kind], |row| row.get(0))?;
        let ago = clock::wall().saturating_sub(Duration::from_micros(u64::try_from(micros)?));
        Ok(clock::now() - ago)
    }
}

pub fn launch(place: &Place, troupe: &mut Troupe, name: &str, ttl: Duration) -> Outcome<()> {
    let (path, ttl) = (place.database(), ttl.as_millis().to_string());
    troupe.launch(name, &[path.to_str().ok_or("the path is not text")?, &ttl])
}
