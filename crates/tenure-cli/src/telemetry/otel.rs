//! Spans for an OpenTelemetry collector: OTLP over HTTP, as the environment says (`OTEL_…`).

use std::env;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;

use super::Listener;
use crate::output;

/// Any of these names a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// How long the last spans may take: nobody waits for a collector.
const FAREWELL: Duration = Duration::from_secs(2);

/// Sends spans from a thread of its own.
pub struct Exporter(SdkTracerProvider);

/// An exporter to the collector that is named, and the layer that gives it the spans of the library.
pub fn from_environment() -> Option<(Listener, Exporter)> {
    let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|disabled| disabled.eq_ignore_ascii_case("true"));
    if disabled || !ENDPOINTS.into_iter().any(is_given) {
        return None;
    }
    let exporter = match SpanExporter::builder().with_http().build() {
        Ok(exporter) => exporter,
        // Nobody's leadership depends on it.
        Err(error) => {
            output::complain(&format!("tenure: no spans are exported: {error}"));
            return None;
        }
    };
    let resource = Resource::builder();
    let resource =
        if is_given("OTEL_SERVICE_NAME") { resource } else { resource.with_service_name("tenure") };
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("tenure"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    // Events are in the history and in the log. Here they would wait for the end of the node's own span.
    let spans = filter_fn(|metadata| metadata.is_span() && metadata.target() == "tenure");
    Some((layer.with_filter(spans).boxed(), Exporter(provider)))
}

impl Exporter {
    pub fn end(self) {
        // A collector that is not there has been complained of before, to who listens (`-v`).
        let _ = self.0.shutdown_with_timeout(FAREWELL);
    }
}

fn is_given(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}
