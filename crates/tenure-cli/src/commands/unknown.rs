//! An election that nobody ever stood for: most often a slip of the finger.

use std::sync::Arc;

use tenure::{ElectionName, Store};

use crate::failure::Failure;
use crate::store::ask;

/// How alike two names must be for one to be taken for the other.
const ALIKE: f64 = 0.7;

/// Says that there is no such election, and which there are.
pub async fn unknown(store: &Arc<dyn Store>, election: &ElectionName) -> Result<Failure, Failure> {
    let known = ask(store.elections()).await?;
    Ok(absence(election, &known))
}

/// The same, unless there is one.
pub async fn if_unknown(store: &Arc<dyn Store>, election: &ElectionName) -> Result<Option<Failure>, Failure> {
    let known = ask(store.elections()).await?;
    let exists = known.iter().any(|(name, _)| name == election);
    Ok((!exists).then(|| absence(election, &known)))
}

fn absence<T>(election: &ElectionName, known: &[(ElectionName, T)]) -> Failure {
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    Failure::No(message(election.as_str(), &known))
}

fn message(asked: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("no election `{asked}`: nobody has stood for any in this store and namespace");
    }
    let likeness = |name: &str| strsim::jaro_winkler(asked, name);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let meant = match nearest.filter(|name| likeness(name) > ALIKE) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    };
    format!("no election `{asked}`; {meant}known are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_all_are_named() {
        assert_eq!(
            message("nightli", &["hourly", "nightly"]),
            "no election `nightli`; did you mean `nightly`? known are hourly, nightly"
        );
        assert_eq!(message("zzz", &["hourly"]), "no election `zzz`; known are hourly");
        assert!(message("zzz", &[]).contains("nobody has stood for any"));
    }
}
