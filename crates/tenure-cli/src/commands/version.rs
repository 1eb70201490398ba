//! `tenure version`: which build this is, and which stores it knows.

use serde_json::json;

use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::output;

pub fn version(global: &Global) -> Result<Exit, Failure> {
    let (version, stores) = (env!("CARGO_PKG_VERSION"), tenure::schemes());
    match global.json {
        true => output::json(&json!({"version": version, "stores": stores}))?,
        false => output::say(format!("tenure {version} (stores: {})", stores.join(", ")))?,
    }
    Ok(Exit::DONE)
}
