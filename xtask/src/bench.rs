//! `cargo xtask bench`: every bench of the test kit, and how far each figure is from its target.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::cargo::Cargo;
use crate::{setup, suggest, usage_error};

const HELP: &str = "\
Measures, and tells at the end which targets are met. docs/benchmarks.md says what is measured.

Usage: cargo xtask bench [--quick] [NAME…]

  --quick   fewer rounds: to see that the benches work, not to quote their figures
  NAME      only the benches with this in their name

Example: cargo xtask bench --quick handover failover
";

/// Where benches are.
const PACKAGES: [&str; 2] = ["tenure-testkit", "tenure-cli"];

/// Runs the benches that were asked for, then shows what they concluded.
pub fn run(args: &[String]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let benches = all();
    if benches.is_empty() {
        eprintln!("xtask: there is nothing to measure: no bench in {}", PACKAGES.join(", "));
        return ExitCode::FAILURE;
    }
    let benches = match chosen(benches, args) {
        Ok(chosen) => chosen,
        Err(message) => return usage_error(&message),
    };
    if let Err(message) = setup::install_for_benches(&benches) {
        eprintln!("xtask: {message}");
        return ExitCode::FAILURE;
    }
    let summary = std::env::temp_dir().join(format!("tenure-bench-{}.tsv", std::process::id()));
    let code = measurement(&benches, args, &summary).become_the_chore();
    if let Ok(lines) = fs::read_to_string(&summary) {
        print!("\n{}", table(&lines));
        _ = fs::remove_file(&summary);
    }
    code
}

/// Every bench there is.
fn all() -> Vec<String> {
    let crates = crate::repository().join("crates");
    PACKAGES.iter().flat_map(|package| benches(&crates.join(package).join("benches"))).collect()
}

/// Whether these are words for it.
#[cfg(test)]
pub fn understands(args: &[String]) -> Result<(), String> {
    chosen(all(), args).map(drop)
}

/// The benches that the words among the arguments name; all of them without a word.
fn chosen(benches: Vec<String>, args: &[String]) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--quick" => {}
            flag if flag.starts_with('-') => {
                let nearest = suggest::nearest(flag, &["--quick", "--help"]);
                return Err(format!("`bench` has no flag `{flag}`; did you mean `{nearest}`?"));
            }
            word if benches.iter().any(|name| name.contains(word)) => words.push(word),
            word => return Err(format!("there is no bench `{word}`; there are {}", benches.join(", "))),
        }
    }
    let named = |name: &String| words.is_empty() || words.iter().any(|word| name.contains(word));
    Ok(benches.into_iter().filter(named).collect())
}

/// Names each bench, because a plain `cargo bench` would also hand the arguments to the crate's
/// unit tests, which do not know them. One that fails does not keep the others from running.
fn measurement(benches: &[String], args: &[String], summary: &Path) -> Cargo {
    let named: Vec<String> = benches.iter().flat_map(|name| ["--bench".to_owned(), name.clone()]).collect();
    let summary = ["--", "--summary", &summary.to_string_lossy()].map(str::to_owned);
    Cargo::new("bench --package tenure-testkit --package tenure-cli --no-fail-fast")
        .with(&named)
        .with(&summary)
        .with(args)
}

/// What cargo takes for a bench: `NAME.rs`, or `NAME/main.rs`.
fn benches(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The lines of the benches, four fields each between tabs, with aligned columns.
fn table(lines: &str) -> String {
    const HEAD: &str = "figure\tmeasured\ttarget\tverdict, or what bounds it";
    let rows: Vec<Vec<&str>> =
        [HEAD].into_iter().chain(lines.lines()).map(|line| line.split('\t').collect()).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut table = String::new();
    for row in &rows {
        let cells: Vec<String> =
            (0..).zip(row).map(|(column, cell)| format!("{cell:<0$}", width(column))).collect();
        table.push_str(cells.join("   ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn arguments_reach_the_named_benches_and_nothing_else() {
        let (benches, args) = (owned(&["check", "failover"]), owned(&["--quick"]));
        let call = measurement(&benches, &args, Path::new("/tmp/s.tsv"));
        assert_eq!(
            call.to_string(),
            "cargo bench --package tenure-testkit --package tenure-cli --no-fail-fast --bench check --bench failover \
             -- --summary /tmp/s.tsv --quick"
        );
    }

    #[test]
    fn words_choose_benches_and_slips_are_told() {
        let choose = |args: &[&str]| chosen(owned(&["check", "failover", "handover"]), &owned(args));
        assert_eq!(choose(&["--quick"]), Ok(owned(&["check", "failover", "handover"])));
        assert_eq!(choose(&["over", "--quick"]), Ok(owned(&["failover", "handover"])));
        assert!(choose(&["--quik"]).is_err_and(|message| message.contains("`--quick`")));
        assert!(choose(&["holding"]).is_err_and(|message| message.contains("check, failover")));
    }

    #[test]
    fn columns_of_the_table_are_aligned() {
        let table = table("check()\t29 ns\t≤ 50 ns\tmet\nlonger\t1 ms\t–\tfloor 1 ms\n");
        let starts: Vec<_> = table.lines().map(|line| line.chars().position(|c| "m21".contains(c))).collect();
        assert_eq!(starts, [Some(10), Some(10), Some(10)]);
    }
}
