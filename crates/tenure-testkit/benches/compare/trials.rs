//! What is done to all of them.

use std::time::Duration;

use crate::common::Outcome;
use crate::common::cast::{Cast, Network, Way};
use crate::common::double::{Mishap, longest};
use crate::common::usage::{cpu, proportional};
use crate::figures::{Figures, Idle, size};
use crate::rows::Row;
use crate::{Extent, TTL};

/// Not counted: programs in Java are slow at first.
const WARMING: usize = 10;
const CANDIDATES: usize = 3;
/// Between two that take turns.
const BREATH: Duration = Duration::from_millis(25);
/// Between the first mishaps of two that meet with them at a time.
const STAGGER: Duration = Duration::from_millis(130);

pub fn measure(rows: &[Row<'_>], extent: &Extent) -> Outcome<Vec<Figures>> {
    let mut figures: Vec<Figures> = rows.iter().map(|_| Figures::default()).collect();
    hand_over(rows, &mut figures, extent)?;
    println!("\nidle, then crashes, pauses and cuts: {CANDIDATES} candidates of each, all rows at a time");
    let mut casts = open(rows, Way::Proxies)?;
    idle(rows, &mut casts, &mut figures, extent.idle)?;
    std::thread::scope(|scope| {
        let mishaps: Vec<_> = (0..)
            .zip(casts.iter_mut().zip(&mut figures))
            .map(|(number, (cast, figures))| {
                scope.spawn(move || {
                    std::thread::sleep(STAGGER * number);
                    mishaps(cast, figures, extent);
                })
            })
            .collect();
        for mishap in mishaps {
            mishap.join().map_err(|_| "a row panicked")?;
        }
        Outcome::Ok(())
    })?;
    Ok(figures)
}

/// All of them start at a time.
fn open<'a>(rows: &'a [Row<'a>], way: Way) -> Outcome<Vec<Cast<'a>>> {
    let casts = rows.iter().map(|row| Cast::start(row.peer.as_ref(), TTL, way, CANDIDATES));
    let mut casts = casts.collect::<Outcome<Vec<_>>>()?;
    for cast in &mut casts {
        cast.elected()?;
    }
    // Until the last of them stands: many programs start at once.
    std::thread::sleep(TTL * 3);
    Ok(casts)
}

/// They take turns, so that whatever the machine does, it does to all.
fn hand_over(rows: &[Row<'_>], figures: &mut [Figures], extent: &Extent) -> Outcome<()> {
    println!("\nhand-over: {CANDIDATES} candidates of each, in turns");
    let mut casts = open(rows, Way::Direct)?;
    for round in 0..WARMING + extent.handovers {
        for ((row, cast), figures) in rows.iter().zip(&mut casts).zip(figures.iter_mut()) {
            if !row.resigns || !figures.failed.is_empty() {
                continue;
            }
            std::thread::sleep(BREATH);
            cast.catch_up();
            let took = cast.troupe.hand_over(&mut cast.leader);
            let took = figures.unless_failed(&format!("hand-over {round}"), took);
            if let Some(took) = took.filter(|_| round >= WARMING) {
                figures.handover.get_or_insert_default().push(took);
            }
        }
    }
    Ok(())
}

fn idle(rows: &[Row<'_>], casts: &mut [Cast<'_>], figures: &mut [Figures], time: Duration) -> Outcome<()> {
    let used = |pids: &[u32]| pids.iter().map(|pid| cpu(*pid)).sum::<Outcome<Duration>>();
    let look = |cast: &mut Cast<'_>| Outcome::Ok((cast.messages(), used(&cast.pids()?)?));
    let before = casts.iter_mut().map(look).collect::<Outcome<Vec<_>>>()?;
    std::thread::sleep(time);
    let after = casts.iter_mut().map(look).collect::<Outcome<Vec<_>>>()?;
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        let messages =
            before.0.zip(after.0).map(|(before, after)| (after - before) as f64 / time.as_secs_f64());
        let busy = after.1.saturating_sub(before.1);
        // Together: what they share is in memory once.
        let memory: u64 = casts[number].pids()?.iter().map(|pid| proportional(*pid)).sum::<Outcome<u64>>()?;
        figures[number].idle = Idle {
            messages,
            cpu_percent: busy.as_secs_f64() / time.as_secs_f64() * 100.0,
            memory_mib: memory as f64 / 1024.0,
            program_mib: rows[number].program.as_deref().map(size).transpose()?,
        };
    }
    Ok(())
}

/// Of a row in which one trial fails, the rest is not measured: its candidates are not as they should be.
fn mishaps(cast: &mut Cast<'_>, figures: &mut Figures, extent: &Extent) {
    for round in 0..extent.crashes {
        let took = cast.crash(round);
        let Some(took) = figures.unless_failed(&format!("crash {round}"), took) else { return };
        figures.crash.get_or_insert_default().push(took);
    }
    let pause = longest(cast, Mishap::Freeze, extent.mishaps, extent.patience);
    figures.pause = figures.unless_failed("pause", pause);
    if figures.pause.is_some() && !matches!(cast.peer.network(), Network::None) {
        let cut = longest(cast, Mishap::Cut, extent.mishaps, extent.patience);
        figures.cut = figures.unless_failed("silent cut", cut);
    }
}
