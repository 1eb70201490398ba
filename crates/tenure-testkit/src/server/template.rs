//! A server's first data, made once and copied for every server of its kind: to make it takes longer than most
//! tests do.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::process::succeed;

/// Puts `data` into a directory: a copy of what [`shared`] has.
pub(super) fn copied(program: &Path, recipe: &str, directory: &Path, make: impl FnOnce(&Path)) {
    let template = shared(program, recipe, make);
    succeed(Command::new("cp").arg("--archive").arg(&template).arg(directory.join("data")));
}

/// What `make` puts into `data` of a directory with this program, unless a test before has had it do so. The recipe is
/// whatever tells how. It is shared by all tests, so nobody may change it.
pub(super) fn shared(program: &Path, recipe: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let template = place().join(name(program, recipe));
    if !template.is_dir() {
        // Many tests begin at once, each in a process of its own.
        let lock =
            File::create(template.with_extension("lock")).expect("a file can be made beside the tests");
        lock.lock().expect("a file can be locked");
        if !template.is_dir() {
            made(&template, make);
        }
    }
    template
}

/// Not in its place before it is whole. Nor made there: servers run as users who may not go there.
fn made(template: &Path, make: impl FnOnce(&Path)) {
    let elsewhere = TempDir::with_prefix("tenure-template-").expect("there is a place for temporary files");
    make(elsewhere.path());
    let draft = template.with_extension("draft");
    // Of a test that was interrupted.
    let _ = std::fs::remove_dir_all(&draft);
    succeed(Command::new("cp").arg("--archive").arg(elsewhere.path().join("data")).arg(&draft));
    std::fs::rename(&draft, template).expect("a directory can be renamed");
}

/// Beside the tests themselves: so it goes when they do (`cargo clean`).
fn place() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let place = tests.with_file_name("templates");
    std::fs::create_dir_all(&place).expect("a directory can be made beside the tests");
    place
}

/// Another program, recipe or user: another template.
fn name(program: &Path, recipe: &str) -> String {
    let file = program.metadata().expect("the program is there");
    let mut hasher = DefaultHasher::new();
    (program, file.len(), file.mtime(), recipe, rustix::process::geteuid().as_raw()).hash(&mut hasher);
    let kind = program.file_name().expect("a program has a name").to_string_lossy();
    format!("{kind}-{:016x}", hasher.finish())
}
