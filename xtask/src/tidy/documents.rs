//! The documents are there, their links lead somewhere, and CI runs what the README says.

use std::path::Path;

use super::Report;
use super::repository::{File, Repository};

const NEEDED: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// The one command of a newcomer, and of CI.
const COMMAND: &str = "cargo xtask test";
const CI: &str = ".ci/run";

pub fn check(repository: &Repository, report: &mut Report) {
    for path in NEEDED.iter().filter(|path| repository.file(path).is_none()) {
        report.file(path, "is missing: write it");
    }
    for file in repository.files.iter().filter(|file| file.path.ends_with(".md")) {
        let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for (line, target) in relative_links(&file.text) {
            if !repository.exists(&directory.join(&target)) {
                report.line(&file.path, line, &format!("the link to `{target}` leads nowhere"));
            }
        }
    }
    if let Some(readme) = repository.file("README.md")
        && !readme.text.lines().any(|line| line == COMMAND)
    {
        report.file("README.md", &format!("has no line that is exactly `{COMMAND}`"));
    }
    check_ci(repository, report);
}

/// CI that runs something else than people do proves nothing about what people run.
fn check_ci(repository: &Repository, report: &mut Report) {
    let Some(ci) = repository.file(CI) else { return report.file(CI, "is missing: write it") };
    if !repository.is_executable(CI) {
        report.file(CI, &format!("is not executable: chmod +x {CI}"));
    }
    if !ci.text.lines().any(|line| line == COMMAND) {
        report.file(CI, &format!("has no line that is exactly `{COMMAND}`"));
    }
    for line in other_cargo_commands(ci) {
        report.line(CI, line, &format!("runs something beside `{COMMAND}`: make it a step of that"));
    }
}

fn other_cargo_commands(ci: &File) -> Vec<usize> {
    let other = |line: &str| line.trim_start().starts_with("cargo ") && line != COMMAND;
    (1..).zip(ci.text.lines()).filter(|(_, line)| other(line)).map(|(number, _)| number).collect()
}

/// Targets of links and images that are files of this repository, without their `#anchor`.
fn relative_links(markdown: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(markdown.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second part between backticks is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let reference =
            prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        for target in inline.chain(reference) {
            let target = target.trim().split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !elsewhere {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_links_to_elsewhere_are_not() {
        let text = "See [a](docs/a.md#x \"title\") and ![b](b.png).\n\
                    [c](https://sqlite.org) [d](#below) [e](mailto:x@example.org) `[f](f.md)`\n\
                    ```\n[g](g.md)\n```\n[`h`](h.md)\n[i]: i.md\n";
        let links = [(1, "docs/a.md"), (1, "b.png"), (6, "h.md"), (7, "i.md")];
        assert_eq!(relative_links(text), links.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn ci_runs_one_cargo_command() {
        let lines = |text: &str| other_cargo_commands(&File::new(CI, text));
        assert!(lines("# cargo build\ncargo xtask test\n").is_empty());
        assert_eq!(lines("cargo xtask test\n    cargo build\ncargo xtask test --quick\n"), [2, 3]);
    }
}
