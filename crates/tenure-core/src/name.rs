//! Names that people choose: elections, nodes, namespaces. One rule for all of them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name, in bytes of UTF-8: fits every store's key with room for a prefix.
pub const MAX_NAME_BYTES: usize = 128;

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is left to call it by.
    #[error("the {kind} name is empty; give it a name such as `{example}`")]
    Empty {
        /// What was being named.
        kind: &'static str,
        /// A name that would do.
        example: &'static str,
    },
    /// Too long for some store's key.
    #[error("the {kind} name is {bytes} bytes long, and the limit is {MAX_NAME_BYTES}; shorten it")]
    TooLong {
        /// What was being named.
        kind: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// Would garble logs, headers or terminals.
    #[error(
        "the {kind} name contains the control character U+{:04X} at byte {at}; remove it",
        u32::from(*.found)
    )]
    Control {
        /// What was being named.
        kind: &'static str,
        /// The character.
        found: char,
        /// Where it stands.
        at: usize,
    },
    /// Two names that look alike would be two different elections.
    #[error("the {kind} name begins or ends with a space; remove it")]
    Padded {
        /// What was being named.
        kind: &'static str,
    },
}

fn validate(kind: &'static str, example: &'static str, name: &str) -> Result<Arc<str>, NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty { kind, example });
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { kind, bytes: name.len() });
    }
    if let Some((at, found)) = name.char_indices().find(|(_, c)| c.is_control()) {
        return Err(NameError::Control { kind, found, at });
    }
    if name.trim().len() != name.len() {
        return Err(NameError::Padded { kind });
    }
    Ok(Arc::from(name))
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
        pub struct $type(Arc<str>);

        impl $type {
            /// Accepts a name of 1 to 128 bytes without control characters or outer spaces.
            ///
            /// # Errors
            /// A [`NameError`] that says what is wrong with it.
            pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
                validate($kind, $example, name.as_ref()).map(Self)
            }

            /// The name itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.as_str().to_owned()
            }
        }

        impl FromStr for $type {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = NameError;
            fn try_from(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// Names a contest with at most one leader.
    ElectionName,
    "election",
    "reports"
);
name!(
    /// Names a registered process. Two live processes never share one.
    NodeId,
    "node",
    "worker-1"
);
name!(
    /// Names work that is cut into partitions: usually a domain and a list of its tasks.
    TaskListName,
    "task list",
    "billing/invoices"
);
name!(
    /// Names a part of supervised work.
    ChildName,
    "child",
    "poller"
);
name!(
    /// Separates users of one store.
    Namespace,
    "namespace",
    "default"
);

impl Default for Namespace {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["reports", "a", "billing/nightly", "Größe 7", "x".repeat(128).as_str()] {
            assert_eq!(ElectionName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn unusable_names_are_refused_with_what_to_do() {
        let message = |name: &str| NodeId::new(name).unwrap_err().to_string();
        assert!(message("").contains("such as `worker-1`"));
        assert!(message("   ").contains("is empty"));
        assert!(message(&"x".repeat(129)).contains("129 bytes long, and the limit is 128"));
        assert!(message("a\nb").contains("U+000A at byte 1"));
        assert!(message("a\u{0}").contains("U+0000"));
        assert!(message(" a").contains("space"));
    }
}
