//! What a long-lived command says meanwhile: on stderr, since stdout may be a program's own.

use serde_json::{Map, Value, json};
use tenure::ElectionName;

use crate::output;
use crate::service::Service;

/// Speaks to people, or to programs, and to the service manager.
#[derive(Clone)]
pub struct Voice {
    pub json: bool,
    pub election: ElectionName,
    pub node: String,
}

impl Voice {
    /// Says what happened, in a sentence, and under a name with data for programs.
    pub fn say(&self, event: &str, sentence: &str, data: Value) {
        if self.json {
            let mut told = Map::from_iter([
                (String::from("event"), json!(event)),
                (String::from("time"), json!(output::timestamp(std::time::SystemTime::now()))),
                (String::from("election"), json!(self.election.as_str())),
                (String::from("node"), json!(self.node)),
            ]);
            if let Value::Object(data) = data {
                told.extend(data);
            }
            output::complain(&Value::Object(told).to_string());
        } else {
            output::complain(&format!("tenure: {sentence}"));
        }
        Service.status(sentence);
    }
}
