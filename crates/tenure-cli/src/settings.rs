//! Settings: flag > environment > file > default, and where each value came from.
//!
//! The command line is parsed first. What neither a flag nor the environment has said is then taken
//! from the file, as if it had been a flag, and everything is parsed once more: so a value in the
//! file is understood, and refused, exactly as on the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::credentials::hide_secrets;
use crate::failure::Failure;
use crate::origins::Origins;

/// A command line that was understood.
pub struct Loaded {
    pub cli: Cli,
    matches: ArgMatches,
    from_file: BTreeMap<String, String>,
    file: Option<String>,
}

/// Why there is none.
pub enum Refused {
    /// What clap has to say: help, a version, or an error.
    Clap(Box<clap::Error>),
    /// What is wrong with the file.
    File(Failure),
}

impl Refused {
    pub fn say(&self) -> std::process::ExitCode {
        match self {
            Self::Clap(error) => {
                // Nobody may be reading.
                let _ = error.print();
                std::process::ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            }
            Self::File(failure) => failure.say(false),
        }
    }
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::Clap(Box::new(error))
    }
}

/// What is set on the command line only, or says where the rest is.
const NOT_IN_A_FILE: [&str; 4] = ["config", "json", "verbose", "help"];

/// Understands a command line.
pub fn load(arguments: impl IntoIterator<Item = OsString>) -> Result<Loaded, Refused> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let strict = Cli::command().try_get_matches_from(&arguments);
    let matches = match strict {
        // The file may have what is missing; if not, the second parse says so.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let lenient = Cli::command().ignore_errors(true).try_get_matches_from(&arguments)?;
            if lenient.get_one::<std::path::PathBuf>("config").is_none() {
                return Err(error.into());
            }
            lenient
        }
        parsed => parsed.map_err(|error| blame(advise(error, &arguments), &arguments))?,
    };
    let Some(file) = matches.get_one::<std::path::PathBuf>("config").cloned() else {
        return Loaded::of(matches, BTreeMap::new(), None);
    };
    let shown = file.display().to_string();
    let told = read(&file).map_err(Refused::File)?;
    let (command, innermost) = innermost(Cli::command(), &matches);
    let wanted: BTreeMap<_, _> = told
        .into_iter()
        .filter(|(name, _)| {
            let id = name.replace('-', "_");
            let takes = command.get_arguments().any(|known| known.get_id() == id.as_str())
                || Cli::command().get_arguments().any(|known| known.get_id() == id.as_str());
            takes && !said(innermost, &id)
        })
        .collect();
    let at = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let flags = wanted.iter().map(|(name, value)| OsString::from(format!("--{name}={value}")));
    // Before the program of `run`, whose own flags are not ours.
    let at = first_free_word(&arguments, at);
    arguments.splice(at..at, flags);
    let parsed = Cli::command().try_get_matches_from(&arguments);
    let matches = parsed.map_err(|error| {
        if error.kind() == ErrorKind::MissingRequiredArgument {
            return error.into();
        }
        let problem = error.to_string();
        let problem = problem.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Refused::File(Failure::Usage(format!("{shown}: {problem}")))
    })?;
    Loaded::of(matches, wanted, Some(shown))
}

/// A value that came from the environment is the environment's, and not that of a flag that nobody gave.
fn blame(error: clap::Error, arguments: &[OsString]) -> Refused {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let given =
        arguments.iter().filter_map(|word| word.to_str()).any(|word| word.split('=').next() == Some(flag));
    let variable = format!("TENURE_{}", flag.trim_start_matches('-').replace('-', "_").to_ascii_uppercase());
    if flag.is_empty() || given || std::env::var(&variable).is_ok_and(|set| set != value) {
        return error.into();
    }
    if std::env::var_os(&variable).is_none() {
        return error.into();
    }
    let problem = error.to_string();
    let mut lines = problem.lines().map(str::trim);
    let problem = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let problem = problem.replace(&format!("'{argument}'"), &format!("{variable} in the environment"));
    let allowed = lines.find(|line| line.starts_with("[possible values")).unwrap_or_default();
    Refused::File(Failure::Usage(format!("{problem} {allowed}").trim_end().to_owned()))
}

/// A program that stands where `--` should be is taken for an argument of ours.
fn advise(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let runs = arguments.get(1).is_some_and(|word| word == "run");
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg).cloned()
        && runs
        && error.kind() == ErrorKind::UnknownArgument
        && !word.starts_with('-')
        && !arguments.iter().any(|word| word == "--")
    {
        let advice = format!("the program and its arguments follow `--`: tenure run … -- {word} …");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    }
    error
}

/// Variables that are Tenure's, and no setting of a command.
const OTHER_VARIABLES: [&str; 7] = [
    "TENURE_STORE_PASSWORD",
    "TENURE_LOG",
    "TENURE_DEMO_CUT",
    // What `run` tells its program, which may use this command.
    "TENURE_TERM",
    "TENURE_PARTITION",
    "TENURE_TICK",
    "TENURE_ATTEMPT",
];

/// Warns of variables that look like settings, and are none: most often a slip of the finger.
pub fn warn_of_unknown_variables(json: bool) {
    let known: Vec<String> = known().iter().map(|name| name.replace('-', "_").to_ascii_uppercase()).collect();
    for (name, _) in std::env::vars_os() {
        let Some(setting) = name.to_str().and_then(|name| name.strip_prefix("TENURE_")) else { continue };
        let inner = ["CONFIG", "WITNESS_"].iter().any(|word| setting.starts_with(word));
        let known_to_others = OTHER_VARIABLES.iter().any(|other| name == **other);
        if inner || known_to_others || known.iter().any(|known| known == setting) {
            continue;
        }
        let meant = nearest(setting, &known)
            .map_or(String::new(), |meant| format!("; did you mean `TENURE_{meant}`?"));
        let sentence = format!("warning: TENURE_{setting} in the environment is no setting of Tenure{meant}");
        crate::output::notice(json, &sentence);
    }
}

/// Where flags can be put: right after the words of the subcommand.
fn first_free_word(arguments: &[OsString], end: usize) -> usize {
    let mut command = Cli::command();
    let mut at = end;
    let mut words = arguments.iter().enumerate().take(end).skip(1);
    while let Some((index, word)) = words.next() {
        let Some(word) = word.to_str() else { continue };
        if let Some(flag) = word.strip_prefix("--") {
            // Its value may read like a subcommand.
            let mut known = command.get_arguments();
            if known.any(|known| known.get_long() == Some(flag) && known.get_action().takes_values()) {
                words.next();
            }
            continue;
        }
        let Some(next) = command.find_subcommand(word).cloned() else { continue };
        command = next;
        at = index + 1;
        if !command.has_subcommands() {
            break;
        }
    }
    at
}

/// The subcommand that was asked for, and what was said to it.
fn innermost(mut command: Command, matches: &ArgMatches) -> (Command, &ArgMatches) {
    let mut matches = matches;
    while let Some((name, inner)) = matches.subcommand() {
        match command.find_subcommand(name).cloned() {
            Some(found) => command = found,
            None => break,
        }
        matches = inner;
    }
    (command, matches)
}

/// Whether a flag or the environment has said something.
fn said(matches: &ArgMatches, id: &str) -> bool {
    matches!(source(matches, id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    matches.try_contains_id(id).ok().and_then(|_| matches.value_source(id))
}

/// Every setting that a file may hold, as in the file.
fn known() -> Vec<String> {
    fn collect(command: &Command, names: &mut Vec<String>) {
        let settings = command.get_arguments().filter(|argument| argument.get_env().is_some());
        names.extend(settings.map(|argument| argument.get_id().as_str().replace('_', "-")));
        command.get_subcommands().for_each(|inner| collect(inner, names));
    }
    let mut names = Vec::new();
    collect(&Cli::command(), &mut names);
    names.retain(|name| !NOT_IN_A_FILE.contains(&name.as_str()));
    names.sort_unstable();
    names.dedup();
    names
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("the settings in `{shown}` cannot be read: {error}")))?;
    understand(&text).map_err(|problem| Failure::Usage(format!("{shown}: {problem}")))
}

fn understand(text: &str) -> Result<BTreeMap<String, String>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        format!("line {line}: {}", error.message())
    })?;
    let known = known();
    let mut settings = BTreeMap::new();
    for (key, value) in table {
        let name = key.replace('_', "-");
        if !known.contains(&name) {
            return Err(format!("unknown key `{key}`; {}", suggestion(&name, &known)));
        }
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(truth) => truth.to_string(),
            other => {
                return Err(format!("`{key}` is {}; it must be text, a number or a truth", other.type_str()));
            }
        };
        settings.insert(name, value);
    }
    Ok(settings)
}

fn suggestion(name: &str, known: &[String]) -> String {
    match nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known name that looks most like it, if any does.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    let likeness = |known: &String| strsim::jaro_winkler(name, known);
    known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|best| likeness(best) > 0.7)
}

/// A setting that is in force.
pub struct InForce {
    pub name: String,
    pub value: Option<String>,
    pub source: String,
}

impl Loaded {
    fn of(
        matches: ArgMatches,
        from_file: BTreeMap<String, String>,
        file: Option<String>,
    ) -> Result<Self, Refused> {
        let mut cli = Cli::from_arg_matches(&matches)?;
        let (command, inner) = innermost(Cli::command(), &matches);
        cli.global.origins =
            Origins::of(&command, inner, from_file.keys(), file.as_deref().unwrap_or_default());
        Ok(Self { cli, matches, from_file, file })
    }

    /// Every setting of the subcommand, with its value and where that came from; secrets hidden.
    pub fn in_force(&self) -> Vec<InForce> {
        let (command, matches) = innermost(Cli::command(), &self.matches);
        let root = Cli::command();
        let all = root.get_arguments().chain(command.get_arguments());
        let mut settings: Vec<InForce> = Vec::new();
        for argument in all.filter(|argument| argument.get_env().is_some()) {
            let id = argument.get_id().as_str();
            let name = id.replace('_', "-");
            if settings.iter().any(|known| known.name == name) || name == "config" {
                continue;
            }
            let raw = matches.try_get_raw(id).ok().flatten().and_then(|mut values| values.next());
            let value = raw.map(|value| hide_secrets(&value.to_string_lossy()));
            let variable = argument.get_env().unwrap_or_default().to_string_lossy().into_owned();
            let source = match source(matches, id) {
                Some(_) if self.from_file.contains_key(&name) => {
                    format!("file {}", self.file.as_deref().unwrap_or_default())
                }
                Some(ValueSource::CommandLine) => String::from("flag"),
                Some(ValueSource::EnvVariable) => format!("environment {variable}"),
                _ => String::from("default"),
            };
            settings.push(InForce { name, value, source });
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_suggests_the_nearest() {
        let message = understand("tttl = \"10s\"").unwrap_err();
        assert_eq!(message, "unknown key `tttl`; did you mean `ttl`?");
        assert!(
            understand("zzzzz = 1").unwrap_err().contains("known are address, allow-host, any-path, cgroup")
        );
        assert!(understand("ttl = [1]").unwrap_err().contains("must be text"));
        assert!(understand("ttl = ").unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn a_value_that_reads_like_a_subcommand_is_none() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let at = |line: &str| first_free_word(&words(line), words(line).len());
        assert_eq!(at("tenure --namespace run run --ttl 1s"), 4);
        assert_eq!(at("tenure --namespace=run run"), 3);
        assert_eq!(at("tenure config show"), 3);
    }

    #[test]
    fn every_setting_of_the_contract_may_stand_in_the_file() {
        let known = known();
        let contract = [
            "store",
            "node",
            "address",
            "ttl",
            "renew-every",
            "poll-every",
            "takeover-delay",
            "eligible",
            "priority",
            "failback",
            "namespace",
            "grace",
            "restart",
            "listen",
            "token-file",
            "tls-cert",
            "tls-key",
            "tls-ca",
        ];
        for name in contract {
            assert!(known.iter().any(|known| known == name), "{name}");
        }
    }
}
