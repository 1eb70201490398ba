//! `tenure config show`: every setting that is in force, and where it came from. Beside it, the
//! configurations of load balancers.

pub mod balancer;
mod envoy;
mod haproxy;
mod nginx;

use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure_core::Settings;

use crate::cli::{Command, Config};
use crate::failure::{Exit, Failure};
use crate::output::{self, FAINT, Table, styled};
use crate::settings::{InForce, Loaded};

pub fn show(loaded: &Loaded) -> Result<Exit, Failure> {
    let settings: Vec<InForce> =
        loaded.in_force().into_iter().map(|setting| whole(setting, loaded)).collect();
    if loaded.cli.global.json {
        let entry =
            |setting: InForce| (setting.name, json!({"value": setting.value, "source": setting.source}));
        let object: Map<String, Value> = settings.into_iter().map(entry).collect();
        return output::json(&object).map(|()| Exit::DONE);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "SOURCE"]);
    for InForce { name, value, source } in settings {
        let value = value.unwrap_or_else(|| String::from("-"));
        let source = if source == "default" { styled(FAINT, source) } else { source };
        table.row(vec![name, value, source]);
    }
    table.print().map(|()| Exit::DONE)
}

/// A setting with the default that is worked out from something else.
fn whole(setting: InForce, loaded: &Loaded) -> InForce {
    let value = setting.value.clone().or_else(|| default(&setting.name, loaded));
    InForce { value, ..setting }
}

fn default(name: &str, loaded: &Loaded) -> Option<String> {
    let Command::Config(Config::Show(show)) = &loaded.cli.command else { return None };
    let defaults = Settings::new(show.node.ttl);
    match name {
        // Without a state directory there is no default store, and every command says so.
        "store" => tenure::default_path().ok().map(|path| format!("sqlite:{}", path.display())),
        "node" => Some(String::from("(host name and a random word)")),
        "renew-every" => Some(written(defaults.renew_every)),
        "poll-every" => Some(written(defaults.poll_every)),
        "restart" => Some(String::from("never (with --partitions: on-failure)")),
        _ => None,
    }
}

/// A length of time as it is written in settings.
fn written(time: Duration) -> String {
    humantime::format_duration(Duration::from_millis(output::millis(time))).to_string()
}
