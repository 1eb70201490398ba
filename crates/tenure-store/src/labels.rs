//! What an operator says of a node: a few words such as `zone=eu-1`, for people and for planners.

use std::collections::BTreeMap;

/// How many labels a node may have.
const MOST: usize = 32;
/// The longest name of one, in bytes.
const NAME_BYTES: usize = 63;
/// The longest value of one, in bytes.
const VALUE_BYTES: usize = 255;
/// Names that begin like this are Tenure's own.
const RESERVED: &str = "tenure.";
/// A node's priority, unless that is the usual one.
const PRIORITY: &str = "tenure.priority";

/// Names and values, in the order of the names. Few and short, since every node is told of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Labels(BTreeMap<String, String>);

/// Why labels were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// It does not read `name=value`.
    #[error("`{0}` is no label; write it like zone=eu-1")]
    NoValue(String),
    /// The name is unusable.
    #[error(
        "the label name `{0}` is unusable: 1 to {NAME_BYTES} letters, digits, and -_./ are allowed; write it like zone=eu-1"
    )]
    Name(String),
    /// The value is unusable.
    #[error(
        "the value of the label `{0}` is unusable: at most {VALUE_BYTES} bytes without control characters are allowed"
    )]
    Value(String),
    /// The name is Tenure's own.
    #[error("the label `{0}` is Tenure's own (all that begin with `{RESERVED}` are); choose another name")]
    Reserved(String),
    /// The same name twice.
    #[error("the label `{0}` is given twice; give it once")]
    Twice(String),
    /// More than a node may have.
    #[error("{0} labels are too many; {MOST} are allowed")]
    TooMany(usize),
}

impl Labels {
    /// Labels as they are written: `zone=eu-1`.
    ///
    /// # Errors
    /// A [`LabelError`] that says which is wrong, and how.
    pub fn parse<'a>(written: impl IntoIterator<Item = &'a str>) -> Result<Self, LabelError> {
        let pair = |label: &'a str| {
            let (name, value) =
                label.split_once('=').ok_or_else(|| LabelError::NoValue(label.escape_debug().to_string()))?;
            match name.starts_with(RESERVED) {
                true => Err(LabelError::Reserved(name.escape_debug().to_string())),
                false => Ok((name.to_owned(), value.to_owned())),
            }
        };
        Self::of(written.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?)
    }

    /// These names and values.
    ///
    /// # Errors
    /// As for [`Labels::parse`].
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, LabelError> {
        let mut labels = BTreeMap::new();
        for (name, value) in pairs {
            let usable = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(usable) {
                return Err(LabelError::Name(name.escape_debug().to_string()));
            }
            if value.len() > VALUE_BYTES || value.chars().any(char::is_control) {
                return Err(LabelError::Value(name));
            }
            if labels.contains_key(&name) {
                return Err(LabelError::Twice(name));
            }
            labels.insert(name, value);
        }
        let own = labels.keys().filter(|name| name.starts_with(RESERVED)).count();
        let count = labels.len() - own;
        if count > MOST { Err(LabelError::TooMany(count)) } else { Ok(Self(labels)) }
    }

    /// The same, with the node's priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        match priority {
            0 => self.0.remove(PRIORITY),
            other => self.0.insert(String::from(PRIORITY), other.to_string()),
        };
        self
    }

    /// The node's priority.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.0.get(PRIORITY).and_then(|priority| priority.parse().ok()).unwrap_or(0)
    }

    /// Names and values, in the order of the names.
    #[must_use]
    pub const fn map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_few_short_and_harmless() {
        let labels = Labels::parse(["zone=eu-1", "app/tier=größe = 7", "empty="]).unwrap();
        assert_eq!(labels.map().keys().collect::<Vec<_>>(), ["app/tier", "empty", "zone"]);
        assert_eq!(labels.map()["app/tier"], "größe = 7");
        let message = |written: &[&str]| Labels::parse(written.iter().copied()).unwrap_err().to_string();
        assert!(message(&["zone"]).contains("zone=eu-1"));
        assert!(message(&["=x"]).contains("name"));
        assert!(message(&["a\r\nb=x"]).contains("a\\r\\nb"));
        assert!(message(&["a=x\r\nEvil: 1"]).contains("control characters"));
        assert!(message(&["a=1", "a=2"]).contains("twice"));
        assert!(message(&["tenure.priority=9"]).contains("Tenure's own"));
        assert_eq!((labels.priority(), labels.clone().with_priority(-3).priority()), (0, -3));
        assert_eq!(labels.clone().with_priority(5).with_priority(0), labels);
        let many: Vec<String> = (0..33).map(|number| format!("l{number}=")).collect();
        assert!(message(&many.iter().map(String::as_str).collect::<Vec<_>>()).contains("33 labels"));
    }
}
