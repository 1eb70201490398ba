//! tenure-core has no clock, no randomness, no I/O and no async: only so can the simulation own
//! all of them, and replay a seed to the last bit.

use super::Report;
use super::code::has_word;
use super::repository::{File, Repository};
use crate::cargo::Cargo;

const MANIFEST: &str = "crates/tenure-core/Cargo.toml";
const SOURCES: &str = "crates/tenure-core/src/";

/// thiserror, and serde for those who ask for it, with what they are built with. None of them does anything
/// but shape data.
const DEPENDENCIES: [&str; 10] = [
    "tenure-core",
    "thiserror",
    "thiserror-impl",
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
    "serde",
    "serde_core",
    "serde_derive",
];

/// What the core must not name, and where it gets it instead.
const FORBIDDEN: [(&str, &str); 16] = [
    ("SystemTime", "time is an argument"),
    ("std::thread", "the driver in `tenure` has the threads"),
    ("std::fs", "stores do the I/O"),
    ("std::net", "stores do the I/O"),
    ("std::io", "stores do the I/O"),
    ("std::env", "settings are arguments"),
    ("std::process", "settings are arguments"),
    ("async", "the core is a state machine: handle and poll"),
    (".await", "the core is a state machine: handle and poll"),
    ("rand", "randomness is an argument"),
    ("getrandom", "randomness is an argument"),
    ("HashMap", "its order is random; use BTreeMap"),
    ("HashSet", "its order is random; use BTreeSet"),
    ("RandomState", "randomness is an argument"),
    // Written out, so that the lines above see every name.
    ("std::{", "import one module of std per line"),
    ("use std as", "call std by its name"),
];

pub fn check(repository: &Repository, report: &mut Report) {
    check_dependencies(report);
    for file in repository.rust().filter(|file| file.path.starts_with(SOURCES)) {
        for (line, what) in impurities(file) {
            report.line(&file.path, line, &what);
        }
    }
}

fn check_dependencies(report: &mut Report) {
    let tree = Cargo::new("tree --package tenure-core --all-features --edges normal --prefix none");
    match tree.output() {
        Ok(listing) => {
            for name in strangers(&listing) {
                let what = format!("the core must not depend on `{name}`: it may have a clock or a socket");
                report.file(MANIFEST, &what);
            }
        }
        Err(message) => report.file(MANIFEST, &message),
    }
}

/// The packages in a listing of `cargo tree` that are not on the list.
fn strangers(listing: &str) -> Vec<&str> {
    let names = listing.lines().filter_map(|line| line.split_whitespace().next());
    let mut strangers: Vec<&str> = names.filter(|name| !DEPENDENCIES.contains(name)).collect();
    strangers.sort_unstable();
    strangers.dedup();
    strangers
}

fn impurities(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.code.lines()) {
        for (word, instead) in FORBIDDEN {
            if has_word(line, word) {
                found.push((number, format!("`{word}` has no place in tenure-core: {instead}")));
            }
        }
        // `std::time` is there for `Duration` alone: a length of time, not a clock.
        let clock = line.match_indices("std::time").any(|(at, module)| {
            let rest = &line[at + module.len()..];
            !rest.starts_with("::Duration") && !rest.starts_with("::{Duration}")
        });
        if clock {
            found.push((number, "only `Duration` of `std::time` may be used in tenure-core".to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str) -> Vec<usize> {
        impurities(&File::new("crates/tenure-core/src/x.rs", source))
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn clocks_threads_and_async_are_found_in_every_disguise() {
        assert_eq!(lines("use std::time::Instant;"), [1]);
        assert_eq!(lines("use std::time::{Duration, Instant};"), [1]);
        assert_eq!(lines("use std::time;\n\nuse std::{fs, fmt};"), [1, 3]);
        assert_eq!(lines("let x = std::thread::spawn(f);"), [1]);
        assert_eq!(lines("async fn f() {\n    g().await;\n}"), [1, 2]);
        assert_eq!(lines("let jitter = rand::random();"), [1]);
    }

    #[test]
    fn durations_and_the_cores_own_instant_are_fine() {
        assert!(lines("use std::time::Duration;\nuse crate::time::Instant;").is_empty());
        assert!(lines("/// Not a `SystemTime`.\nfn f(now: Instant) { g(\"async\") }").is_empty());
    }

    #[test]
    fn a_new_dependency_is_a_stranger() {
        let listing =
            "tenure-core v0.1.0\nthiserror v2.0.21\ntokio v1.54.0\nsyn v2.0.0 (*)\ntokio v1.54.0 (*)\n";
        assert_eq!(strangers(listing), ["tokio"]);
    }
}
