//! What the library has to tell: to stderr, for who asks to see it, and to an OpenTelemetry collector, where
//! that is built in and one is named.

#[cfg_attr(feature = "otel", path = "telemetry/otel.rs")]
#[cfg_attr(not(feature = "otel"), path = "telemetry/without.rs")]
mod otel;

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// Somebody who listens.
type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// Ends with the process.
pub struct Telemetry {
    exporter: Option<otel::Exporter>,
}

/// From now on, what is logged is told.
pub fn begin(verbose: u8, json: bool) -> Telemetry {
    let (collector, exporter) = otel::from_environment().unzip();
    let listeners: Vec<Listener> = to_stderr(verbose, json).into_iter().chain(collector).collect();
    if !listeners.is_empty() {
        // There is no other subscriber yet.
        let _ = tracing_subscriber::registry().with(listeners).try_init();
    }
    Telemetry { exporter }
}

impl Telemetry {
    /// What has not been sent yet is sent, if that does not take long.
    pub fn end(self) {
        if let Some(exporter) = self.exporter {
            exporter.end();
        }
    }
}

fn to_stderr(verbose: u8, json: bool) -> Option<Listener> {
    let level = match verbose {
        // Only what keeps everybody from being elected, and what to do about it.
        0 => return Some(layer(EnvFilter::new("tenure_sqlite::lock=warn"), json)),
        1 => "tenure=info,opentelemetry=warn",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("TENURE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    Some(layer(filter, json))
}

fn layer(filter: EnvFilter, json: bool) -> Listener {
    let coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(coloured);
    if json { layer.json().with_filter(filter).boxed() } else { layer.with_filter(filter).boxed() }
}
