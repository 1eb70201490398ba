//! The migration switch.

use std::fmt;
use std::str::FromStr;

/// Who decides where supervised work runs: for going over to an election step by step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nobody is elected. The work runs where [`chosen`](crate::Supervise::chosen) says, as before there
    /// was an election, and no store is needed. Nothing keeps it from running on two nodes that are both
    /// chosen.
    Off,
    /// This node stands and may be elected, which can be watched. No work is started anywhere by it.
    Shadow,
    /// The work runs on whichever node is elected.
    #[default]
    On,
}

/// No mode has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mode of an election; use `off`, `shadow` or `on`")]
pub struct ModeError(String);

impl Mode {
    /// Its name, as a configuration file has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::On => "on",
        }
    }

    /// Whether it needs an election, and so a store.
    #[must_use]
    pub const fn elects(self) -> bool {
        !matches!(self, Self::Off)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(name: &str) -> Result<Self, ModeError> {
        [Self::Off, Self::Shadow, Self::On]
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| ModeError(String::from(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_written_as_they_are_read_and_nothing_else_is_taken_for_one() {
        for mode in [Mode::Off, Mode::Shadow, Mode::On] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "true".parse::<Mode>().unwrap_err().to_string();
        assert_eq!(error, "`true` is no mode of an election; use `off`, `shadow` or `on`");
    }
}
