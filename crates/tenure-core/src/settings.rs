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

/// A setting that cannot work, with its limit and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` is {value}, but must be {relation} {limit}{because}; {advice}")]
pub struct SettingsError {
    setting: &'static str,
    value: String,
    relation: &'static str,
    limit: String,
    because: &'static str,
    advice: &'static str,
}

impl SettingsError {
    /// The name of the setting, such as `renew_every`.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        self.setting
    }
}

/// Refuses a value of a setting above the limit.
pub(crate) fn at_most(
    setting: &'static str,
    value: Duration,
    limit: Duration,
    because: &'static str,
    advice: &'static str,
) -> Result<(), SettingsError> {
    let (told, most) = (written(value), written(rounded_down(limit)));
    let error = SettingsError { setting, value: told, relation: "at most", limit: most, because, advice };
    if value <= limit { Ok(()) } else { Err(error) }
}

/// Refuses a value of a setting below the limit.
fn at_least(
    setting: &'static str,
    value: Duration,
    limit: Duration,
    advice: &'static str,
) -> Result<(), SettingsError> {
    let (told, least) = (written(value), written(limit));
    let error =
        SettingsError { setting, value: told, relation: "at least", limit: least, because: "", advice };
    if value >= limit { Ok(()) } else { Err(error) }
}

/// A duration as people write it in settings: `250ms`, `6s`, `48h`.
fn written(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        _ if time.is_zero() => String::from("0s"),
        _ if time.subsec_nanos() > 0 => format!("{time:?}"),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// A limit that was worked out, as something that people would write and that is within it: two digits of it.
fn rounded_down(limit: Duration) -> Duration {
    let nanos = limit.as_nanos();
    if nanos.is_multiple_of(1_000_000) {
        return limit;
    }
    let unit = 10_u128.pow(nanos.ilog10().saturating_sub(1));
    Duration::from_nanos(u64::try_from(nanos / unit * unit).unwrap_or(u64::MAX))
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

    /// How long a leader may act on one renewal, on its own clock: the ttl as the slowest clock counts it, less
    /// `stop_margin`.
    #[must_use]
    pub fn lease(&self, ttl: Duration) -> Duration {
        self.drift.slow(ttl).saturating_sub(self.stop_margin)
    }

    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// The first setting that cannot work, with its limit.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.validate_for(self.ttl)
    }

    /// The same, for the ttl that a store granted instead of the one asked for.
    ///
    /// # Errors
    /// The first setting that cannot work, with its limit.
    pub fn validate_for(&self, ttl: Duration) -> Result<(), SettingsError> {
        at_least("ttl", ttl, MIN_TTL, "raise it (10s is the default)")?;
        at_most("ttl", ttl, MAX_TTL, "", "lower it: a crash may cost that much (10s is the default)")?;
        at_least(
            "renew_every",
            self.renew_every,
            Duration::from_millis(1),
            "raise it (ttl/3 is the default)",
        )?;
        at_least("poll_every", self.poll_every, Duration::from_millis(1), "raise it (ttl/6 is the default)")?;
        at_most("poll_every", self.poll_every, ttl, ", the ttl", "lower it (ttl/6 is the default)")?;
        at_most(
            "stop_margin",
            self.stop_margin,
            self.drift.slow(ttl) / 2,
            ", half of the ttl as a slow clock counts it",
            "lower it (ttl/20 is the default), or raise the ttl",
        )?;
        at_most(
            "renew_every",
            self.renew_every,
            self.lease(ttl).saturating_sub(ttl / 6),
            ", so that three attempts fit before the lease ends",
            "lower it (ttl/3 is the default)",
        )?;
        at_most("takeover_delay", self.takeover_delay, MAX_TTL, "", "lower it")
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
    fn impossible_settings_are_refused_with_their_limit_and_what_to_do() {
        let year = Duration::from_secs(365 * 24 * 3600);
        for (told, refused) in [
            (
                refusal(|s| *s = Settings::new(Duration::ZERO)),
                "`ttl` is 0s, but must be at least 50ms; raise it",
            ),
            (refusal(|s| *s = Settings::new(year)), "`ttl` is 8760h, but must be at most 24h; lower it"),
            (
                refusal(|s| s.renew_every = Duration::from_secs(11)),
                "`renew_every` is 11s, but must be at most 6s, so that",
            ),
            (refusal(|s| s.renew_every = Duration::ZERO), "`renew_every` is 0s, but must be at least 1ms"),
            (
                refusal(|s| s.stop_margin = Duration::from_secs(5)),
                "`stop_margin` is 5s, but must be at most 4s, half of",
            ),
            (refusal(|s| s.poll_every = Duration::from_secs(60)), "must be at most 10s, the ttl; lower it"),
            (refusal(|s| s.poll_every = Duration::ZERO), "`poll_every` is 0s, but must be at least 1ms"),
            (refusal(|s| s.takeover_delay = year), "`takeover_delay` is 8760h, but must be at most 24h"),
        ] {
            assert!(told.contains(refused), "{told}");
        }
    }

    #[test]
    fn durations_are_told_as_people_write_them() {
        let told = |millis| written(Duration::from_millis(millis));
        assert_eq!([told(0), told(250), told(1500), told(61_000)], ["0s", "250ms", "1.5s", "61s"]);
        assert_eq!([told(300_000), told(172_800_000)], ["5m", "48h"]);
        let limit = |nanos| written(rounded_down(Duration::from_nanos(nanos)));
        assert_eq!([limit(6_015_151_515), limit(30_075_757)], ["6s", "30ms"]);
        assert_eq!([limit(601_515_151_515), limit(12_340_000_000)], ["10m", "12.34s"]);
    }
}
