//! Every `cargo xtask sim` in the documents is run, with fewer seeds.

#[path = "../../../tenure-cli/tests/it/docs/book.rs"]
mod book;

use std::collections::BTreeSet;
use std::process::Command;

/// So many instead of thousands: this is a build without optimisation.
const SEEDS: &str = "20";

#[test]
fn every_simulation_that_the_documents_speak_of_runs() {
    let documents = book::documents();
    let spans = documents.iter().flat_map(|document| document.spans.iter().map(|(_, span)| span.clone()));
    let lines = documents.iter().flat_map(|document| document.blocks.iter().flat_map(book::Block::commands));
    let all = spans.chain(lines).filter_map(|line| line.strip_prefix("cargo xtask sim").map(str::to_owned));
    // Where the prose says `S` for a seed, there is nothing to type.
    let typed: BTreeSet<String> = all.filter(|words| !words.contains(" S") && !words.is_empty()).collect();
    assert!(typed.len() > 8, "only {typed:?} were found");
    for words in typed {
        let mut words: Vec<&str> = words.split_whitespace().collect();
        match words.iter().position(|word| *word == "--seeds") {
            Some(at) => words[at + 1] = SEEDS,
            None if words.contains(&"--seed") => {}
            None => words.extend(["--seeds", SEEDS]),
        }
        let output = Command::new(env!("CARGO_BIN_EXE_tenure-sim")).args(&words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        // A planted bug is there to be found.
        let expected: &[i32] = if words.contains(&"--plant") { &[0, 1] } else { &[0] };
        let code = output.status.code().unwrap();
        assert!(expected.contains(&code), "`sim {}` ends with {code}: {told}", words.join(" "));
        let listed = words.contains(&"--plants");
        assert!(listed || told.contains("trace hash: "), "`sim {}`: {told}", words.join(" "));
    }
}
