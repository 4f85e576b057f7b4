//! Every key of the configuration: its name, what kind of value it has, and what it is for.
//!
//! The variables and the reference page are made from this list; a test holds it against
//! [`Layer`](super::layer::Layer). Law: a key that is not here does not exist.

/// What begins the name of each variable.
pub const PREFIX: &str = "DANUBE_";

/// How the text of a variable becomes a value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Text,
    Number,
    Truth,
    List,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// With a dot between section and field.
    pub name: &'static str,
    pub kind: Kind,
    /// A sentence for the reference.
    #[cfg_attr(not(test), expect(dead_code, reason = "the page is made by its test"))]
    pub help: &'static str,
}

const fn key(name: &'static str, kind: Kind, help: &'static str) -> Key {
    Key { name, kind, help }
}

/// All of them, in the order of the file.
pub const KEYS: &[Key] = &[
    key("mode", Kind::Text, "How this broker runs: `standalone`, for now."),
    key("data_dir", Kind::Text, "Where everything is kept."),
    key("wal_dir", Kind::Text, "Where the log is kept, if not in `wal` of the data directory."),
    key(
        "broker_addr",
        Kind::Text,
        "Where clients connect, `address:port`; port 0 picks a free one.",
    ),
    key("admin_addr", Kind::Text, "Where `danube ctl` connects."),
    key("http_addr", Kind::Text, "Where `/healthz`, `/readyz`, `/metrics` and the console are."),
    key(
        "advertised_addr",
        Kind::Text,
        "What clients are told to connect to, `host:port`, if not the broker address.",
    ),
    key(
        "auto_create_topics",
        Kind::Truth,
        "Whether the first producer of an unknown topic creates it.",
    ),
    key(
        "bootstrap_namespaces",
        Kind::List,
        "Namespaces that exist from the first start on, besides `default` and `system`.",
    ),
    key(
        "console",
        Kind::Text,
        "How much the console may do: `on`, `read-only`, `off`; `auto` is `on` where only this machine reaches it, else `read-only`.",
    ),
    key("log_format", Kind::Text, "How log lines on stderr look: `text` or `json`."),
    key(
        "log_level",
        Kind::Text,
        "What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as `info,danube_broker=debug`. `RUST_LOG` counts where this is not set.",
    ),
    key(
        "otlp_endpoint",
        Kind::Text,
        "Where traces go (OTLP over gRPC), such as `http://localhost:4317`; no traces are made without it. `OTEL_EXPORTER_OTLP_ENDPOINT` counts where this is not set.",
    ),
    key(
        "dispatch.max_unacked_messages",
        Kind::Number,
        "Deliveries of one subscription that may be unacknowledged at a time, 1 to 10,000. With the default, a subscription of a native client has 2,048.",
    ),
    key(
        "storage.flush_interval_ms",
        Kind::Number,
        "Longest time that writes which are not alone wait for more to come with them, in milliseconds, at most 10,000.",
    ),
    key("storage.flush_max_batch_bytes", Kind::Number, "Most bytes written at once."),
    key(
        "storage.sync_interval_ms",
        Kind::Number,
        "Longest time that what was acknowledged without a sync stays without one, in milliseconds; 0 leaves it to the operating system.",
    ),
    key(
        "storage.journal_file_bytes",
        Kind::Number,
        "Size at which a journal file is closed and the next one begun, in bytes.",
    ),
    key(
        "storage.cache_bytes",
        Kind::Number,
        "Memory for recent messages of all topics together, in bytes.",
    ),
    key(
        "policies.max_message_size",
        Kind::Number,
        "Largest message, in bytes; what official clients can receive (4 MiB less 64 KiB) caps it.",
    ),
    key(
        "policies.max_producers_per_topic",
        Kind::Number,
        "Producers of one topic partition; 0 is no limit, here and below.",
    ),
    key(
        "policies.max_subscriptions_per_topic",
        Kind::Number,
        "Subscriptions of one topic partition.",
    ),
    key(
        "policies.max_consumers_per_topic",
        Kind::Number,
        "Consumers of one topic partition, over all its subscriptions.",
    ),
    key("policies.max_consumers_per_subscription", Kind::Number, "Consumers of one subscription."),
    key(
        "policies.max_publish_rate",
        Kind::Number,
        "Messages that one topic partition takes, per second.",
    ),
    key(
        "policies.max_subscription_dispatch_rate",
        Kind::Number,
        "Messages that one subscription hands out, per second.",
    ),
    key(
        "metrics.topics_max",
        Kind::Number,
        "Topics with series of their own in `/metrics`, at most 10,000; the others are summed.",
    ),
    key(
        "metrics.subscriptions_max",
        Kind::Number,
        "Subscriptions with series of their own in `/metrics`, at most 10,000; the others are summed.",
    ),
];

/// The variable that sets `key`.
pub fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_uppercase())
}
