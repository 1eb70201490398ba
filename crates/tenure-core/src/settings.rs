//! A node's settings, and the inequalities that they must keep.

use std::time::Duration;

use crate::time::Drift;

/// The shortest life of a session: below it, a busy machine's scheduling alone would depose leaders.
pub const MIN_TTL: Duration = Duration::from_millis(50);
/// The longest life of a session: what a crash may cost.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How a node keeps its session and stands for elections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long the session lives without renewal: what a crash costs at most.
    pub ttl: Duration,
    /// How often the session is renewed.
    pub renew_every: Duration,
    /// How often a candidate looks where the store cannot push news.
    pub poll_every: Duration,
    /// How long a candidate waits after a leader's loss, against flapping.
    pub takeover_delay: Duration,
    /// How long before its lease could be granted to another a leader is told to stop.
    pub stop_margin: Duration,
    /// By how much clock rates may differ.
    pub drift: Drift,
    /// Whether this node may lead at all.
    pub eligible: bool,
    /// Higher stands first.
    pub priority: i32,
}

/// Settings that cannot work, with the inequality that fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{inequality} does not hold: {left} is not {relation} {right}; {advice}")]
pub struct SettingsError {
    inequality: &'static str,
    relation: &'static str,
    left: String,
    right: String,
    advice: &'static str,
}

impl SettingsError {
    /// The inequality by the names of the settings, such as `ttl ≥ 50ms`.
    #[must_use]
    pub const fn inequality(&self) -> &'static str {
        self.inequality
    }
}

/// Refuses `left` above `right`.
pub(crate) fn at_most(
    inequality: &'static str,
    left: Duration,
    right: Duration,
    advice: &'static str,
) -> Result<(), SettingsError> {
    if left <= right {
        return Ok(());
    }
    let (left, right) = (format!("{left:?}"), format!("{right:?}"));
    Err(SettingsError { inequality, relation: "at most", left, right, advice })
}

impl Settings {
    /// The defaults for this ttl.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            renew_every: ttl / 3,
            poll_every: ttl / 6,
            takeover_delay: Duration::ZERO,
            stop_margin: ttl / 20,
            drift: Drift::DEFAULT,
            eligible: true,
            priority: 0,
        }
    }

    /// How long a leader may act on one renewal, on its own clock: `ttl·(1−ρ)/(1+ρ) − stop_margin`.
    #[must_use]
    pub fn lease(&self, ttl: Duration) -> Duration {
        self.drift.slow(ttl).saturating_sub(self.stop_margin)
    }

    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// The first inequality that fails, by name and number.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.validate_for(self.ttl)
    }

    /// The same, for the ttl that a store granted instead of the one asked for.
    ///
    /// # Errors
    /// The first inequality that fails, by name and number.
    pub fn validate_for(&self, ttl: Duration) -> Result<(), SettingsError> {
        at_most("50ms ≤ ttl", MIN_TTL, ttl, "raise ttl (10s is the default)")?;
        at_most("ttl ≤ 24h", ttl, MAX_TTL, "lower ttl: it is what a crash may cost (10s is the default)")?;
        at_most("1ms ≤ renew_every", Duration::from_millis(1), self.renew_every, "raise renew_every")?;
        at_most("1ms ≤ poll_every", Duration::from_millis(1), self.poll_every, "raise poll_every")?;
        at_most("poll_every ≤ ttl", self.poll_every, ttl, "lower poll_every (ttl/6 is the default)")?;
        at_most(
            "stop_margin ≤ ttl·(1−ρ)/(1+ρ) / 2",
            self.stop_margin,
            self.drift.slow(ttl) / 2,
            "lower stop_margin or raise ttl",
        )?;
        at_most(
            "renew_every + ttl/6 ≤ ttl·(1−ρ)/(1+ρ) − stop_margin",
            self.renew_every + ttl / 6,
            self.lease(ttl),
            "lower renew_every (ttl/3 is the default), so that three attempts fit before the deadline",
        )?;
        at_most("takeover_delay ≤ 24h", self.takeover_delay, MAX_TTL, "lower takeover_delay")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.validate().unwrap_err().to_string()
    }

    #[test]
    fn defaults_work_for_every_ttl_in_range() {
        for ttl in [MIN_TTL, Duration::from_secs(1), Duration::from_secs(10), MAX_TTL] {
            Settings::new(ttl).validate().unwrap();
        }
    }

    #[test]
    fn impossible_settings_are_refused_with_the_inequality_that_fails() {
        assert!(refusal(|s| *s = Settings::new(Duration::ZERO)).starts_with("50ms ≤ ttl does not hold"));
        let year = Duration::from_secs(365 * 24 * 3600);
        assert!(refusal(|s| *s = Settings::new(year)).contains("ttl ≤ 24h does not hold: 31536000s"));
        assert!(
            refusal(|s| s.renew_every = Duration::from_secs(11)).contains("lower renew_every (ttl/3"),
            "a renewal interval above the ttl"
        );
        assert!(refusal(|s| s.renew_every = Duration::ZERO).contains("1ms ≤ renew_every"));
        assert!(refusal(|s| s.stop_margin = Duration::from_secs(5)).contains("stop_margin ≤"));
        assert!(refusal(|s| s.poll_every = Duration::from_secs(60)).contains("poll_every ≤ ttl"));
        assert!(refusal(|s| s.poll_every = Duration::ZERO).contains("1ms ≤ poll_every"));
        assert!(refusal(|s| s.takeover_delay = year).contains("takeover_delay ≤ 24h"));
    }
}
