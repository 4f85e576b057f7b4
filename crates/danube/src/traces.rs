//! Where the broker's spans go: OTLP over gRPC, if anybody asked for it.
//!
//! It is off without `--otlp-endpoint` and without the variables that OpenTelemetry defines for it.
//! Those count for everything that has no flag: headers, time limits, the names of the service.
//! What is left to others: which messages get spans (the broker).
//!
//! Law: a collector that is slow or gone costs spans and a line in the log, never a message.

use crate::failure::Failure;
use opentelemetry::KeyValue;
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::sync::Arc;

/// Variables that turn traces on, as OpenTelemetry defines them.
const ENDPOINT_VARIABLES: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// The variable that turns them off all the same.
const DISABLED_VARIABLE: &str = "OTEL_SDK_DISABLED";
/// Variables that name the service.
const NAME_VARIABLES: [&str; 2] = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"];

/// The exporter, if there is one.
#[derive(Debug)]
pub struct Traces(Option<SdkTracerProvider>);

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_disabled() -> bool {
    std::env::var(DISABLED_VARIABLE).is_ok_and(|value| value.eq_ignore_ascii_case("true"))
}

impl Traces {
    /// Starts the exporter, if `endpoint` or the environment names one. Call it on the runtime.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage) when what was asked for cannot be made.
    pub fn start(endpoint: Option<&str>) -> Result<Traces, Failure> {
        let wanted = endpoint.is_some() || ENDPOINT_VARIABLES.into_iter().any(is_set);
        if !wanted || is_disabled() {
            return Ok(Traces(None));
        }
        let exporter = SpanExporter::builder().with_tonic();
        let exporter = match endpoint {
            Some(endpoint) => exporter.with_endpoint(endpoint),
            None => exporter,
        };
        let exporter = exporter.build().map_err(|error| {
            Failure::usage(format!("traces cannot be sent: {error}"))
                .help("give --otlp-endpoint a plain `http://host:port` that takes OTLP over gRPC")
        })?;
        let resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let is_named = is_set(NAME_VARIABLES[0])
            || std::env::var(NAME_VARIABLES[1]).is_ok_and(|text| text.contains("service.name="));
        let resource = if is_named { resource } else { resource.with_service_name("danube") };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Traces(Some(provider)))
    }

    /// What spans are made with.
    pub fn tracer(&self) -> Option<Arc<BoxedTracer>> {
        let tracer = self.0.as_ref()?.tracer("danube");
        Some(Arc::new(BoxedTracer::new(Box::new(tracer))))
    }

    /// Sends what is left, and says so if that fails.
    pub async fn finish(self) {
        let Some(provider) = self.0 else { return };
        // It waits for its own thread, which needs this runtime for the connection.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}
