//! A message that was received.

use super::partition::Partition;
use super::ranges::Range;
use crate::trace_context;
use bytes::Bytes;
use danube_wire::record::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A message that this consumer holds, until it is acked, nacked, or its lease runs out.
///
/// Nothing of it is decoded before it is asked for.
///
/// ```no_run
/// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
/// let message = consumer.next().await?;
/// println!("{} bytes at {}", message.payload().len(), message.offset());
/// consumer.ack(&message).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) partition: Arc<Partition>,
    /// The stream that it came over.
    pub(super) session: u64,
    pub(super) epoch: u32,
    pub(super) is_leased: bool,
    pub(super) offset: u64,
    pub(super) attempt: u32,
    pub(super) record: Record,
}

impl Message {
    /// The payload; shares the memory of what was received.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("{}", String::from_utf8_lossy(&message.payload()));
    /// # }
    /// ```
    pub fn payload(&self) -> Bytes {
        self.record.payload()
    }

    /// The value of one attribute.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("from {}", message.attribute("source").unwrap_or("nobody"));
    /// # }
    /// ```
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.record.attribute(name)
    }

    /// All attributes.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// for (name, value) in message.attributes() {
    ///     println!("{name}: {value}");
    /// }
    /// # }
    /// ```
    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.record.attributes()
    }

    /// The routing key, where the producer gave one.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("about {:?}", message.key());
    /// # }
    /// ```
    pub fn key(&self) -> Option<&str> {
        self.record.routing_key()
    }

    /// The topic partition.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("{}@{}", message.topic(), message.offset());
    /// # }
    /// ```
    pub fn topic(&self) -> &str {
        self.partition.topic()
    }

    /// The position within the topic partition, counted from 0.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("{}@{}", message.topic(), message.offset());
    /// # }
    /// ```
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Which delivery of the message this is; the first is 1.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// if message.attempt() > 1 {
    ///     println!("once more");
    /// }
    /// # }
    /// ```
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the producer says that it published it, in milliseconds since the Unix epoch.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("published at {} ms", message.publish_time_ms());
    /// # }
    /// ```
    pub fn publish_time_ms(&self) -> u64 {
        self.record.publish_time().0
    }

    /// The name of the producer.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("published by {}", message.producer_name());
    /// # }
    /// ```
    pub fn producer_name(&self) -> &str {
        self.record.producer_name()
    }

    /// The id of the payload's schema, where the producer has one.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("schema {:?}", message.schema_id());
    /// # }
    /// ```
    pub fn schema_id(&self) -> Option<u64> {
        self.record.schema_id()
    }

    /// The version of the payload's schema, where the producer has one.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// println!("version {:?}", message.schema_version());
    /// # }
    /// ```
    pub fn schema_version(&self) -> Option<u32> {
        self.record.schema_version()
    }

    /// The trace that it was published in (W3C trace context), to be the parent of the span in
    /// which it is worked on; empty when it came without one.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::Message) {
    /// use opentelemetry::global;
    /// use opentelemetry::trace::{SpanKind, Tracer};
    ///
    /// let tracer = global::tracer("worker");
    /// let builder = tracer.span_builder("resize").with_kind(SpanKind::Consumer);
    /// let span = tracer.build_with_context(builder, &message.trace_context());
    /// # }
    /// ```
    pub fn trace_context(&self) -> opentelemetry::Context {
        trace_context::extract(|name| self.attribute(name).map(str::to_owned))
    }

    /// The delivery as the wire names it.
    pub(super) fn range(&self) -> Range {
        Range { first: self.offset, count: 1, attempt: self.attempt, epoch: self.epoch }
    }
}
