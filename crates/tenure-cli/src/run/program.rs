//! The program that is to be run: found before anybody stands for it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::failure::Failure;

/// Stands for a partition's number in the words of the command.
const PARTITION: &[u8] = b"{partition}";

/// The words of the command, the first one as a path. A program that cannot be run is found out here,
/// while no lease is held for it.
pub fn find(words: &[OsString]) -> Result<Vec<Vec<u8>>, Failure> {
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::Usage(String::from("there is no program to run; put it after `--`")));
    };
    // A name that has a partition's number in it is looked for when that is known.
    let varies = name.as_bytes().windows(PARTITION.len()).any(|part| part == PARTITION);
    let path = if varies { PathBuf::from(name) } else { locate(name)? };
    let mut found = vec![path.into_os_string().into_vec()];
    found.extend(arguments.iter().map(|word| word.as_bytes().to_vec()));
    Ok(found)
}

/// The words for one partition.
pub fn fill(words: &[Vec<u8>], partition: u32) -> Vec<Vec<u8>> {
    let number = partition.to_string();
    words.iter().map(|word| replace(word, PARTITION, number.as_bytes())).collect()
}

fn replace(word: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.windows(what.len()).position(|part| part == what) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(by);
        rest = &rest[at + what.len()..];
    }
    filled.extend_from_slice(rest);
    filled
}

fn locate(name: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match examine(&path) {
            Some(true) => Ok(path),
            Some(false) => Err(not_executable(&path)),
            None => Err(not_found(name, "there is no such file")),
        };
    }
    let places = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let mut found_but_not_executable = None;
    for place in std::env::split_paths(&places) {
        let path = place.join(name);
        match examine(&path) {
            Some(true) => return Ok(path),
            Some(false) => found_but_not_executable = Some(path),
            None => {}
        }
    }
    match found_but_not_executable {
        Some(path) => Err(not_executable(&path)),
        None if Path::new(name).exists() => {
            Err(not_found(name, "it is not on the PATH; for the file here, write ./ before it"))
        }
        None => Err(not_found(name, "it is not on the PATH")),
    }
}

/// Whether a file is there, and may be executed.
fn examine(path: &Path) -> Option<bool> {
    let is_file = std::fs::metadata(path).ok()?.is_file();
    Some(is_file && access(path, Access::EXEC_OK).is_ok())
}

fn not_found(name: &OsStr, why: &str) -> Failure {
    let message = format!("`{}` is not found: {why}", name.display());
    Failure::Program { code: 127, message }
}

fn not_executable(path: &Path) -> Failure {
    let message =
        format!("`{}` cannot be executed; is it a program, and is `chmod +x` missing?", path.display());
    Failure::Program { code: 126, message }
}

/// What the system said when the program was to be started, and what is given back therefore.
pub fn refused(program: &[u8], errno: i32, given_back: &str) -> Failure {
    let name = OsStr::from_bytes(program).display().to_string();
    let error = std::io::Error::from_raw_os_error(errno);
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Failure::Program {
        code,
        message: format!("`{name}` could not be started: {error}; {given_back} given back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_for_a_partition_is_filled() {
        let filled = |word: &str| String::from_utf8(fill(&[word.into()], 17).remove(0)).unwrap();
        assert_eq!(filled("--part={partition}/{partition}"), "--part=17/17");
        assert_eq!(filled("{partition"), "{partition");
        assert_eq!(filled(""), "");
    }
}
