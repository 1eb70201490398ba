//! Every `cargo` line in the documents is one that works: a chore with flags that it knows, an example that is there.
//! Those that take long are run by `cargo xtask rehearse`.

#[path = "../../crates/tenure-cli/tests/it/docs/book.rs"]
#[allow(
    clippy::unwrap_used,
    reason = "a document that cannot be read ends the chore, or the test, right there"
)]
mod book;

/// Every line, and where it stands.
pub fn lines() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for document in book::documents() {
        let spans =
            document.spans.iter().map(|(number, span)| (format!("{}:{number}", document.path), span.clone()));
        let blocks = document
            .blocks
            .iter()
            .flat_map(|block| block.commands().into_iter().map(|line| (block.place.clone(), line)));
        lines.extend(spans.chain(blocks).filter(|(_, line)| line.starts_with("cargo ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::{CHORES, bench, flakes, test};

    /// Those of others are read from what they say of themselves.
    const SIM: &str = include_str!("../../crates/tenure-sim/src/main.rs");
    const TORTURE: &str = include_str!("../../crates/tenure-torture/src/torture/main.rs");

    #[test]
    fn the_documents_name_only_chores_flags_and_examples_that_exist() {
        let lines = super::lines();
        for (place, line) in &lines {
            let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
            understood(&words).unwrap_or_else(|problem| panic!("{place}: `{line}`: {problem}"));
        }
        assert!(lines.len() > 30, "only {} lines of cargo were found", lines.len());
    }

    fn understood(words: &[String]) -> Result<(), String> {
        let after = |at: usize| words.get(at).map(String::as_str);
        match (after(0), after(1)) {
            (Some("xtask"), Some(chore)) => arguments(chore, &words[2..]),
            // What follows is a line of `tenure`, and checked as one.
            (Some("run"), Some("--")) | (Some("test"), None) => Ok(()),
            (Some("run"), Some("--example")) => {
                there(&format!("crates/tenure/examples/{}.rs", after(2).unwrap_or("")))
            }
            (Some("install"), Some("--path")) => there(&format!("{}/Cargo.toml", after(2).unwrap_or(""))),
            _ => Err("nothing is known of it".to_owned()),
        }
    }

    fn arguments(chore: &str, words: &[String]) -> Result<(), String> {
        match chore {
            "test" => test::understands(words),
            "bench" => bench::understands(words),
            "flakes" => flakes::understands(words),
            "sim" => told_of(SIM, words),
            "torture" => told_of(TORTURE, words),
            known if CHORES.contains(&known) && words.is_empty() => Ok(()),
            _ => Err(format!("there is no chore `{chore}` with these words")),
        }
    }

    /// Its help names every flag.
    fn told_of(help: &str, words: &[String]) -> Result<(), String> {
        let unknown = |flag: &&String| {
            flag.starts_with("--") && !help.split([' ', '[', ']', '\n']).any(|word| word == *flag)
        };
        words.iter().find(unknown).map_or(Ok(()), |flag| Err(format!("there is no flag {flag}")))
    }

    fn there(path: &str) -> Result<(), String> {
        crate::repository().join(path).is_file().then_some(()).ok_or_else(|| format!("there is no {path}"))
    }
}
