//! The configuration of `danube start`: defaults, then the YAML file, then `DANUBE_*` variables,
//! then flags; what comes later wins, key by key.
//!
//! ```text
//! BrokerOptions::default() ─▶ file.rs ─▶ environment.rs ─▶ flags   (each a `Source`)
//!                     figment merges ─▶ resolve.rs checks once ─▶ Settings      (keys.rs lists them all)
//! ```
//!
//! Law: every error names where the value came from (file and line, variable or flag) and the
//! key; after [`Settings::load`] nothing can be wrong with the form of a value.

mod environment;
mod file;
mod keys;
mod layer;
#[cfg(test)]
mod reference;
mod resolve;

use crate::failure::Failure;
use danube_broker::BrokerOptions;
use danube_console::Access;
use figment::Figment;
use layer::{Layer, Source};
use std::ffi::OsString;
use std::path::PathBuf;

/// What names the file besides `--config-file`.
const CONFIG_FILE_VARIABLE: &str = "DANUBE_CONFIG_FILE";

/// The flags of `danube start`. Each is also a key of the file and a `DANUBE_*` variable.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// How this broker runs: alone, for now [default: standalone]
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Where everything is kept [default: ./danube-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the log is kept, if not in the data directory
    #[arg(long, value_name = "DIR")]
    pub wal_dir: Option<PathBuf>,
    /// Where clients connect; port 0 picks a free one [default: 127.0.0.1:6650]
    #[arg(long, value_name = "ADDR:PORT")]
    pub broker_addr: Option<String>,
    /// Where `danube ctl` connects [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDR:PORT")]
    pub admin_addr: Option<String>,
    /// Where the console, /healthz, /readyz and /metrics are [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub http_addr: Option<String>,
    /// What clients are told to connect to, if not the broker address
    #[arg(long, value_name = "HOST:PORT")]
    pub advertised_addr: Option<String>,
    /// What the console may do: on, read-only, off, or auto: on where only this machine reaches
    /// it, else read-only [default: auto]
    #[arg(long, value_name = "HOW")]
    pub console: Option<String>,
    /// A YAML file with any of these and more keys
    #[arg(long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// How log lines on stderr look: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// What is logged: a level, or directives such as info,danube_broker=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Where traces go (OTLP over gRPC), such as http://localhost:4317; off without it
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A configuration that was checked.
#[derive(Debug)]
pub struct Settings {
    /// What the broker is started with.
    pub broker: BrokerOptions,
    /// How much the console may do.
    pub console: Access,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is logged, if anybody said so.
    pub log_level: Option<String>,
    /// Where traces go, if anywhere.
    pub otlp_endpoint: Option<String>,
    /// Variables that start with `DANUBE_` and mean nothing to any command. Worth a warning, not
    /// an error: Kubernetes sets such for a service of that name.
    pub unknown_variables: Vec<String>,
}

impl Settings {
    /// Reads all layers and checks the result.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage), naming source, key and value.
    pub fn load(
        flags: &Flags,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Settings, Failure> {
        let environment = environment::read(variables)?;
        let config_file = flags.config_file.clone().or(environment.config_file);
        let mut figment = Figment::new().merge(Source::defaults(&BrokerOptions::default()));
        if let Some(path) = config_file {
            figment = figment.merge(file::read(&path)?);
        }
        for source in environment.sources.into_iter().chain(flags.sources()) {
            figment = figment.merge(source);
        }
        let settings = resolve::resolve(&figment)?;
        Ok(Settings { unknown_variables: environment.unknown, ..settings })
    }
}

impl Flags {
    /// One source for each flag that was given, so that an error can name it.
    fn sources(&self) -> impl Iterator<Item = Source> {
        let text = |flag: &'static str, value: &Option<String>, set: fn(&mut Layer, String)| {
            value.clone().map(|value| Source::single(flag, |layer| set(layer, value)))
        };
        let path = |flag: &'static str, value: &Option<PathBuf>, set: fn(&mut Layer, PathBuf)| {
            value.clone().map(|value| Source::single(flag, |layer| set(layer, value)))
        };
        [
            text("--mode", &self.mode, |layer, value| layer.mode = Some(value)),
            path("--data-dir", &self.data_dir, |layer, value| layer.data_dir = Some(value)),
            path("--wal-dir", &self.wal_dir, |layer, value| layer.wal_dir = Some(value)),
            text("--broker-addr", &self.broker_addr, |layer, value| {
                layer.broker_addr = Some(value);
            }),
            text("--admin-addr", &self.admin_addr, |layer, value| layer.admin_addr = Some(value)),
            text("--http-addr", &self.http_addr, |layer, value| layer.http_addr = Some(value)),
            text("--advertised-addr", &self.advertised_addr, |layer, value| {
                layer.advertised_addr = Some(value);
            }),
            text("--console", &self.console, |layer, value| layer.console = Some(value)),
            text("--log-format", &self.log_format, |layer, value| layer.log_format = Some(value)),
            text("--log-level", &self.log_level, |layer, value| layer.log_level = Some(value)),
            text("--otlp-endpoint", &self.otlp_endpoint, |layer, value| {
                layer.otlp_endpoint = Some(value);
            }),
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests;
