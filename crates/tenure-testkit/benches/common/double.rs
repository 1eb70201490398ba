//! How long two claim to lead: one that was frozen for longer than its session, or cut off without a word, and its
//! successor.

use std::fmt;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::Instant;
use tenure_store::clock;
use tenure_testkit::freeze;

use super::Outcome;
use super::cast::Cast;
use super::samples::human;

/// What befalls a leader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// Its process is stopped until another leads.
    Freeze,
    /// Its packets are lost from now on.
    Cut,
}

/// How long two claimed to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Double {
    /// Nobody took over in this time, so there was one.
    Alone(Duration),
    For(Duration),
    /// At least so long: nobody waited for the end of it.
    Beyond(Duration),
}

impl Double {
    pub fn is_none(self) -> bool {
        matches!(self, Self::Alone(_) | Self::For(Duration::ZERO))
    }
}

impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(time) => write!(f, "0 ms; nobody took over in {}", human(*time)),
            Self::For(Duration::ZERO) => f.write_str("0 ms"),
            Self::For(time) => f.write_str(&human(*time)),
            Self::Beyond(time) => write!(f, "> {}", human(*time)),
        }
    }
}

/// The longest of so many rounds. A kind for whom there is no end to it once, or no successor, is not asked again.
pub fn longest(cast: &mut Cast<'_>, mishap: Mishap, rounds: usize, patience: Duration) -> Outcome<Double> {
    let mut longest = Double::For(Duration::ZERO);
    for _ in 0..rounds {
        cast.settle()?;
        let both = double(cast, mishap, patience)?;
        longest = longest.max(both);
        if !matches!(both, Double::For(_)) {
            return Ok(both);
        }
    }
    Ok(longest)
}

fn double(cast: &mut Cast<'_>, mishap: Mishap, patience: Duration) -> Outcome<Double> {
    cast.catch_up();
    let former = cast.leader.clone();
    cast.troupe.order(&former, "watch")?;
    cast.troupe.hear_word("watches")?;
    match mishap {
        Mishap::Freeze => freeze(cast.troupe.pid(&former)?),
        Mishap::Cut => _ = cast.cut_off_leader()?,
    }
    let mut ceased = None;
    let Some(elected) = successor(cast, &former, patience, &mut ceased)? else {
        cast.replace(&former)?;
        cast.elected()?;
        return Ok(Double::Alone(patience));
    };
    let mut both = elected.1;
    cast.leader = elected.0;
    // Of two that claim, either may cease.
    cast.troupe.order(&cast.leader, "watch")?;
    if mishap == Mishap::Freeze {
        // A process that stands still claims nothing.
        both = both.max(clock::now());
        cast.troupe.signal(&former, Signal::CONT)?;
    }
    if ceased.is_none() {
        ceased = match cast.troupe.hear_within(patience, "ceased")? {
            Some(said) => Some(said.instant()?),
            None => None,
        };
    }
    cast.replace(&former)?;
    Ok(ceased.map_or(Double::Beyond(patience), |ceased| Double::For(ceased.since(both))))
}

/// The next to lead, and since when; on the way, when the former one ceased to.
fn successor(
    cast: &Cast<'_>,
    former: &str,
    patience: Duration,
    ceased: &mut Option<Instant>,
) -> Outcome<Option<(String, Instant)>> {
    let end = clock::now() + patience;
    while let Some(said) = cast.troupe.hear_until(end)? {
        match said.word.as_str() {
            "leads" if said.by != former => return Ok(Some((said.by.clone(), said.instant()?))),
            "ceased" => *ceased = Some(said.instant()?),
            _ => {}
        }
    }
    Ok(None)
}
