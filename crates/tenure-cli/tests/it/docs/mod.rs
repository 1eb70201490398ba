//! What the documents say is true: every command in them runs, every snippet compiles, all SQL is understood.
//!
//! | file | what it holds against reality |
//! |---|---|
//! | `book` | finds the fenced blocks, and the commands between backticks |
//! | `commands` | runs every line of `tenure` on a store of its own; looks for the flags of those in the prose |
//! | `snippets` | Rust, compiled here, and run where nothing but a store is needed |
//! | `statements` | SQL, on the server that it is for |
//! | `data` | settings, JSON and YAML, read by those whom they are for |

mod book;
mod commands;
mod data;
#[path = "../run/place.rs"]
mod place;
mod snippets;
mod statements;

use book::documents;

#[test]
fn every_block_says_what_it_is() {
    let unknown: Vec<String> = documents()
        .iter()
        .flat_map(|document| &document.blocks)
        .filter(|block| block.kind().is_none())
        .map(|block| format!("{} (```{})", block.place, block.tag))
        .collect();
    assert!(
        unknown.is_empty(),
        "nothing checks these; tag them rust, sql, toml, yaml, json or text: {unknown:#?}"
    );
}
