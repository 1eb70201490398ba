//! Where the settings in force came from, so that one that cannot work is blamed on what was written, where it was
//! written.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// What to call a setting that was not given as a flag, by its name, such as `renew-every`.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// Of the settings of this subcommand, of which these were in a file.
    pub fn of<'a>(
        command: &Command,
        matches: &ArgMatches,
        from_file: impl Iterator<Item = &'a String>,
        file: &str,
    ) -> Self {
        let from_environment = command.get_arguments().filter_map(|argument| {
            let id = argument.get_id().as_str();
            let variable = argument.get_env()?.to_string_lossy();
            let known = matches.try_contains_id(id).is_ok();
            let set = known && matches.value_source(id) == Some(ValueSource::EnvVariable);
            set.then(|| (id.replace('_', "-"), format!("`{variable}` in the environment")))
        });
        let from_file = from_file.map(|name| (name.clone(), format!("`{name}` in {file}")));
        Self(from_environment.chain(from_file).collect())
    }

    /// What to call a setting, by the library's name for it.
    pub fn name(&self, setting: &str) -> String {
        let name = setting.replace('_', "-");
        self.0.get(&name).cloned().unwrap_or_else(|| format!("`--{name}`"))
    }
}
