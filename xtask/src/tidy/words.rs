//! Words that must not stay in the code, or only in one place.

use super::Report;
use super::code::has_word;
use super::repository::{File, Repository};

/// The one crate that may say `unsafe`: what it does with the system is reviewed there.
const UNSAFE_PLACE: &str = "crates/tenure-sys/src/";
/// And the test that forks: nothing but a real fork shows what a child finds.
const FORKING_TEST: &str = "crates/tenure/tests/it/isolation.rs";

const UNFINISHED: [(&str, &str); 4] = [
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "use `tracing`, or delete it"),
    ("#[ignore", "a test that never runs proves nothing: repair it, or delete it"),
];

pub fn check(repository: &Repository, report: &mut Report) {
    for file in repository.rust() {
        for (line, what) in unwanted(file) {
            report.line(&file.path, line, &what);
        }
    }
}

fn unwanted(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.code.lines()) {
        for (word, instead) in UNFINISHED {
            if has_word(line, word) {
                found.push((number, format!("`{word}`: {instead}")));
            }
        }
        if !file.path.starts_with(UNSAFE_PLACE) && file.path != FORKING_TEST && has_word(line, "unsafe") {
            let what =
                format!("`unsafe` is allowed in {UNSAFE_PLACE} only: use what is there, or a safe crate");
            found.push((number, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, source: &str) -> Vec<usize> {
        unwanted(&File::new(path, source)).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn unfinished_code_is_found_and_talk_about_it_is_not() {
        assert_eq!(lines("a.rs", "fn f() {\n    todo!()\n}\n#[ignore = \"slow\"]"), [2, 4]);
        assert!(lines("a.rs", "// todo!()\nlet x = \"dbg!(y)\";\n").is_empty());
    }

    #[test]
    fn unsafe_code_has_one_place() {
        assert_eq!(lines("a.rs", "#![deny(unsafe_code)]\nunsafe { f() }"), [2]);
        assert!(lines("crates/tenure-sys/src/page.rs", "unsafe { f() }").is_empty());
    }
}
