//! ZooKeeper: planned hand-over, crash fail-over, what idle candidates say, and how long a leader that was frozen
//! or cut off still claims to lead. Beside it, on the same server, Curator's `LeaderLatch` and kazoo's `Election`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../peers/mod.rs"]
mod peers;
mod stage;

use std::process::ExitCode;
use std::time::Duration;

use common::cast::{Cast, Peer, Way};
use common::double::{Mishap, longest};
use common::process::Troupe;
use common::samples::{Samples, human, show};
use common::usage::{cpu, resident};
use common::{Bench, Outcome, candidate};
use peers::zookeeper::Kind;
use rustix::process::Signal;
use stage::{OnStage, Stage};
use tenure_core::Instant;
use tenure_testkit::monotonic;

const TTL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    common::run("zookeeper", measure, candidate::part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let stage = Stage::open()?;
    handover(bench, &stage, if bench.quick { 40 } else { 400 })?;
    failover(bench, &stage, if bench.quick { 5 } else { 60 })?;
    idle(bench, &stage, Duration::from_secs(if bench.quick { 20 } else { 60 }))?;
    double_claims(bench, &stage)
}

/// Those who are compared, on this stage.
fn peers(stage: &Stage) -> [OnStage<'_>; 3] {
    [Kind::Tenure, Kind::CURATOR, Kind::KAZOO].map(|kind| OnStage { kind, stage })
}

/// So many candidates of one of them, after those of a cast before this one have left their line.
fn open<'a>(peer: &'a OnStage<'a>, ttl: Duration, way: Way, candidates: usize) -> Outcome<Cast<'a>> {
    peer.settle(&Troupe::new(), ttl)?;
    let cast = Cast::open(peer, ttl, way, candidates)?;
    cast.settle()?;
    Ok(cast)
}

fn name(kind: Kind, figure: &str) -> String {
    match kind {
        Kind::Tenure => format!("ZooKeeper: {figure}"),
        Kind::Other(_) => format!("ZooKeeper, {}: {figure}", kind.name()),
    }
}

/// They take turns, so that whatever the machine does, it does to all.
fn handover(bench: &Bench, stage: &Stage, rounds: usize) -> Outcome<()> {
    /// Not counted: programs in Java are slow at first.
    const WARMING: usize = 20;
    let peers = peers(stage);
    let open = |peer| Outcome::Ok((open(peer, TTL, Way::Direct, 2)?, Samples::default()));
    let mut casts = peers.iter().map(open).collect::<Outcome<Vec<_>>>()?;
    let mut floor = Samples::default();
    for round in 0..WARMING + rounds {
        let took = stage.floor()?;
        if round >= WARMING {
            floor.push(took);
        }
        for (cast, samples) in &mut casts {
            cast.settle()?;
            let took = cast.troupe.hand_over(&mut cast.leader)?;
            if round >= WARMING {
                samples.push(took);
            }
        }
    }
    println!("\nhand-over, 2 processes each, resign");
    for (cast, samples) in &casts {
        show(&format!("{}: called → the successor leads", cast.peer.name()), samples);
    }
    show("floor: a delete, its watch, and a write", &floor);
    let half = casts[1].1.percentile(50) / 2;
    for (OnStage { kind, .. }, (_, samples)) in peers.iter().zip(&casts) {
        let figure = name(*kind, "hand-over, p50");
        let (p50, p99) = (samples.percentile(50), samples.percentile(99));
        match kind {
            Kind::Tenure => bench.judge(&format!("{figure} (half of Curator's)"), p50, half)?,
            Kind::Other(_) => bench.tell(&figure, &human(p50), "–")?,
        }
        bench.tell(&name(*kind, "hand-over, p99"), &human(p99), "–")?;
    }
    Ok(())
}

/// The server ends sessions once per tick, so that this one was over at the last tick before we were told. Counted
/// from its last sign of life, one that came close to a tick would be taken for over a whole tick too early.
fn expiry(told: Instant, tick: Duration) -> Instant {
    let told = Duration::from_nanos(told.as_nanos()).saturating_sub(monotonic::behind());
    let ticks = u32::try_from(told.as_nanos() / tick.as_nanos()).unwrap_or(u32::MAX);
    monotonic::instant(tick * ticks)
}

fn failover(bench: &Bench, stage: &Stage, rounds: usize) -> Outcome<()> {
    let peers = peers(stage);
    let open = |peer| {
        let cast = open(peer, SHORT, Way::Direct, 2)?;
        Outcome::Ok((cast, Samples::default(), Samples::default()))
    };
    let mut casts = peers.iter().map(open).collect::<Outcome<Vec<_>>>()?;
    for round in 0..rounds {
        for (OnStage { kind, .. }, (cast, beyond, whole)) in peers.iter().zip(&mut casts) {
            cast.settle()?;
            // Met at any instant between two signs of life.
            std::thread::sleep(SHORT / 21 * u32::try_from(round % 7)?);
            let session = stage.session(*kind, &cast.leader)?;
            let over = stage.departure(*kind, &cast.leader)?;
            // It says nothing more, and its connection can still be asked about.
            cast.troupe.signal(&cast.leader, Signal::STOP)?;
            let connections = stage.server.connections(0);
            let last = connections.iter().find(|one| one.session == session).ok_or("it is not connected")?;
            let former = cast.leader.clone();
            cast.troupe.kill(&former)?;
            let elected = cast.troupe.hear_word("leads")?;
            let at = elected.instant()?;
            beyond.push(at.since(expiry(stage.hear(over)?, stage.server.tick())));
            whole.push(at.since(last.heard + last.timeout));
            cast.leader = elected.by;
            cast.replace(&former)?;
            cast.settle()?;
        }
    }
    println!("\nfail-over, 2 processes each, session time-out {SHORT:?}, tick {:?}", stage.server.tick());
    for (OnStage { kind, .. }, (_, beyond, whole)) in peers.iter().zip(&casts) {
        show(&format!("{}: expired → the successor leads", kind.name()), beyond);
        show("  last sign of life + time-out → the same", whole);
        let figure = name(*kind, "fail-over beyond the session's expiry, p99");
        match kind {
            Kind::Tenure => bench.judge(&figure, beyond.percentile(99), stage.server.tick())?,
            Kind::Other(_) => bench.tell(&figure, &human(beyond.percentile(99)), "–")?,
        }
    }
    Ok(())
}

/// What one leader and two followers cost while nothing happens.
fn idle(bench: &Bench, stage: &Stage, time: Duration) -> Outcome<()> {
    println!("\nidle: one leader and two followers each, session time-out {TTL:?}");
    for peer in &peers(stage) {
        let (kind, mut cast) = (peer.kind, open(peer, TTL, Way::Direct, 3)?);
        std::thread::sleep(TTL);
        let pids = cast.pids()?;
        let used = |pids: &[u32]| pids.iter().map(|pid| cpu(*pid)).sum::<Outcome<Duration>>();
        let (packets, busy) = (stage.packets(), used(&pids)?);
        std::thread::sleep(time);
        let (packets, busy) = (stage.packets() - packets, used(&pids)?.saturating_sub(busy));
        let memory: u64 = pids.iter().map(|pid| resident(*pid)).sum::<Outcome<u64>>()?;
        let rate = packets as f64 / time.as_secs_f64();
        let share = busy.as_secs_f64() / time.as_secs_f64() * 100.0;
        bench.tell(&name(kind, "idle, packets per second, three together"), &format!("{rate:.2}"), "–")?;
        bench.tell(
            &name(kind, "idle, three together"),
            &format!("{share:.3} % of a core, {:.1} MiB", memory as f64 / 1024.0),
            "–",
        )?;
    }
    Ok(())
}

/// How long two claim to lead, with a session that lives as long as the shortest of etcd.
fn double_claims(bench: &Bench, stage: &Stage) -> Outcome<()> {
    const TTL: Duration = Duration::from_secs(2);
    let (rounds, patience) = if bench.quick { (2, 5) } else { (20, 20) };
    for (mishap, what) in
        [(Mishap::Freeze, "after a freeze longer than its session"), (Mishap::Cut, "after a silent cut")]
    {
        println!("\ndouble claim {what}, session time-out {TTL:?}");
        for peer in &peers(stage) {
            let way = if mishap == Mishap::Cut { Way::Proxies } else { Way::Direct };
            let mut cast = open(peer, TTL, way, 2)?;
            let longest = longest(&mut cast, mishap, rounds, Duration::from_secs(patience))?;
            let figure = name(peer.kind, &format!("double claim {what}, longest"));
            match peer.kind {
                Kind::Tenure => {
                    let verdict = if longest.is_none() { "met" } else { "MISSED" };
                    bench.conclude(&figure, &longest.to_string(), "0 ms", verdict)?;
                }
                Kind::Other(_) => bench.tell(&figure, &longest.to_string(), "–")?,
            }
        }
    }
    Ok(())
}
