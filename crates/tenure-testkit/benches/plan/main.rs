//! The plan of partitions: how long it takes, how many move, and how evenly full the members are, beside
//! consistent hashing and Kafka's sticky rule.

#[path = "../common/mod.rs"]
mod common;
mod rivals;

use std::process::ExitCode;
use std::time::Duration;

use common::samples::{Samples, human, show};
use common::{Bench, Outcome};
use rivals::{hashed, sticky};
use tenure_core::partitions::{Assignment, Member, TaskList, plan};
use tenure_store::clock;

fn main() -> ExitCode {
    common::run("plan", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    for (partitions, target) in
        [(100_000, Duration::from_millis(10)), (1_000_000, Duration::from_millis(150))]
    {
        after_a_death(bench, partitions, target)?;
    }
    other_events(bench)?;
    beside_others(bench)
}

/// A thousand task lists over a thousand members.
fn cluster(partitions: u32, members: usize) -> (Vec<TaskList>, Vec<Member>) {
    (vec![TaskList::new(partitions / 1000); 1000], vec![Member::default(); members])
}

fn vacant(lists: &[TaskList]) -> Assignment {
    Assignment::vacant(lists.iter().map(|list| list.partitions))
}

/// One member dies; the figures that have a target.
fn after_a_death(bench: &Bench, partitions: u32, target: Duration) -> Outcome<()> {
    let (lists, mut members) = cluster(partitions, 1000);
    let before = plan(&lists, &members, &vacant(&lists)).next;
    let dead = 417;
    members[dead as usize] = Member { capacity: 0, ..Member::default() };
    let orphans = before.iter().filter(|(_, owner)| *owner == Some(dead)).count();
    let mut samples = Samples::default();
    let mut moves = 0;
    for _ in 0..if bench.quick { 5 } else { 51 } {
        let began = clock::now();
        let outcome = plan(&lists, &members, &before);
        samples.push(clock::now().since(began));
        moves = outcome.moves.len();
    }
    show(&format!("{partitions} partitions, 1000 members, one dies"), &samples);
    bench.judge(
        &format!("replan {partitions} partitions after a death, median"),
        samples.percentile(50),
        target,
    )?;
    let verdict = if moves == orphans { "met" } else { "MISSED" };
    bench.conclude(
        &format!("moves of it, {partitions} partitions"),
        &moves.to_string(),
        &format!("= {orphans}"),
        verdict,
    )
}

/// Figures without a target.
fn other_events(bench: &Bench) -> Outcome<()> {
    println!();
    let partitions = if bench.quick { 100_000 } else { 1_000_000 };
    let (lists, members) = cluster(partitions, 1000);
    let full = timed(bench, &format!("{partitions}: first plan"), &lists, &members, &vacant(&lists))?;
    timed(bench, &format!("{partitions}: nothing to do"), &lists, &members, &full)?;
    let half = plan(&lists, &members[..500], &vacant(&lists)).next;
    timed(bench, &format!("{partitions}: from 500 to 1,000 members"), &lists, &members, &half)?;
    timed(bench, &format!("{partitions}: from 1,000 to 500 members"), &lists, &members[..500], &full)?;
    let (lists, members) = constrained(100_000);
    let full = timed(bench, "100000 with labels and zones: first plan", &lists, &members, &vacant(&lists))?;
    let mut fewer = members.clone();
    fewer[417] = Member { capacity: 0, ..Member::default() };
    timed(bench, "100000 with labels and zones: one dies", &lists, &fewer, &full).map(drop)
}

/// Three zones, a tenth of the members with a label, a tenth of the task lists that need it, a quarter spread
/// over zones, two capacities.
fn constrained(partitions: u32) -> (Vec<TaskList>, Vec<Member>) {
    let (mut lists, mut members) = cluster(partitions, 1000);
    for (index, list) in lists.iter_mut().enumerate() {
        list.spread = index % 4 == 0;
        if index % 10 == 1 {
            list.needs = [1].into_iter().collect();
        }
    }
    for (index, member) in members.iter_mut().enumerate() {
        member.zone = u16::try_from(index % 3).unwrap_or(0);
        member.capacity = 1 + u32::from(index % 5 == 0);
        if index % 10 == 3 {
            member.labels = [1].into_iter().collect();
        }
    }
    (lists, members)
}

fn timed(
    bench: &Bench,
    what: &str,
    lists: &[TaskList],
    members: &[Member],
    before: &Assignment,
) -> Outcome<Assignment> {
    let began = clock::now();
    let outcome = plan(lists, members, before);
    let took = clock::now().since(began);
    bench.tell(what, &human(took), &format!("{} moves", outcome.moves.len()))?;
    Ok(outcome.next)
}

// ----- beside others --------------------------------------------------------------------------

/// A rule that assigns.
type Rule = fn(&[TaskList], &[Member], &Assignment) -> Assignment;

const RULES: [(&str, Rule); 3] = [
    ("Tenure", |lists, members, before| plan(lists, members, before).next),
    ("Kafka's sticky rule", sticky),
    ("consistent hashing, 100 points", hashed),
];

fn beside_others(bench: &Bench) -> Outcome<()> {
    println!("\nmoves and unevenness (the fullest member, in relation to a perfectly even one)");
    let (lists, members) = cluster(100_000, 100);
    let small = vec![TaskList::new(1); 250];
    let mut uneven = lists.clone();
    for (index, list) in uneven.iter_mut().enumerate() {
        list.weight = [1, 1, 1, 2, 4, 8, 16, 32][index % 8];
        list.partitions = 10;
    }
    let mut mixed = members.clone();
    for member in mixed.iter_mut().step_by(4) {
        member.capacity = 3;
    }
    for (name, lists, members) in [
        ("100,000 equal partitions, 100 members", &lists, &members),
        ("250 task lists of one partition, 100 members", &small, &members),
        ("weights 1 to 32, capacities 1 and 3", &uneven, &mixed),
    ] {
        println!("\n{name}");
        for (rule, assign) in RULES {
            let figures = compare(lists, members, assign);
            bench.tell(&format!("{rule}: {name}"), &figures.0, &figures.1)?;
        }
    }
    Ok(())
}

/// A member dies, and comes back; then all restart, one after the other.
fn compare(lists: &[TaskList], members: &[Member], assign: Rule) -> (String, String) {
    let first = assign(lists, members, &vacant(lists));
    let mut fewer = members.to_vec();
    fewer[42].capacity = 0;
    let left = assign(lists, &fewer, &first);
    let back = assign(lists, members, &left);
    let orphans = first.iter().filter(|(_, owner)| *owner == Some(42)).count();
    let (died, returned) = (moved(&first, &left), moved(&left, &back));
    let mut rolling = 0;
    let mut now = first.clone();
    for restarts in 0..members.len() {
        let mut fewer = members.to_vec();
        fewer[restarts].capacity = 0;
        let without = assign(lists, &fewer, &now);
        let with = assign(lists, members, &without);
        rolling += moved(&now, &without) + moved(&without, &with);
        now = with;
    }
    let uneven = unevenness(lists, members, &first).max(unevenness(lists, members, &now));
    (
        format!("{uneven:.3}"),
        format!("death {died} ({orphans} orphans), return {returned}, all restart without grace {rolling}"),
    )
}

fn moved(before: &Assignment, after: &Assignment) -> usize {
    before.iter().zip(after.iter()).filter(|(a, b)| a.1 != b.1).count()
}

fn unevenness(lists: &[TaskList], members: &[Member], assignment: &Assignment) -> f64 {
    let mut loads = vec![0u64; members.len()];
    for (partition, owner) in assignment.iter() {
        if let Some(owner) = owner {
            loads[owner as usize] += u64::from(lists[partition.list as usize].weight);
        }
    }
    let capacity: u64 = members.iter().map(|member| u64::from(member.capacity)).sum();
    let even = loads.iter().sum::<u64>() as f64 / capacity as f64;
    let fullest = loads.iter().zip(members).map(|(load, m)| *load as f64 / f64::from(m.capacity));
    fullest.fold(0.0, f64::max) / even
}
