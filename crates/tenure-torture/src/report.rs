//! What a candidate says: one line of JSON per event, with when and who.

use std::io::Write;

use serde_json::{Value, json};
use tenure_store::clock;

/// Says that `event` happened. If nobody listens any more, there is no reason to speak.
pub fn say(event: &str, more: Value) {
    let mut line = json!({ "event": event, "at": clock::now().as_nanos(), "pid": std::process::id() });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    // One write per line, so that lines of different threads do not mix.
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}
