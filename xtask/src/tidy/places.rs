//! What belongs to one machine stays there: its directories, its mirrors, its registries.

use super::Report;
use super::repository::{File, Repository};

/// Directories of somebody's machine. Written in halves, or this file would break its own rule.
const DIRECTORIES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Where packages come from is the machine's choice, made in its own configuration.
const PACKAGE_HOSTS: [&str; 9] = [
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("archive.", "ubuntu.com"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("repo.maven.", "apache.org"),
];

/// Words in a host's name that give away a mirror or a registry.
const GIVEAWAYS: [&str; 6] = ["mirror", "registry", "artifactory", "nexus", "proxy", "pypi"];

/// Ends of names that only one network knows.
const PRIVATE_ENDS: [&str; 5] = [".internal", ".corp", ".lan", ".intranet", ".local"];

/// Names that nobody can own, for documents and tests.
const EXAMPLE_ENDS: [&str; 6] =
    ["example.com", "example.net", "example.org", ".example", ".test", ".invalid"];

/// How a lock file names crates.io, whatever mirror the machine took it from.
const CRATES_IO: &str = "\"registry+https://github.com/rust-lang/crates.io-index\"";

pub fn check(repository: &Repository, report: &mut Report) {
    for file in &repository.files {
        for (line, what) in private_places(file) {
            report.line(&file.path, line, &what);
        }
    }
}

fn private_places(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for directory in DIRECTORIES.iter().filter(|directory| names_directory(line, directory)) {
            found.push((
                number,
                format!("`{directory}` is a place on one machine: use a relative path, or ~"),
            ));
        }
        for host in hosts(line).filter(|host| is_private(host)) {
            found.push((number, format!("`{host}` is where one machine gets its packages: leave it out")));
        }
        if file.path.ends_with("Cargo.lock") && is_foreign_source(line) {
            found.push((number, "a package from another registry than crates.io: lock it again".to_owned()));
        }
        let sets_registry =
            ["[source.", "[registry", "[registries"].iter().any(|table| line.trim().starts_with(table));
        if file.path.contains(".cargo/config") && sets_registry {
            found.push((number, "a registry belongs in the machine's own cargo configuration".to_owned()));
        }
    }
    found
}

/// Only at the start of a path: `https://…` may have a directory of that name deeper down.
fn names_directory(line: &str, directory: &str) -> bool {
    let inside_path = |c: char| c.is_alphanumeric() || "._-~}>*".contains(c);
    line.match_indices(directory).any(|(at, _)| !line[..at].ends_with(inside_path))
}

/// The hosts of all URLs in `line`.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.split("://").skip(1).map(|rest| {
        let is_authority = |c: char| c.is_alphanumeric() || ".-_@:".contains(c);
        let authority = rest.split(|c| !is_authority(c)).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        host.split(':').next().unwrap_or_default().trim_end_matches('.')
    })
}

fn is_private(host: &str) -> bool {
    if EXAMPLE_ENDS.iter().any(|end| host.ends_with(end)) {
        return false;
    }
    // A bare name, as in `zk://proxy`, is somebody's example and leads nowhere.
    let gives_itself_away = host.contains('.') && GIVEAWAYS.iter().any(|word| host.contains(word));
    PACKAGE_HOSTS.contains(&host) || gives_itself_away || PRIVATE_ENDS.iter().any(|end| host.ends_with(end))
}

fn is_foreign_source(line: &str) -> bool {
    line.strip_prefix("source = ").is_some_and(|source| source.trim() != CRATES_IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        private_places(&File::new(path, text)).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn directories_of_one_machine_are_found() {
        for directory in DIRECTORIES {
            assert_eq!(lines("a.md", &format!("\nin {directory}x")), [2]);
            assert_eq!(lines("a.md", &format!("sqlite:{directory}x")), [1]);
            assert_eq!(lines("a.md", &format!("file://{directory}x")), [1]);
            assert!(lines("a.md", &format!("https://sqlite.org{directory}x")).is_empty());
        }
    }

    #[test]
    fn package_hosts_and_mirrors_are_found_and_documents_are_not() {
        for host in PACKAGE_HOSTS {
            assert_eq!(lines("a.md", &format!("http://{host}/x")), [1]);
        }
        assert_eq!(
            lines("a.toml", &format!("x = \"sparse+https://me@crates.{}.net:8080/i\"", "mirror")),
            [1]
        );
        assert_eq!(lines("a.toml", &format!("x = \"http://builds.{}/\"", "internal")), [1]);
        let fine = "https://sqlite.org/wal.html https://github.com/tenure-rs/tenure \
                    https://crates.io/crates/tenure http://127.0.0.1:8001 https://proxy.example.com";
        assert!(lines("README.md", fine).is_empty());
    }

    #[test]
    fn a_lock_file_and_cargos_configuration_know_crates_io_only() {
        assert!(lines("Cargo.lock", &format!("source = {CRATES_IO}")).is_empty());
        assert_eq!(lines("Cargo.lock", "source = \"git+https://github.com/a/b#c\""), [1]);
        assert_eq!(lines(".cargo/config.toml", "[alias]\n[source.crates-io]"), [2]);
    }
}
