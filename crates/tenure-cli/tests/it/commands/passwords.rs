//! The password of a store: from where it is taken, and where it is never seen.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;
use tenure_testkit::server::{MariaDb, Postgres};

use super::stage::{Reaped, Said, command, tenure, until};

/// Has everything that means something in a URL, and nothing else on this machine holds it.
const PASSWORD: &str = "0nly-h3re:@/?#%&-of-the-store";
/// The part of it that is the same however it is written.
const TRACE: &str = "0nly-h3re";

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// Asks who leads, and sees to it that nothing is told of the password.
#[track_caller]
fn leader(url: &str, change: impl FnOnce(&mut Command) -> &mut Command) -> Said {
    let mut command = command();
    command.args(["leader", "nightly", "--store", url]);
    let said = Said::of(&change(&mut command).output().unwrap());
    assert!(!said.out.contains(TRACE) && !said.err.contains(TRACE), "{said:?}");
    said
}

#[test]
fn it_comes_from_the_environment_or_from_a_file_that_a_flag_the_environment_or_the_settings_name() {
    let server = Postgres::start_protected(PASSWORD);
    let url = server.url();
    let nobody = |said: Said| said.refused(69, "has no schema \"tenure\"");
    nobody(leader(&url, |command| command.env("TENURE_STORE_PASSWORD", PASSWORD)));
    for text in [PASSWORD.to_owned(), format!("{PASSWORD}\n"), format!("{PASSWORD}\r\n")] {
        let file = file(&text);
        nobody(leader(&url, |command| command.arg("--store-password-file").arg(file.path())));
    }
    let password = file(PASSWORD);
    nobody(leader(&url, |command| command.env("TENURE_STORE_PASSWORD_FILE", password.path())));
    let settings = file(&format!("store-password-file = \"{}\"\n", password.path().display()));
    nobody(leader(&url, |command| command.arg("--config").arg(settings.path())));
    // The file goes first.
    nobody(leader(&url, |command| {
        command.env("TENURE_STORE_PASSWORD", "another").arg("--store-password-file").arg(password.path())
    }));
    // Nor does it appear when everything is told that can be.
    nobody(leader(&url, |command| command.arg("-vvv").env("TENURE_STORE_PASSWORD", PASSWORD)));
}

#[test]
fn it_comes_from_where_the_tools_of_the_database_look_for_it() {
    use std::os::unix::fs::PermissionsExt;
    let server = Postgres::start_protected(PASSWORD);
    let (url, nothing) = (server.url(), "asks for a password, and there is none");
    leader(&url, |command| command.env("PGPASSWORD", PASSWORD)).refused(69, "has no schema");
    let escaped = PASSWORD.replace(':', "\\:");
    let passwords = file(&format!("*:*:*:someone:other\n127.0.0.1:*:postgres:postgres:{escaped}\n"));
    let from_file = || leader(&url, |command| command.env("PGPASSFILE", passwords.path()));
    from_file().refused(69, "has no schema");
    // What others may read is no secret, and `psql` ignores it too.
    std::fs::set_permissions(passwords.path(), PermissionsExt::from_mode(0o644)).unwrap();
    from_file().refused(69, nothing);
    // Ours goes first.
    let said =
        leader(&url, |command| command.env("PGPASSWORD", PASSWORD).env("TENURE_STORE_PASSWORD", "another"));
    said.refused(69, "password authentication failed");
    leader(&url, |command| command.env("PGSSLMODE", "verify-ca")).refused(2, "PGSSLMODE=verify-ca");
}

#[test]
fn the_variable_of_the_mysql_client_is_read_for_both_schemes_and_ours_goes_first() {
    let server = MariaDb::start();
    let url = server.url_as("keeper");
    for url in [url.clone(), url.replace("mysql://", "mariadb://")] {
        leader(&url, |command| command).refused(69, "keeper");
        leader(&url, |command| command.env("MYSQL_PWD", "secret")).refused(69, "none of Tenure's tables");
        let said = leader(&url, |command| {
            command.env("MYSQL_PWD", "secret").env("TENURE_STORE_PASSWORD", "another")
        });
        said.refused(69, "keeper");
    }
}

#[test]
fn a_wrong_one_is_refused_by_the_store_and_not_repeated() {
    let server = Postgres::start_protected("right");
    let words = "password authentication failed";
    let url = server.url();
    leader(&url, |command| command.env("TENURE_STORE_PASSWORD", PASSWORD)).refused(69, words);
    let wrong = file(PASSWORD);
    leader(&url, |command| command.arg("--store-password-file").arg(wrong.path())).refused(69, words);
    // Another one: whoever writes a password into a command line is seen by everybody, also by the test below.
    let said = leader(&server.url_as("postgres:h4lf-public"), |command| command).refused(69, words);
    assert!(!said.err.contains("h4lf-public"), "{said:?}");
    leader(&url, |command| command).refused(69, "asks for a password, and there is none");
    // What stands in the URL goes first.
    let url = server.url_as("postgres:right");
    leader(&url, |command| command.env("TENURE_STORE_PASSWORD", PASSWORD)).refused(69, "has no schema");
    // Waiting would not make it right.
    let run = command()
        .args(["run", "--election", "nightly", "--store", &server.url(), "--", "true"])
        .env("TENURE_STORE_PASSWORD", PASSWORD)
        .output();
    let said = Said::of(&run.unwrap()).refused(69, words);
    assert!(!said.err.contains(TRACE), "{said:?}");
}

#[test]
fn a_file_without_one_is_a_matter_of_usage() {
    let url = "postgres://me@127.0.0.1:1/db";
    tenure(&["nodes", "--store", url, "--store-password-file", "/no/such"])
        .refused(2, "`/no/such` cannot be read: No such file");
    let empty = file("\n");
    let path = empty.path().to_str().unwrap();
    tenure(&["nodes", "--store", url, "--store-password-file", path]).refused(2, "the file is empty");
    let said = leader("postgres://127.0.0.1:1/db", |command| command.env("TENURE_STORE_PASSWORD", PASSWORD));
    said.refused(2, "write postgres://USER@127.0.0.1:1/db");
}

#[test]
fn neither_help_nor_the_settings_show_it() {
    let password = file(PASSWORD);
    for arguments in
        [["--help"].as_slice(), &["run", "--help"], &["config", "show"], &["config", "show", "--json"]]
    {
        let said = command()
            .args(arguments)
            .env("TENURE_STORE", "postgres://me@h1/db")
            .env("TENURE_STORE_PASSWORD", PASSWORD)
            .env("TENURE_STORE_PASSWORD_FILE", password.path())
            .output();
        let said = Said::of(&said.unwrap()).done();
        assert!(!said.out.contains(TRACE), "{said:?}");
        assert!(said.out.contains("store-password-file"), "{said:?}");
    }
}

/// Every process whose command line holds the password, by what `ps` shows.
fn betrayers() -> Vec<String> {
    let shown = Command::new("ps").args(["-eww", "-o", "pid,args"]).output();
    let shown = shown.map(|shown| String::from_utf8_lossy(&shown.stdout).into_owned()).unwrap_or_default();
    assert!(shown.contains("tenure"), "ps shows nothing of use: {shown}");
    shown.lines().filter(|line| line.contains(TRACE)).map(str::to_owned).collect()
}

#[test]
fn the_program_of_run_does_not_see_it_and_its_guardian_can_use_it() {
    let server = Postgres::start_protected(PASSWORD);
    let url = server.url();
    let password = file(PASSWORD);
    let out = NamedTempFile::new().unwrap();
    let script = format!("env > {0}.new; mv {0}.new {0}; exec sleep 1000", out.path().display());
    let run = command()
        .args(["run", "--election", "nightly", "--node", "alpha", "--ttl", "10m", "--store", &url])
        .arg("--store-password-file")
        .arg(password.path())
        // One that nobody uses must not be passed on either.
        .env("TENURE_STORE_PASSWORD", PASSWORD)
        .args(["--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut run = Reaped(run.unwrap());
    let mut environment = String::new();
    until("the program should start", || {
        environment = std::fs::read_to_string(out.path()).unwrap();
        !environment.is_empty()
    });
    assert!(environment.contains("TENURE_TERM=1"), "{environment}");
    assert!(!environment.contains(TRACE) && !environment.contains("PASSWORD"), "{environment}");
    assert_eq!(betrayers(), Vec::<String>::new());
    let asks = || leader(&url, |command| command.env("TENURE_STORE_PASSWORD", PASSWORD));
    assert_eq!(asks().done().out, "alpha\n");
    // Its guardian closes the session long before it would lapse, so it has come in too.
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    until("the guardian should close the session", || asks().code == Some(1));
}
