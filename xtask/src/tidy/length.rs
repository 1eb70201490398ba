//! Files hold one idea, and functions fit on a screen or two.

use std::collections::BTreeMap;

use super::Report;
use super::repository::{File, Repository};

const FILE_LIMIT: usize = 700;
/// Without the tests at its end; above this, a file is only named.
const FILE_WARNING: usize = 400;
const FUNCTION_LIMIT: usize = 100;

/// What is tolerated above the limits: a thing, as it is called here, and its length.
const ALLOWANCES: &str = "xtask/tidy-allow.txt";

pub fn check(repository: &Repository, report: &mut Report) {
    let text = repository.file(ALLOWANCES).map_or("", |file| file.text.as_str());
    let mut ratchet = Ratchet::read(text, report);
    for file in repository.rust() {
        let path = &file.path;
        let lines = file.text.lines().count();
        if lines > FILE_LIMIT && !ratchet.tolerates(&format!("file {path}"), lines, report) {
            report.file(path, &format!("{lines} lines, and {FILE_LIMIT} are allowed: split it by idea"));
        } else if lines_before_tests(&file.code) > FILE_WARNING {
            let lines = lines_before_tests(&file.code);
            report.warn(path, &format!("{lines} lines without tests; aim for {FILE_WARNING}"));
        }
        for Function { name, line, length } in functions(file) {
            let thing = format!("function {path} {name}");
            if length > FUNCTION_LIMIT && !ratchet.tolerates(&thing, length, report) {
                let what =
                    format!("`{name}` has {length} lines, and {FUNCTION_LIMIT} are allowed: name its parts");
                report.line(path, line, &what);
            }
        }
    }
    ratchet.finish(report);
}

/// The list of what is tolerated. It turns one way: whatever shrank must not grow back.
struct Ratchet {
    allowed: BTreeMap<String, usize>,
}

impl Ratchet {
    fn read(text: &str, report: &mut Report) -> Self {
        let mut allowed = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                [thing @ .., length] => match length.parse() {
                    Ok(length) => _ = allowed.insert(thing.join(" "), length),
                    Err(_) => report.line(ALLOWANCES, number, "a line ends with a number of lines"),
                },
            }
        }
        Self { allowed }
    }

    /// Whether `thing` is on the list, and no longer than there. If it is shorter, so must the
    /// list become.
    fn tolerates(&mut self, thing: &str, length: usize, report: &mut Report) -> bool {
        let Some(allowed) = self.allowed.remove(thing) else { return false };
        if length < allowed {
            report.file(ALLOWANCES, &format!("well done; lower the number: `{thing} {length}`"));
        }
        length <= allowed
    }

    /// Whatever is left on the list is gone, or within the limits.
    fn finish(self, report: &mut Report) {
        for thing in self.allowed.keys() {
            report.file(ALLOWANCES, &format!("`{thing}` keeps the limits now: delete its line"));
        }
    }
}

fn lines_before_tests(code: &str) -> usize {
    code.lines().take_while(|line| line.trim() != "#[cfg(test)]").count()
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    length: usize,
}

/// Every function with a body, from the line of its `fn` to the line of its closing brace.
fn functions(file: &File) -> Vec<Function> {
    let code = &file.code;
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = code[at + 3..].chars().take_while(|&c| is_word(c)).collect();
        // `fn` at the end of a longer word, or a `$name` in a macro.
        if name.is_empty() || code[..at].ends_with(is_word) {
            continue;
        }
        if let Some(end) = end_of_function(&code[at..]) {
            let newlines = |text: &str| text.matches('\n').count();
            let line = 1 + newlines(&code[..at]);
            found.push(Function { name, line, length: 1 + newlines(&code[at..at + end]) });
        }
    }
    found
}

/// Where the body that starts after `signature` closes; `None` for a function without one.
fn end_of_function(signature: &str) -> Option<usize> {
    let mut parentheses = 0;
    let mut braces = 0;
    for (at, c) in signature.char_indices() {
        match c {
            '(' | '[' => parentheses += 1,
            ')' | ']' => parentheses -= 1,
            // `[u8; 4]` in the signature does not end it.
            ';' if parentheses == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(at),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(source: &str) -> Vec<(String, usize, usize)> {
        let file = File::new("a.rs", source);
        functions(&file).into_iter().map(|found| (found.name, found.line, found.length)).collect()
    }

    #[test]
    fn a_function_reaches_to_its_own_closing_brace() {
        let source = "fn a() {\n    if b { c(\"}\") }\n    // }\n}\n\n\
                      pub async fn d<'x>(\n    x: [u8; 4],\n) -> T\n{\n}\n";
        assert_eq!(lengths(source), [("a".to_owned(), 1, 4), ("d".to_owned(), 6, 5)]);
    }

    #[test]
    fn declarations_and_function_types_have_no_length() {
        assert!(lengths("trait T {\n    fn a(&self);\n}\ntype F = fn (u8);\n").is_empty());
        assert_eq!(lengths("fn outer() {\n    fn inner() {}\n}\n").len(), 2);
    }

    fn problems(length: usize, list: &str, text: &str) -> Vec<String> {
        let body = "    x();\n".repeat(length - 2);
        let file = File::new("a.rs", &format!("fn long() {{\n{body}}}\n{text}"));
        let mut report = Report::default();
        check(&Repository::of(vec![file, File::new(ALLOWANCES, list)]), &mut report);
        report.problems
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_above_it_fails() {
        assert!(problems(100, "", "").is_empty());
        assert_eq!(problems(101, "", "").len(), 1);
        assert!(problems(101, "", "")[0].starts_with("a.rs:1: `long` has 101 lines"));
    }

    #[test]
    fn what_is_tolerated_can_only_shrink() {
        assert!(problems(120, "# why\nfunction a.rs long 120\n", "").is_empty());
        assert_eq!(problems(121, "function a.rs long 120\n", "").len(), 1);
        assert!(problems(110, "function a.rs long 120\n", "")[0].contains("`function a.rs long 110`"));
        assert!(problems(90, "function a.rs long 120\n", "")[0].contains("delete its line"));
    }

    #[test]
    fn a_file_over_the_limit_fails_and_a_long_one_is_named() {
        assert!(problems(100, "", &"// x\n".repeat(601))[0].starts_with("a.rs: 701 lines"));
        let mut report = Report::default();
        let file = File::new("a.rs", &format!("{}#[cfg(test)]\nmod tests {{}}\n", "x!();\n".repeat(401)));
        check(&Repository::of(vec![file]), &mut report);
        assert_eq!(report.warnings, ["a.rs: 401 lines without tests; aim for 400"]);
        assert!(report.problems.is_empty());
    }
}
