//! `Leadership::check` against a bare reading of the boot clock, which it cannot do without.

mod common;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use common::samples::{Samples, show};
use common::{Bench, Outcome};
use tenure::{Leadership, Node};
use tenure_store::clock;

const TARGET: Duration = Duration::from_nanos(50);
/// Calls per sample: enough to hide the two readings of the clock around them.
const CALLS: u32 = 10_000;

static LEADERSHIP: OnceLock<Leadership> = OnceLock::new();

fn main() -> ExitCode {
    common::run("check", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    let leadership = tokio::runtime::Builder::new_current_thread().build()?.block_on(elected())?;
    let _ = LEADERSHIP.set(leadership.clone());
    let seconds = if bench.quick { 1 } else { 3 };
    divan::Divan::default().max_time(Duration::from_secs(seconds)).run_benches();
    println!();

    // The verdict comes from rounds in which both are measured next to each other: on a busy
    // machine the one may be measured in a good second, and the other in a bad one.
    let (mut checks, mut readings) = (Samples::default(), Samples::default());
    for _ in 0..if bench.quick { 200 } else { 2_000 } {
        readings.push(one_of_many(|| _ = black_box(clock::now())));
        checks.push(one_of_many(|| _ = black_box(leadership.check())));
    }
    if leadership.check().is_err() {
        return Err("leadership was lost, so what was measured is a refusal".into());
    }
    show("check()", &checks);
    show("floor: one reading of the boot clock", &readings);
    bench.judge("check(), median", checks.percentile(50), TARGET)
}

/// Holds the election for longer than the bench takes.
async fn elected() -> Outcome<Leadership> {
    let store = tenure::connect("memory:").await?;
    let node = Node::builder("bench").ttl(Duration::from_secs(10)).start(store).await?;
    Ok(node.election("bench")?.elected().await?)
}

fn one_of_many(act: impl Fn()) -> Duration {
    let before = clock::now();
    for _ in 0..CALLS {
        act();
    }
    clock::now().since(before) / CALLS
}

/// By one thread, and by two at once: guards share one word of memory, and only read it.
#[divan::bench(threads = [1, 2], sample_size = 10_000)]
fn check(bencher: divan::Bencher<'_, '_>) {
    if let Some(leadership) = LEADERSHIP.get() {
        bencher.bench(|| leadership.check());
    }
}

#[divan::bench(threads = [1, 2], sample_size = 10_000)]
fn boot_clock() -> tenure_core::Instant {
    clock::now()
}
