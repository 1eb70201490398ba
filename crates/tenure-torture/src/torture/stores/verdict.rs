//! The verdict: what was left behind, judged by the checker, and told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure::EventKind;
use tenure_store::EventRecord;
use tenure_testkit::checker::{
    Gap, Leadership, LeadershipViolation, Write, check_leaderships, check_writes, gaps,
};
use tenure_torture::evidence;

use super::crew::Crew;

/// So much before and after a violation is told.
const AROUND: Duration = Duration::from_secs(12);
/// Of so many violations it is told what happened around them. The others look alike as a rule.
const TOLD: usize = 5;

/// What was promised and not kept.
pub struct Broken {
    /// When, if it has an instant.
    pub at: Option<u64>,
    /// In which election, or of which partition.
    pub of: Option<String>,
    pub what: String,
}

impl From<String> for Broken {
    fn from(what: String) -> Self {
        Self { at: None, of: None, what }
    }
}

pub struct Verdict {
    election: &'static str,
    /// Everything that passed a check, of elections and of partitions.
    held: Vec<Leadership>,
    writes: Vec<Write>,
    pub broken: Vec<Broken>,
}

impl Verdict {
    /// Everybody has ended.
    pub fn over(crew: &Crew, history: &[EventRecord]) -> Self {
        let election = crew.cast.election;
        let held = evidence::leaderships(&crew.logs());
        let writes = evidence::asked_of_register(&crew.register());
        let mut broken: Vec<Broken> = check_leaderships(&held).iter().map(told_violation).collect();
        broken.extend(check_writes(&writes).iter().map(|stale| format!("{stale:?}").into()));
        for event in crew.journal.all() {
            if matches!(event.kind.as_str(), "revived" | "gibberish") {
                broken.push(format!("a check that had failed passed again: {}", event.value).into());
            }
        }
        let mut verdict = Self { election, held, writes, broken };
        let lost = verdict.lost_events(history);
        verdict.broken.extend(lost.into_iter().map(Broken::from));
        verdict.judged_something()
    }

    /// Nothing can be wrong where nothing happened.
    fn judged_something(mut self) -> Self {
        if self.led().count() < 2 || self.owned().next().is_none() || self.writes.is_empty() {
            self.broken.push(String::from("too little happened for a verdict").into());
        }
        self
    }

    fn led(&self) -> impl Iterator<Item = &Leadership> {
        self.held.iter().filter(|held| held.election == self.election)
    }

    fn owned(&self) -> impl Iterator<Item = &Leadership> {
        self.held.iter().filter(|held| held.election.contains('/'))
    }

    /// The history has no gap, and everybody who led is in it. Its oldest lines may have been dropped.
    fn lost_events(&self, history: &[EventRecord]) -> Vec<String> {
        let is_ours =
            |event: &&EventRecord| event.election.as_ref().is_some_and(|name| name.as_str() == self.election);
        let history: Vec<&EventRecord> = history.iter().filter(is_ours).collect();
        let mut lost = Vec::new();
        for pair in history.windows(2) {
            if pair[1].sequence != pair[0].sequence + 1 {
                lost.push(format!("lost event: after {:?} comes {:?}", pair[0], pair[1]));
            }
        }
        let elected = history.iter().filter(|event| event.kind == EventKind::LeaderElected);
        let granted: BTreeMap<u64, String> = elected
            .filter_map(|event| Some((event.term.number(), event.node.as_ref()?.to_string())))
            .collect();
        let oldest = granted.first_key_value().map_or(u64::MAX, |(&term, _)| term);
        for led in self.led().filter(|led| led.term >= oldest && granted.get(&led.term) != Some(&led.node)) {
            let Leadership { node, term, .. } = led;
            lost.push(format!("lost event: nobody wrote down that {node} was elected for term {term}"));
        }
        lost
    }

    /// For people. `story` is what was done; what was done while nobody led for longer than `usual` is told, too.
    pub fn tell(&self, story: &[(u64, String)], usual: Duration) {
        let led: Vec<Leadership> = self.led().cloned().collect();
        let gaps = gaps(&led);
        let changes = gaps.iter().filter(|gap| gap.before.node != gap.after.node).count();
        let longest = gaps.iter().max_by_key(|gap| gap.length);
        let refused = self.writes.iter().filter(|write| !write.accepted).count();
        let count = |what: &str| self.broken.iter().filter(|broken| broken.what.starts_with(what)).count();
        let terms: BTreeSet<u64> = led.iter().map(|led| led.term).collect();
        println!("elections        {}", terms.len());
        println!("leader changes   {changes}");
        println!("longest gap      {}", longest.map_or_else(|| String::from("none"), told_gap));
        if let Some(gap) = longest.filter(|gap| gap.length > usual) {
            let (from, until) = (gap.before.until, gap.after.from);
            tell_lines(story.iter().filter(|(at, _)| (from..=until).contains(at)), from);
        }
        println!("overlap          {}", count("overlap"));
        println!("partitions       {} times owned", self.owned().count());
        println!("writes           {} accepted, {refused} refused", self.writes.len() - refused);
        println!("lost events      {}", count("lost event"));
    }

    /// What was broken, and what happened around it.
    pub fn accuse(&self, story: &[(u64, String)]) {
        for (number, broken) in self.broken.iter().enumerate() {
            println!("\nVIOLATION {}", broken.what);
            if let Some(at) = broken.at.filter(|_| number < TOLD) {
                self.timeline(at, broken.of.as_deref(), story);
            }
        }
    }

    /// What happened around a violation, line by line.
    fn timeline(&self, around: u64, of: Option<&str>, story: &[(u64, String)]) {
        let width = u64::try_from(AROUND.as_nanos()).unwrap_or(u64::MAX);
        let (from, until) = (around.saturating_sub(width), around.saturating_add(width));
        let mut lines: Vec<(u64, String)> = story.to_vec();
        for held in self.held.iter().filter(|held| of.is_none_or(|of| of == held.election)) {
            let Leadership { election, node, pid, term, .. } = held;
            lines.push((held.from, format!("{election} term {term}: {node} ({pid}) passes its check")));
            lines.push((held.until, format!("{election} term {term}: {node} ({pid}) passes it no more")));
        }
        lines.retain(|(at, _)| (from..=until).contains(at));
        lines.sort();
        tell_lines(&lines, from);
    }
}

/// With the milliseconds since `from`.
fn tell_lines<'a>(lines: impl IntoIterator<Item = &'a (u64, String)>, from: u64) {
    for (at, line) in lines {
        let since = Duration::from_nanos(at.saturating_sub(from));
        println!("  {:>12.3} ms  {line}", since.as_secs_f64() * 1e3);
    }
}

fn told_gap(gap: &Gap) -> String {
    let Gap { before, after, length } = gap;
    format!("{} ms, from {} to {}", length.as_millis(), before.node, after.node)
}

fn told_violation(violation: &LeadershipViolation) -> Broken {
    let one = |held: &Leadership| format!("{} of {} ({})", held.term, held.node, held.pid);
    let (later, what) = match violation {
        LeadershipViolation::Overlap { first, second } => {
            let both = first.until.min(second.until).saturating_sub(second.from);
            let (first_term, second_term, both) = (one(first), one(second), Duration::from_nanos(both));
            let what =
                format!("overlap of {both:?} in {}: terms {first_term} and {second_term}", first.election);
            (second, what)
        }
        LeadershipViolation::DuplicateTerm { first, second } => {
            let both = format!("{} and {}", one(first), one(second));
            (second, format!("a term granted twice in {}: {both}", first.election))
        }
        LeadershipViolation::FallingTerm { before, after } => {
            (after, format!("a falling term in {}: {} after {}", before.election, one(after), one(before)))
        }
        LeadershipViolation::Backwards(one) => (one, format!("a log that cannot be trusted: {one:?}")),
    };
    Broken { at: Some(later.from), of: Some(later.election.clone()), what }
}
