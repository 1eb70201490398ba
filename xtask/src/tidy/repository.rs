//! The files that the rules look at.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::code;

/// A text file of the repository.
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// For Rust, the text without comments and strings; the same lines. Otherwise empty.
    pub code: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        let code =
            if path.ends_with(".rs") { code::without_comments_and_strings(text) } else { String::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub fn is_manifest(&self) -> bool {
        self.path == "Cargo.toml" || self.path.ends_with("/Cargo.toml")
    }
}

/// All text files that are, or are about to be, under version control.
pub struct Repository {
    root: PathBuf,
    pub files: Vec<File>,
}

impl Repository {
    pub fn load(root: &Path) -> Result<Self, String> {
        let mut paths = match listed_by_git(root) {
            Some(paths) => paths,
            // An unpacked archive has no history, and the rules hold there too.
            None => {
                walk(root).map_err(|error| format!("cannot list the files of {}: {error}", root.display()))?
            }
        };
        paths.sort();
        paths.dedup();
        // Binary files and files that git still lists but that are gone have no text to check.
        let read = |path: &String| Some(File::new(path, &fs::read_to_string(root.join(path)).ok()?));
        Ok(Self { root: root.to_owned(), files: paths.iter().filter_map(read).collect() })
    }

    /// A repository that is nowhere on disk.
    #[cfg(test)]
    pub fn of(files: Vec<File>) -> Self {
        Self { root: PathBuf::new(), files }
    }

    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether anything, file or directory, is at `path`.
    pub fn exists(&self, path: &Path) -> bool {
        self.root.join(path).exists()
    }

    pub fn is_executable(&self, path: &str) -> bool {
        fs::metadata(self.root.join(path)).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
    }
}

/// Tracked files, and new ones that are not ignored, so that a rule speaks before the commit.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                paths.push(path.to_string_lossy().into_owned());
            } else if entry.file_name() != "target" && entry.file_name() != ".git" {
                directories.push(path);
            }
        }
    }
    Ok(paths)
}
