//! The logs, read line by line.

use serde_json::Value;

/// One leadership of one process: it passed its check from `from` until just before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Of which election.
    pub election: String,
    /// The node that led.
    pub node: String,
    /// Its process.
    pub pid: u32,
    /// Under which term.
    pub term: u64,
    /// The first instant, in nanoseconds of the boot clock.
    pub from: u64,
    /// The instant when it was over.
    pub until: u64,
}

impl Leadership {
    /// Whether both are of one process.
    #[must_use]
    pub fn same_process(&self, other: &Self) -> bool {
        (&self.node, self.pid) == (&other.node, other.pid)
    }
}

/// One write that a fenced register was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The election whose term fences it.
    pub election: String,
    /// The node that asked.
    pub node: String,
    /// Its process.
    pub pid: u32,
    /// The term that it showed.
    pub term: u64,
    /// Whether the register took it.
    pub accepted: bool,
}

/// A line that is no log entry. A checker that skipped it would judge by half the evidence.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Cut off, or never JSON.
    #[error("line {line} of the log is no JSON: {source}")]
    Json {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// A field is missing or of another type.
    #[error("line {line} of the log has no usable field `{field}`")]
    Field {
        /// Counted from 1.
        line: usize,
        /// Which one.
        field: &'static str,
    },
}

/// Reads a log of leaderships; empty lines are skipped.
///
/// # Errors
/// A [`LogError`] that names the first line that is wrong.
pub fn parse_leaderships(log: &str) -> Result<Vec<Leadership>, LogError> {
    lines(log)
        .map(|line| {
            let line = line?;
            Ok(Leadership {
                election: line.text("election")?,
                node: line.text("node")?,
                pid: line.pid()?,
                term: line.number("term")?,
                from: line.number("from")?,
                until: line.number("until")?,
            })
        })
        .collect()
}

/// Reads a register's log of writes, in the order in which it judged them; empty lines are
/// skipped.
///
/// # Errors
/// A [`LogError`] that names the first line that is wrong.
pub fn parse_writes(log: &str) -> Result<Vec<Write>, LogError> {
    lines(log)
        .map(|line| {
            let line = line?;
            Ok(Write {
                election: line.text("election")?,
                node: line.text("node")?,
                pid: line.pid()?,
                term: line.number("term")?,
                accepted: line.field("accepted", Value::as_bool)?,
            })
        })
        .collect()
}

struct Line {
    number: usize,
    value: Value,
}

fn lines(log: &str) -> impl Iterator<Item = Result<Line, LogError>> {
    log.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()).map(|(text, number)| {
        let value = serde_json::from_str(text).map_err(|source| LogError::Json { line: number, source })?;
        Ok(Line { number, value })
    })
}

impl Line {
    fn field<'a, T>(
        &'a self,
        field: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, LogError> {
        self.value.get(field).and_then(read).ok_or(LogError::Field { line: self.number, field })
    }

    fn text(&self, field: &'static str) -> Result<String, LogError> {
        self.field(field, Value::as_str).map(str::to_owned)
    }

    fn number(&self, field: &'static str) -> Result<u64, LogError> {
        self.field(field, Value::as_u64)
    }

    fn pid(&self) -> Result<u32, LogError> {
        self.field("pid", |value| value.as_u64().and_then(|pid| u32::try_from(pid).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let log = r#"
            {"election":"e \"1\"","node":"a","pid":7,"term":3,"from":10,"until":20,"more":"is ignored"}

            {"election":"e","node":"b","pid":8,"term":4,"from":18446744073709551614,"until":18446744073709551615}
        "#;
        let read = parse_leaderships(log).unwrap();
        assert_eq!(read.len(), 2);
        let first = &read[0];
        assert_eq!((first.election.as_str(), first.node.as_str(), first.pid), ("e \"1\"", "a", 7));
        assert_eq!((first.term, first.from, first.until), (3, 10, 20));
        assert_eq!(read[1].until, u64::MAX);

        let write = r#"{"election":"e","node":"a","pid":7,"term":3,"accepted":false}"#;
        let expected = Write { election: "e".into(), node: "a".into(), pid: 7, term: 3, accepted: false };
        assert_eq!(parse_writes(write).unwrap(), [expected]);
    }

    #[test]
    fn a_line_that_is_wrong_is_named_and_never_skipped() {
        let good = r#"{"election":"e","node":"a","pid":7,"term":3,"from":1,"until":2}"#;
        let message = |line: &str| parse_leaderships(&format!("{good}\n{line}")).unwrap_err().to_string();
        assert!(message(&good[..30]).contains("line 2 of the log is no JSON"));
        assert!(message(&good.replace("\"until\":2", "\"until\":-2")).contains("field `until`"));
        assert!(message(&good.replace("\"pid\":7", "\"pid\":5000000000")).contains("field `pid`"));
        assert!(
            parse_writes(good)
                .unwrap_err()
                .to_string()
                .contains("line 1 of the log has no usable field `accepted`")
        );
    }
}
