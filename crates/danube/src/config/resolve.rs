//! The merged configuration, checked once and turned into what the broker is started with.

use super::layer::Layer;
use super::{LogFormat, Settings};
use crate::failure::Failure;
use danube_broker::{BrokerOptions, DispatchOptions, MetricsOptions, Policies, StorageOptions};
use danube_console::Access;
use danube_core::NamespaceName;
use figment::Figment;
use std::net::{SocketAddr, ToSocketAddrs};
use tracing_subscriber::EnvFilter;

/// Largest window of a consumer.
const MAX_UNACKED_MESSAGES_MAX: u32 = 10_000;

/// Longest that a write may be made to wait for others, in milliseconds.
const FLUSH_INTERVAL_MS_MAX: u64 = 10_000;

/// Most topics or subscriptions with series of their own.
const SERIES_MAX: u32 = 10_000;

/// Checks every value.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage), naming source, key and value.
pub fn resolve(figment: &Figment) -> Result<Settings, Failure> {
    let layer: Layer = figment.extract().expect("every source is a layer");
    let check = Check { figment };
    check.mode(&given(layer.mode))?;
    let [broker_addr, admin_addr, http_addr] = [
        check.address("broker_addr", &given(layer.broker_addr))?,
        check.address("admin_addr", &given(layer.admin_addr))?,
        check.address("http_addr", &given(layer.http_addr))?,
    ];
    check.apart(&[
        ("broker_addr", broker_addr),
        ("admin_addr", admin_addr),
        ("http_addr", http_addr),
    ])?;
    let advertised_addr =
        layer.advertised_addr.map(|advertised| check.advertised(&advertised)).transpose()?;
    let namespaces = given(layer.bootstrap_namespaces);
    for namespace in &namespaces {
        NamespaceName::parse(namespace).map_err(|fault| {
            let why = format!("cannot be: {}", fault.message);
            check.refuse("bootstrap_namespaces", namespace.escape_debug(), &why)
        })?;
    }
    let storage = StorageOptions {
        flush_interval_ms: check
            .interval("storage.flush_interval_ms", given(layer.storage.flush_interval_ms))?,
        sync_interval_ms: given(layer.storage.sync_interval_ms),
        flush_max_batch_bytes: check.positive(
            "storage.flush_max_batch_bytes",
            given(layer.storage.flush_max_batch_bytes),
        )?,
        journal_file_bytes: check
            .positive("storage.journal_file_bytes", given(layer.storage.journal_file_bytes))?,
        cache_bytes: given(layer.storage.cache_bytes),
    };
    let policies = Policies {
        max_message_size: check
            .positive("policies.max_message_size", given(layer.policies.max_message_size))?,
        max_producers_per_topic: given(layer.policies.max_producers_per_topic),
        max_subscriptions_per_topic: given(layer.policies.max_subscriptions_per_topic),
        max_consumers_per_topic: given(layer.policies.max_consumers_per_topic),
        max_consumers_per_subscription: given(layer.policies.max_consumers_per_subscription),
        max_publish_rate: given(layer.policies.max_publish_rate),
        max_subscription_dispatch_rate: given(layer.policies.max_subscription_dispatch_rate),
    };
    let options = BrokerOptions {
        data_dir: given(layer.data_dir),
        wal_dir: layer.wal_dir,
        broker_addr,
        admin_addr,
        http_addr,
        advertised_addr,
        auto_create_topics: given(layer.auto_create_topics),
        dispatch: DispatchOptions {
            max_unacked_messages: check.window(given(layer.dispatch.max_unacked_messages))?,
        },
        storage,
        policies,
        bootstrap_namespaces: namespaces,
        tracer: None,
        metrics: MetricsOptions {
            topics_max: check.series("metrics.topics_max", given(layer.metrics.topics_max))?,
            subscriptions_max: check
                .series("metrics.subscriptions_max", given(layer.metrics.subscriptions_max))?,
        },
    };
    Ok(Settings {
        console: check.console(&given(layer.console), http_addr)?,
        broker: options,
        log_format: check.log_format(&given(layer.log_format))?,
        log_level: layer.log_level.map(|level| check.log_level(level)).transpose()?,
        otlp_endpoint: layer.otlp_endpoint.map(|url| check.endpoint(url)).transpose()?,
        unknown_variables: Vec::new(),
    })
}

/// A key that the defaults set.
fn given<T>(value: Option<T>) -> T {
    value.expect("the defaults set every key that is read like this")
}

struct Check<'a> {
    figment: &'a Figment,
}

impl Check<'_> {
    /// ``--broker-addr: broker_addr `x` is not …``.
    fn refuse(&self, key: &str, value: impl std::fmt::Display, why: &str) -> Failure {
        let source = self.figment.find_metadata(key).map_or("default", |source| &source.name);
        Failure::usage(format!("{source}: {key} `{value}` {why}"))
    }

    fn mode(&self, mode: &str) -> Result<(), Failure> {
        match mode {
            "standalone" => Ok(()),
            "cluster" | "edge" => Err(self
                .refuse("mode", mode, "is not available in this version")
                .help("use --mode standalone, or leave the flag out")),
            _ => Err(self
                .refuse("mode", mode.escape_debug(), "is no mode")
                .help("use --mode standalone, or leave the flag out")),
        }
    }

    fn log_format(&self, format: &str) -> Result<LogFormat, Failure> {
        match format {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(self.refuse(
                "log_format",
                format.escape_debug(),
                "is no log format; use `text` or `json`",
            )),
        }
    }

    fn log_level(&self, directives: String) -> Result<String, Failure> {
        match EnvFilter::try_new(&directives) {
            Ok(_) if !directives.trim().is_empty() => Ok(directives),
            _ => Err(self
                .refuse("log_level", directives.escape_debug(), "is no level")
                .help("use `error`, `warn`, `info`, `debug` or `trace`, or directives such as `info,danube_broker=debug`")),
        }
    }

    fn endpoint(&self, url: String) -> Result<String, Failure> {
        let rest = url.strip_prefix("http://");
        match rest.map(|rest| rest.trim_end_matches('/')) {
            Some(host) if !host.is_empty() && !host.contains([' ', '/']) => Ok(url),
            _ => Err(self
                .refuse("otlp_endpoint", url.escape_debug(), "is not an http address")
                .help("give the gRPC address of a collector, such as `http://localhost:4317`; for TLS run one beside the broker")),
        }
    }

    fn series(&self, key: &str, value: u32) -> Result<u32, Failure> {
        match value {
            0..=SERIES_MAX => Ok(value),
            _ => Err(self.refuse(key, value, &format!("must be at most {SERIES_MAX}"))),
        }
    }

    fn console(&self, word: &str, http: SocketAddr) -> Result<Access, Failure> {
        match word {
            "auto" => Ok(Access::of_address(http)),
            word => Access::parse(word).ok_or_else(|| {
                self.refuse("console", word.escape_debug(), "is no way to serve the console")
                    .help("use `on`, `read-only`, `off` or `auto`")
            }),
        }
    }

    fn address(&self, key: &str, text: &str) -> Result<SocketAddr, Failure> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let malformed = || {
            self.refuse(key, text.escape_debug(), "is not an address")
                .help("give an address and a port, such as `127.0.0.1:6650`; port 0 picks one")
        };
        let (_, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        port.parse::<u16>().map_err(|_| malformed())?;
        // A host name. IPv4 first, as the default addresses are.
        let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| malformed())?.collect();
        let address = found.iter().find(|address| address.is_ipv4()).or(found.first());
        address.copied().ok_or_else(malformed)
    }

    fn apart(&self, addresses: &[(&str, SocketAddr); 3]) -> Result<(), Failure> {
        for (index, (key, address)) in addresses.iter().enumerate() {
            let twin = addresses[..index].iter().find(|(_, other)| other == address);
            if let Some((other, _)) = twin.filter(|_| address.port() != 0) {
                return Err(self
                    .refuse(key, address, &format!("is also the {other}"))
                    .help("give each of the three a port of its own"));
            }
        }
        Ok(())
    }

    /// `host:port`; a scheme and a final slash are accepted and dropped.
    fn advertised(&self, text: &str) -> Result<String, Failure> {
        let bare = text.trim_start_matches("http://").trim_end_matches('/');
        let well_formed = bare.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && !host.contains(['/', ' '])
                && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        if well_formed {
            return Ok(bare.to_owned());
        }
        Err(self
            .refuse("advertised_addr", text.escape_debug(), "is not a host and a port")
            .help("give what clients can reach, such as `broker-1.example.org:6650`"))
    }

    fn positive(&self, key: &str, value: u64) -> Result<u64, Failure> {
        match value {
            0 => Err(self.refuse(key, value, "must be at least 1")),
            _ => Ok(value),
        }
    }

    fn interval(&self, key: &str, value: u64) -> Result<u64, Failure> {
        match value {
            0..=FLUSH_INTERVAL_MS_MAX => Ok(value),
            _ => Err(self.refuse(key, value, &format!("must be at most {FLUSH_INTERVAL_MS_MAX}"))),
        }
    }

    fn window(&self, value: u32) -> Result<u32, Failure> {
        match value {
            1..=MAX_UNACKED_MESSAGES_MAX => Ok(value),
            _ => Err(self.refuse(
                "dispatch.max_unacked_messages",
                value,
                &format!("must be within 1 and {MAX_UNACKED_MESSAGES_MAX}"),
            )),
        }
    }
}
