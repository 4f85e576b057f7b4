//! Attributes in which the broker says where a message has been.
//!
//! Law: they are the broker's alone: what a client publishes under these names is stripped, so
//! that nobody can forge them.

/// The topic in which a dead letter failed for the first time.
pub const ORIGINAL_TOPIC: &str = "x-original-topic";
/// The subscription in which it failed.
pub const ORIGINAL_SUBSCRIPTION: &str = "x-original-subscription";
/// Its offset in [`ORIGINAL_TOPIC`].
pub const ORIGINAL_TOPIC_OFFSET: &str = "x-original-topic-offset";
/// Who published it there.
pub const ORIGINAL_PRODUCER_ID: &str = "x-original-producer-id";
/// The broker that served it there.
pub const ORIGINAL_BROKER_ADDR: &str = "x-original-broker-addr";
/// The policy that made a dead letter of it.
pub const POISON_POLICY: &str = "x-poison-policy";
/// Deliveries that were made before it counted as poison.
pub const DELIVERY_ATTEMPT: &str = "x-delivery-attempt";
/// Why the last one failed, where that is known.
pub const FAILURE_REASON: &str = "x-failure-reason";
/// The dead-letter topic from which it was published again.
pub const REPLAYED_FROM: &str = "x-replayed-from";
/// How often it was.
pub const REPLAY_COUNT: &str = "x-replay-count";

const RESERVED_PREFIXES: [&str; 5] =
    ["x-original-", "x-delivery-", "x-poison-", "x-failure-", "x-replay"];
const RESERVED_TASK_PATH: &str = "x-task-path";

/// Whether `key` is an attribute that the broker strips from what clients publish.
pub fn is_reserved(key: &str) -> bool {
    key == RESERVED_TASK_PATH || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}
