//! The planted bugs of tenure-core are for the simulation to find; nothing else may build them.

use super::Report;
use super::repository::{File, Repository};
use crate::cargo::Cargo;

const SIMULATION: &str = "crates/tenure-sim/Cargo.toml";

pub fn check(repository: &Repository, report: &mut Report) {
    let manifests = repository.files.iter().filter(|file| file.is_manifest());
    for file in manifests.filter(|file| file.path != SIMULATION) {
        for line in requests(file) {
            report.line(&file.path, line, "only tenure-sim may enable `plants`: those are planted bugs");
        }
    }
    check_what_cargo_makes_of_it(report);
}

/// Lines that enable the feature, as `"plants"` or as `"tenure-core/plants"`. To define it, as
/// `plants = []`, needs no quotes.
fn requests(manifest: &File) -> Vec<usize> {
    let enables = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        line.contains("\"plants\"") || line.contains("/plants\"")
    };
    (1..).zip(manifest.text.lines()).filter(|(_, line)| enables(line)).map(|(number, _)| number).collect()
}

/// A crate that merely depends on tenure-sim gets the bugs too, and no manifest shows it.
fn check_what_cargo_makes_of_it(report: &mut Report) {
    let tree = Cargo::new("tree --workspace --exclude tenure-sim --prefix none")
        .with(&["--format".to_owned(), "{p} features: {f}".to_owned()]);
    match tree.output() {
        Ok(listing) if has_plants(&listing) => {
            let what = "something other than tenure-sim is built with `plants`; find it with \
                        `cargo tree --workspace --exclude tenure-sim -e features -i tenure-core`";
            report.file("Cargo.toml", what);
        }
        Ok(_) => {}
        Err(message) => report.file("Cargo.toml", &message),
    }
}

fn has_plants(listing: &str) -> bool {
    let core = listing.lines().filter(|line| line.starts_with("tenure-core "));
    let mut features = core.filter_map(|line| line.split_once("features: "));
    features.any(|(_, features)| features.split([',', ' ']).any(|feature| feature == "plants"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabling_the_bugs_is_found_and_defining_them_is_not() {
        let lines = |text: &str| requests(&File::new("crates/x/Cargo.toml", text));
        assert!(lines("[features]\nplants = []").is_empty());
        assert_eq!(lines("default = [\"plants\"]"), [1]);
        assert_eq!(lines("\ntenure-core = { workspace = true, features = [\"plants\"] }"), [2]);
        assert_eq!(lines("bugs = [\"tenure-core/plants\"]"), [1]);
        assert!(lines("# never \"plants\" here").is_empty());
    }

    #[test]
    fn a_core_that_is_built_with_bugs_is_recognised() {
        assert!(!has_plants("tenure-core v0.1.0 (crates/tenure-core) features: \nother v1 features: plants"));
        assert!(has_plants("tenure-core v0.1.0 (crates/tenure-core) features: default,plants (*)"));
    }
}
