//! What is done to the crew.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_core::Dice;
use tenure_store::clock;

use crate::Outcome;
use crate::crew::{Crew, Member, TTL};

/// How often what was done.
#[derive(Default)]
pub struct Tally(BTreeMap<&'static str, u32>);

impl Tally {
    pub fn total(&self) -> u32 {
        self.0.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (deed, count) in &self.0 {
            writeln!(f, "{count:>6}  {deed}")?;
        }
        Ok(())
    }
}

/// Does one thing to one of them.
pub fn one(crew: &mut Crew, dice: &mut Dice, sabotage: bool, done: &mut Tally) -> Outcome<()> {
    let number = usize::try_from(dice.below(crew.members.len() as u64))?;
    let deed = dice.below(10);
    let lasts = Duration::from_millis(dice.below(u64::try_from(TTL.as_millis())? * 5 / 2));
    if deed == 9 {
        crew.ask_to_resign()?;
        *done.0.entry("asked the leader to resign").or_default() += 1;
        return Ok(());
    }
    let member = &mut crew.members[number];
    if member.stopped.is_some() {
        return Ok(());
    }
    let (name, who, signal): (_, fn(&Member) -> Option<Pid>, _) = match deed {
        0 => ("killed the program", Member::program, Signal::KILL),
        1 => ("killed the supervisor", Member::supervisor, Signal::KILL),
        2 => ("killed the guardian", Member::guardian, Signal::KILL),
        3 => ("stopped the supervisor", Member::supervisor, Signal::STOP),
        4 => ("stopped the guardian", Member::guardian, Signal::STOP),
        5 => ("stopped the program", Member::program, Signal::STOP),
        6 => ("told the supervisor to end", Member::supervisor, Signal::TERM),
        7 => ("sent a signal for the program", Member::supervisor, Signal::USR1),
        _ => ("killed a descendant", Member::descendant, Signal::KILL),
    };
    let Some(pid) = who(member) else { return Ok(()) };
    let mut hit = vec![pid];
    if sabotage && deed == 3 {
        hit.splice(0..0, member.guardian());
    }
    if hit.iter().any(|pid| kill_process(*pid, signal).is_err()) {
        return Ok(()); // it has just ended by itself
    }
    if signal == Signal::STOP {
        let lasts = if hit.len() > 1 { TTL * 2 } else { lasts };
        member.stopped = Some((hit, clock::now() + lasts));
    }
    if matches!(deed, 1 | 6) {
        member.rest_for(lasts / 2);
    }
    *done.0.entry(name).or_default() += 1;
    Ok(())
}
