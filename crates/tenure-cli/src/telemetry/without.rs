//! Without OpenTelemetry: there is nobody to send spans to.

use super::Listener;

/// There is none.
pub enum Exporter {}

pub const fn from_environment() -> Option<(Listener, Exporter)> {
    None
}

impl Exporter {
    pub const fn end(self) {
        match self {}
    }
}
