//! The health of a node's application, as the node reports it.

use std::fmt;
use std::time::SystemTime;

use tenure_core::SessionId;

/// What a node's health probe has found, for people to read: one line of at most [`Problem::MOST`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "String", into = "String"))]
pub struct Problem(String);

impl Problem {
    /// The length of the longest, in bytes of UTF-8.
    pub const MOST: usize = 256;

    /// The text as one line. It is cut at the end of a character if it is too long.
    #[must_use]
    pub fn new(text: &str) -> Self {
        const CUT: char = '…';
        let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if line.len() <= Self::MOST {
            return Self(line);
        }
        let end = line.floor_char_boundary(Self::MOST - CUT.len_utf8());
        Self(format!("{}{CUT}", &line[..end]))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.0
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Reports the health of a session's node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HealthReport {
    /// Of which session.
    pub session: SessionId,
    /// Rises with every report of the session. One that arrives after a report with a higher number is void.
    pub number: u64,
    /// What is wrong; `None` if nothing is.
    pub problem: Option<Problem>,
}

/// That a node's health probe fails, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Unhealthy {
    /// What it found last.
    pub problem: Problem,
    /// Since when it fails, by the wall clock of the writer: for people to read.
    pub since: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_of_bounded_length() {
        assert_eq!(Problem::new("  `a\nb\0` ended with 1\n").as_str(), "`a b ` ended with 1");
        let most = "x".repeat(Problem::MOST);
        assert_eq!(Problem::new(&most).as_str(), most);
        for letter in ["x", "ü", "日", "🦀"] {
            let problem = Problem::new(&letter.repeat(Problem::MOST + 1));
            let kept = problem.as_str().strip_suffix('…').expect("it is marked as cut");
            assert!(kept.chars().all(|c| letter.contains(c)), "{problem}");
            assert!((Problem::MOST - 4..=Problem::MOST).contains(&problem.as_str().len()), "{problem}");
            assert_eq!(Problem::new(problem.as_str()), problem, "what was cut is not cut again");
        }
    }
}
