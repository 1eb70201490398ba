//! The moment of a write: the boot clock for rivals, the wall clock for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::Age;
use tenure_store::clock;

const DAY: u64 = 86_400;

/// What the clocks showed inside a transaction.
pub(crate) struct Moment {
    /// UTC, to be read by people.
    pub wall: String,
    /// The boot clock, in nanoseconds.
    pub boot: i64,
    /// Which boot clock.
    pub clock: Option<&'static str>,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let boot = i64::try_from(clock::now().as_nanos()).unwrap_or(i64::MAX);
        Self { wall: to_text(clock::wall()), boot, clock: clock::identity() }
    }

    /// How old a pulse is that was written at `boot` by `clock`: exact if we read the same
    /// clock, and otherwise unknown.
    pub(crate) fn age(&self, boot: i64, clock: Option<&str>) -> Age {
        match (self.clock, clock) {
            (Some(ours), Some(theirs)) if ours == theirs => {
                let nanos = u64::try_from(self.boot.saturating_sub(boot)).unwrap_or(0);
                Age::Exact(Duration::from_nanos(nanos))
            }
            _ => Age::Unknown,
        }
    }
}

/// `2026-11-15T20:59:59.123456Z`: sorts as text, and SQLite's date functions understand it.
pub(crate) fn to_text(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil(seconds / DAY);
    let of_day = seconds % DAY;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        since_epoch.subsec_micros()
    )
}

/// Reads what [`to_text`] wrote; the epoch if somebody wrote something else, since this is only
/// ever shown.
pub(crate) fn from_text(text: &str) -> SystemTime {
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<u64>().ok());
    let parsed = || {
        let days = days(part(0..4)?, part(5..7)?, part(8..10)?)?;
        let seconds = days * DAY + part(11..13)? * 3600 + part(14..16)? * 60 + part(17..19)?;
        Some(Duration::from_secs(seconds) + Duration::from_micros(part(20..26)?))
    };
    UNIX_EPOCH + parsed().unwrap_or_default()
}

/// The date of a day counted from 1970-01-01. Years are taken to begin in March, so that the leap
/// day is the last of its year; 400 years are 146,097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next_year, month, day)
}

/// The inverse of [`civil`]; nothing before 1970 or outside the calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_microseconds() {
        assert_eq!(to_text(Duration::ZERO), "1970-01-01T00:00:00.000000Z");
        assert_eq!(to_text(Duration::from_micros(1_709_251_199_999_999)), "2024-02-29T23:59:59.999999Z");
        assert_eq!(to_text(Duration::from_secs(4_107_542_400)), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn what_was_written_is_read_back_for_every_day_of_four_centuries() {
        for day in 0..146_097 {
            let time = Duration::from_secs(day * DAY + 3_661) + Duration::from_micros(7);
            assert_eq!(from_text(&to_text(time)), UNIX_EPOCH + time);
        }
    }

    #[test]
    fn text_of_another_hand_is_the_epoch() {
        for text in
            ["", "yesterday", "2024-13-01T00:00:00.000000Z", "2024-01-01", "0000-01-01T00:00:00.000000Z"]
        {
            assert_eq!(from_text(text), UNIX_EPOCH, "{text}");
        }
    }

    #[test]
    fn an_age_is_exact_only_on_the_same_clock() {
        let now = Moment { wall: String::new(), boot: 5_000, clock: Some("a") };
        assert_eq!(now.age(2_000, Some("a")), Age::Exact(Duration::from_nanos(3_000)));
        assert_eq!(now.age(6_000, Some("a")), Age::Exact(Duration::ZERO));
        assert_eq!(now.age(2_000, Some("b")), Age::Unknown);
        assert_eq!(now.age(2_000, None), Age::Unknown);
        assert_eq!(Moment { clock: None, ..now }.age(2_000, None), Age::Unknown);
    }
}
