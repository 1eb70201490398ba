//! The documents that people read: their fenced blocks, and the commands between backticks.
#![allow(dead_code, reason = "every test target uses its own part of it")]

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|place| place.join("README.md").is_file()).unwrap().to_owned()
}

pub struct Document {
    /// Where it is, from the root.
    pub path: String,
    pub blocks: Vec<Block>,
    /// What stands between backticks in its prose, with its line.
    pub spans: Vec<(usize, String)>,
}

/// What stands between two fences.
pub struct Block {
    /// `docs/run.md:3`
    pub place: String,
    /// What the fence says of it.
    pub tag: String,
    pub text: String,
}

/// What a block is, and so what is to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines to type.
    Commands,
    /// What a terminal shows: lines to type after a `$`, and what is answered.
    Session,
    Rust,
    Sql,
    /// Lines to type into the client of a database, after its prompt, and what is answered.
    SqlSession,
    Toml,
    Yaml,
    Json,
    /// A picture, an outline, or what was printed: nothing that anybody would type.
    Text,
}

impl Block {
    /// By what its fence says; a fence that says nothing holds lines to type.
    pub fn kind(&self) -> Option<Kind> {
        let has = |start: &str| self.text.lines().any(|line| line.starts_with(start));
        match self.tag.as_str() {
            "rust" => Some(Kind::Rust),
            "sql" => Some(Kind::Sql),
            "toml" => Some(Kind::Toml),
            "yaml" => Some(Kind::Yaml),
            "json" => Some(Kind::Json),
            "text" if !has("$ ") => Some(Kind::Text),
            "" | "sh" | "console" if has("app=> ") || has("sqlite> ") => Some(Kind::SqlSession),
            "" | "sh" | "console" if has("$ ") => Some(Kind::Session),
            "" | "sh" if PROGRAMS.iter().any(|program| has(program)) => Some(Kind::Commands),
            _ => None,
        }
    }

    /// Lines to type, one command each, without what the shell takes for a comment.
    pub fn commands(&self) -> Vec<String> {
        let whole = self.text.replace("\\\n", " ");
        let lines = whole.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.kind() {
            Some(Kind::Commands) => {
                lines.map(without_comment).filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
            Some(Kind::Session) => {
                lines.filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What a line to type may begin with.
const PROGRAMS: [&str; 2] = ["tenure ", "cargo "];

fn without_comment(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(command, _)| command).trim_end()
}

/// Every document for users and for those who contribute.
pub fn documents() -> Vec<Document> {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for directory in ["docs", "docs/stores"] {
        let entries = std::fs::read_dir(root.join(directory)).unwrap();
        let found = entries.map(|entry| entry.unwrap().path());
        paths.extend(found.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    paths.sort();
    let named = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| read(named(path), &std::fs::read_to_string(path).unwrap())).collect()
}

fn read(path: String, text: &str) -> Document {
    let mut document = Document { path, blocks: Vec::new(), spans: Vec::new() };
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, &mut open) {
            (Some(_), Some(_)) => document.blocks.extend(open.take()),
            (Some(tag), None) => {
                let place = format!("{}:{number}", document.path);
                open = Some(Block { place, tag: tag.trim().to_owned(), text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                let code = line.split('`').skip(1).step_by(2);
                document.spans.extend(code.map(|span| (number, span.to_owned())));
            }
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", document.path);
    document
}
