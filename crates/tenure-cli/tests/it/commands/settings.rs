//! Settings: flag > environment > file > default.

use std::path::Path;

use serde_json::{Value, json};

use super::stage::{Said, command, tenure};

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn show(arguments: &[&str], environment: &[(&str, &str)]) -> Said {
    let words = ["config", "show", "--json"].iter().chain(arguments);
    Said::of(&command().args(words).envs(environment.iter().copied()).output().unwrap())
}

fn setting(value: &str, source: &str) -> Value {
    json!({"value": value, "source": source})
}

#[test]
fn a_flag_goes_before_the_environment_that_before_the_file_and_that_before_the_default() {
    let file = file("ttl = \"20s\"\n");
    let path = file.path().to_str().unwrap();
    let environment = [("TENURE_TTL", "30s")];
    let ttl = |said: Said| said.done().json()["ttl"].clone();
    assert_eq!(ttl(show(&[], &[])), setting("10s", "default"));
    assert_eq!(ttl(show(&["--config", path], &[])), setting("20s", &format!("file {path}")));
    assert_eq!(ttl(show(&["--config", path], &environment)), setting("30s", "environment TENURE_TTL"));
    assert_eq!(ttl(show(&["--config", path, "--ttl", "40s"], &environment)), setting("40s", "flag"));
}

#[test]
fn what_is_set_for_all_commands_may_stand_in_the_file_too() {
    let file = file("store = \"sqlite:/x/y.db\"\nnamespace = \"blue\"\npriority = -3\neligible = false\n");
    let path = file.path().to_str().unwrap();
    let shown = show(&[], &[("TENURE_CONFIG", path)]).done().json();
    let source = format!("file {path}");
    assert_eq!(shown["store"], setting("sqlite:/x/y.db", &source));
    assert_eq!(shown["namespace"], setting("blue", &source));
    assert_eq!(shown["priority"], setting("-3", &source));
    assert_eq!(shown["eligible"], setting("false", &source));
}

#[test]
fn defaults_that_follow_from_others_are_worked_out() {
    let shown = show(&["--ttl", "6s"], &[("XDG_STATE_HOME", "/state")]).done().json();
    assert_eq!(shown["renew-every"], setting("2s", "default"));
    assert_eq!(shown["poll-every"], setting("1s", "default"));
    assert_eq!(shown["store"], setting("sqlite:/state/tenure/tenure.db", "default"));
    assert_eq!(shown["node"], setting("(host name and a random word)", "default"));
    assert_eq!(shown["address"], json!({"value": null, "source": "default"}));
}

#[test]
fn settings_are_shown_in_a_table_for_people() {
    let said = tenure(&["config", "show", "--priority", "7"]).done();
    assert!(said.out.starts_with("SETTING"), "{said:?}");
    let row = said.out.lines().find(|line| line.starts_with("priority")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["priority", "7", "flag"]);
    assert!(!said.out.contains('\u{1b}'));
}

#[test]
fn passwords_are_not_shown() {
    let said = show(&["--store", "postgres://me:secret@h1,h2/db"], &[]).done();
    assert_eq!(said.json()["store"]["value"], "postgres://me:***@h1,h2/db");
}

#[test]
fn an_unknown_key_in_the_file_is_refused_with_the_one_that_was_meant() {
    let file = file("ttl = \"10s\"\nrenew_evry = \"1s\"\n");
    let path = file.path().to_str().unwrap();
    tenure(&["config", "show", "--config", path])
        .refused(2, "unknown key `renew_evry`; did you mean `renew-every`?")
        .refused(2, path);
}

#[test]
fn a_wrong_value_in_the_file_is_refused_as_on_the_command_line() {
    let file = file("ttl = \"soon\"\n");
    let path = file.path().to_str().unwrap();
    tenure(&["config", "show", "--config", path]).refused(2, "'soon'").refused(2, path);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    tenure(&["nodes", "--config", "/no/such.toml"]).refused(2, "`/no/such.toml` cannot be read");
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/tenure.toml");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_example_file_holds_every_default() {
    let file = file(&example());
    let path = file.path().to_str().unwrap();
    let (defaults, told) = (show(&[], &[]).done().json(), show(&["--config", path], &[]).done().json());
    for (name, default) in defaults.as_object().unwrap() {
        assert_eq!(told[name]["value"], default["value"], "{name}");
    }
}

#[test]
fn the_example_file_names_every_setting_and_each_can_be_switched_on() {
    let is_setting = |line: &str| {
        line.split_once(" = ")
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
    };
    let switched_on: Vec<String> = example()
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line).to_owned())
        .collect();
    let file = file(&switched_on.join("\n"));
    let path = file.path().to_str().unwrap();
    let told = show(&["--config", path], &[]).done().json();
    for (name, setting) in told.as_object().unwrap() {
        assert_eq!(setting["source"], format!("file {path}"), "{name}");
    }
}
