//! Store URLs: one string picks the engine, nothing else changes.

use tenure_core::{NameError, Namespace};

use crate::history::Retention;

/// What every store can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Separates users of one store.
    pub namespace: Namespace,
    /// How much history is kept.
    pub retention: Retention,
    /// What happens where there is no store yet.
    pub setup: Setup,
}

/// What connecting does where Tenure's tables, files or znodes are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setup {
    /// Creates them, and brings those of an older version to this one.
    #[default]
    Create,
    /// Creates and changes nothing: connecting fails with [`NotSetUp`](crate::NotSetUp).
    Never,
}

/// A store URL, taken apart: `scheme:rest?key=value&…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// What stands before the colon.
    pub scheme: String,
    /// What stands between the colon and the question mark.
    pub rest: String,
    /// What every store understands.
    pub options: Options,
    /// The other parameters, for the store to understand or refuse.
    pub parameters: Vec<(String, String)>,
}

/// Which part of a store URL is wrong, and what a right one looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No scheme.
    #[error("`{0}` is no store URL: it has no scheme; a right one is `{example}`", example = UrlError::example(.0))]
    NoScheme(String),
    /// A scheme that no store of this build answers to.
    #[error(
        "unsupported store scheme `{scheme}:`; this build supports {known}; a right URL is `{example}`",
        example = UrlError::example(.scheme)
    )]
    UnknownScheme {
        /// What was asked for.
        scheme: String,
        /// What there is.
        known: String,
    },
    /// The scheme's own part is wrong.
    #[error("the store URL is wrong after `{scheme}:`: {problem}; a right one is `{example}`")]
    Rest {
        /// The scheme.
        scheme: &'static str,
        /// What is wrong.
        problem: String,
        /// A right one.
        example: &'static str,
    },
    /// A parameter that nobody understands.
    #[error("the store URL has an unknown parameter `{name}`; known are {known}")]
    UnknownParameter {
        /// The parameter.
        name: String,
        /// What there is.
        known: String,
    },
    /// A parameter whose value cannot be read.
    #[error("the store URL's parameter `{name}={value}` is wrong: {problem}; a right one is `{example}`")]
    BadParameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        problem: String,
        /// A right one.
        example: &'static str,
    },
    /// The namespace's name is unusable.
    #[error("the store URL's namespace is wrong: {0}")]
    Namespace(#[from] NameError),
}

impl UrlError {
    /// A right URL of the kind that somebody seems to have meant.
    fn example(written: &str) -> &'static str {
        let written = written.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| written.contains(word));
        if has(&["pg", "postg", "5432", "host=", "dbname="]) {
            "postgres://user@host/database"
        } else if has(&["my", "maria", "3306"]) {
            "mysql://user@host/database"
        } else if has(&["zk", "zoo", "2181"]) {
            "zk://h1:2181,h2:2181/tenure"
        } else if has(&["raft", "7101"]) {
            "raft://h1:7101,h2:7101,h3:7101"
        } else {
            "sqlite:./tenure.db"
        }
    }

    /// A parameter's value cannot be read: why, and what a right one looks like.
    pub fn parameter(
        name: &'static str,
        value: &str,
        problem: impl Into<String>,
        example: &'static str,
    ) -> Self {
        Self::BadParameter { name, value: value.to_owned(), problem: problem.into(), example }
    }
}

impl StoreUrl {
    /// Takes a URL apart, and reads the parameters that every store understands: `namespace`
    /// and `history` (how many events are kept per election).
    ///
    /// # Errors
    /// A [`UrlError`] that names the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let is_scheme =
            |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '-');
        let (scheme, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
            .ok_or_else(|| UrlError::NoScheme(url.to_owned()))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parsed = Self {
            scheme: canonical(scheme.to_ascii_lowercase()),
            rest: rest.to_owned(),
            options: Options::default(),
            parameters: Vec::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "namespace" => parsed.options.namespace = Namespace::new(value)?,
                "history" => parsed.options.retention = Retention { events: events(value)? },
                _ => parsed.parameters.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(parsed)
    }

    /// The value of one of the other parameters, as it stands there.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Refuses the first parameter that is not among `known`.
    ///
    /// # Errors
    /// [`UrlError::UnknownParameter`].
    pub fn only(&self, known: &[&str]) -> Result<(), UrlError> {
        match self.parameters.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let all: Vec<_> =
                    ["namespace", "history"].iter().chain(known).map(|k| format!("`{k}`")).collect();
                Err(UrlError::UnknownParameter { name: name.clone(), known: all.join(", ") })
            }
        }
    }
}

/// The short form of schemes that other tools write in another way.
fn canonical(scheme: String) -> String {
    match scheme.as_str() {
        "postgresql" => String::from("postgres"),
        "mariadb" => String::from("mysql"),
        "zookeeper" => String::from("zk"),
        _ => scheme,
    }
}

fn events(value: &str) -> Result<u32, UrlError> {
    let problem = "it is the number of events kept per election, at least 1";
    let events = value.parse().ok().filter(|&n| n > 0);
    events.ok_or_else(|| UrlError::parameter("history", value, problem, "history=10000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = StoreUrl::parse("sqlite:/var/lib/x.db?namespace=blue&history=5&extra=1").unwrap();
        assert_eq!((url.scheme.as_str(), url.rest.as_str()), ("sqlite", "/var/lib/x.db"));
        assert_eq!(url.options.namespace.as_str(), "blue");
        assert_eq!(url.options.retention.events, 5);
        assert_eq!((url.parameter("extra"), url.parameter("history")), (Some("1"), None));
        assert!(url.only(&["extra"]).is_ok());
        assert!(url.only(&[]).unwrap_err().to_string().contains("unknown parameter `extra`"));
    }

    #[test]
    fn schemes_of_other_tools_mean_the_short_forms() {
        let scheme = |url: &str| StoreUrl::parse(url).unwrap().scheme;
        assert_eq!(scheme("postgresql://me@h/db"), "postgres");
        assert_eq!((scheme("MariaDB://me@h/db"), scheme("zookeeper://h/x")), ("mysql".into(), "zk".into()));
    }

    #[test]
    fn the_example_is_of_the_kind_that_was_meant() {
        let message = |url: &str| StoreUrl::parse(url).unwrap_err().to_string();
        assert!(message("my.host/db").ends_with("a right one is `mysql://user@host/database`"));
        assert!(message("//h:5432/x").contains("postgres://user@host/database"));
        assert!(message("x.db").ends_with("`sqlite:./tenure.db`"));
    }

    #[test]
    fn a_wrong_url_names_the_part_that_is_wrong() {
        let message = |url: &str| StoreUrl::parse(url).unwrap_err().to_string();
        assert!(message("just-a-path.db").contains("no scheme"));
        assert!(message("/a/b:c").contains("no scheme"));
        assert!(message("sqlite:x?history=0").contains("`history=0` is wrong"));
        assert!(message("sqlite:x?namespace=").contains("namespace name is empty"));
    }
}
