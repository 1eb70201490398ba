//! Every crate belongs to the workspace, and says what it is: to crates.io in its manifest, to a
//! reader in its first lines.

use super::Report;
use super::repository::{File, Repository};
use crate::cargo::Cargo;

/// "Test kit." is no introduction.
const FEWEST_WORDS: usize = 5;

pub fn check(repository: &Repository, report: &mut Report) {
    check_introductions(repository, report);
    match Cargo::new("metadata --no-deps --format-version 1").output() {
        Ok(metadata) => {
            for path in outsiders(repository, &metadata) {
                report.file(path, "is no member of the workspace, so no check and no test ever sees it");
            }
        }
        Err(message) => report.file("Cargo.toml", &message),
    }
}

fn packages(repository: &Repository) -> impl Iterator<Item = &File> {
    repository.files.iter().filter(|file| file.is_manifest() && has_table(file, "[package]"))
}

/// Packages that cargo does not list, unless they are the root of a workspace of their own.
fn outsiders<'a>(repository: &'a Repository, metadata: &str) -> Vec<&'a str> {
    let listed = |file: &&File| metadata.contains(&format!("/{}\"", file.path));
    let outside = packages(repository).filter(|file| !has_table(file, "[workspace]") && !listed(file));
    outside.map(|file| file.path.as_str()).collect()
}

fn check_introductions(repository: &Repository, report: &mut Report) {
    for manifest in packages(repository) {
        for key in ["description", "license"] {
            if !has_key(manifest, key) {
                report.file(&manifest.path, &format!("`{key}` is missing from [package]"));
            }
        }
        let directory = manifest.path.trim_end_matches("Cargo.toml");
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| format!("{directory}{root}"));
        let roots: Vec<&File> = roots.iter().filter_map(|root| repository.file(root)).collect();
        if roots.is_empty() {
            report.file(&manifest.path, "neither src/lib.rs nor src/main.rs is there");
        }
        for root in roots {
            if words_of_introduction(&root.text) < FEWEST_WORDS {
                report.line(&root.path, 1, "begin with `//!` and a sentence on what this crate is for");
            }
        }
    }
}

fn has_table(manifest: &File, table: &str) -> bool {
    manifest.text.lines().any(|line| line.trim() == table)
}

/// Whether `[package]` sets `key`, itself or as `key.workspace`.
fn has_key(manifest: &File, key: &str) -> bool {
    let package = manifest.text.lines().skip_while(|line| line.trim() != "[package]").skip(1);
    let mut keys = package.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    keys.any(|(name, _)| name.trim().strip_suffix(".workspace").unwrap_or(name.trim()) == key)
}

fn words_of_introduction(source: &str) -> usize {
    let introduction = source.lines().map_while(|line| line.strip_prefix("//!"));
    introduction.map(|line| line.split_whitespace().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(manifest: &str, root: &str) -> Vec<String> {
        let mut report = Report::default();
        let files = vec![File::new("a/Cargo.toml", manifest), File::new("a/src/lib.rs", root)];
        check_introductions(&Repository::of(files), &mut report);
        report.problems
    }

    #[test]
    fn a_crate_needs_a_description_a_licence_and_an_introduction() {
        let manifest = "[package]\ndescription = \"x\"\nlicense.workspace = true\n";
        assert!(problems(manifest, "//! The rules, as pure\n//! state machines.\n").is_empty());
        assert_eq!(
            problems(manifest, "//! Test kit.\n"),
            ["a/src/lib.rs:1: begin with `//!` and a sentence on what this crate is for"]
        );
        let elsewhere = "[package]\nname = \"a\"\n[other]\ndescription = \"x\"\nlicense = \"y\"\n";
        assert_eq!(problems(elsewhere, "//! One two three four five.\n").len(), 2);
        assert!(problems("[workspace]\n", "").is_empty());
    }

    #[test]
    fn a_crate_outside_the_workspace_is_found() {
        let manifest = |path: &str, text: &str| File::new(path, text);
        let repository = Repository::of(vec![
            manifest("Cargo.toml", "[workspace]"),
            manifest("crates/in/Cargo.toml", "[package]"),
            manifest("crates/out/Cargo.toml", "[package]"),
            manifest("fuzz/Cargo.toml", "[package]\n[workspace]"),
        ]);
        let metadata = r#"{"manifest_path":"/x/crates/in/Cargo.toml"}"#;
        assert_eq!(outsiders(&repository, metadata), ["crates/out/Cargo.toml"]);
    }
}
