//! A message on its way out, and where it ended up.

use crate::trace_context;
use bytes::Bytes;
use danube_core::WallMs;
use danube_wire::stream;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A message to be published: a payload, and what goes with it.
///
/// ```
/// use danube_sdk::NewMessage;
///
/// let message = NewMessage::new("paid").attribute("source", "till-4").key("customer-17");
/// assert_eq!(message.payload(), b"paid");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewMessage {
    payload: Bytes,
    attributes: Vec<(String, String)>,
    key: Option<String>,
    publish_time_ms: Option<u64>,
    schema: Option<(u64, u32)>,
}

impl NewMessage {
    /// A message of `payload` alone.
    ///
    /// ```
    /// let message = danube_sdk::NewMessage::new(vec![1, 2, 3]);
    /// ```
    pub fn new(payload: impl Into<Bytes>) -> NewMessage {
        NewMessage { payload: payload.into(), ..NewMessage::default() }
    }

    /// Adds a pair for the application; of two of one name the last counts.
    ///
    /// ```
    /// let message = danube_sdk::NewMessage::new("paid").attribute("source", "till-4");
    /// ```
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> NewMessage {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Adds pairs for the application.
    ///
    /// ```
    /// use std::collections::HashMap;
    ///
    /// let pairs = HashMap::from([("source".to_owned(), "till-4".to_owned())]);
    /// let message = danube_sdk::NewMessage::new("paid").attributes(pairs);
    /// ```
    #[must_use]
    pub fn attributes(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> NewMessage {
        self.attributes.extend(pairs);
        self
    }

    /// Sets the routing key: messages of one key go to one partition and, in a key-shared
    /// subscription, to one consumer, in order.
    ///
    /// ```
    /// let message = danube_sdk::NewMessage::new("paid").key("customer-17");
    /// ```
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> NewMessage {
        self.key = Some(key.into());
        self
    }

    /// Sets when it was published, in milliseconds since the Unix epoch; the time of the call
    /// that publishes it when not set.
    ///
    /// ```
    /// let message = danube_sdk::NewMessage::new("paid").publish_time_ms(1_700_000_000_000);
    /// ```
    #[must_use]
    pub fn publish_time_ms(mut self, at_ms: u64) -> NewMessage {
        self.publish_time_ms = Some(at_ms);
        self
    }

    /// The payload.
    ///
    /// ```
    /// assert_eq!(danube_sdk::NewMessage::new("paid").payload(), b"paid");
    /// ```
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Lets it belong to the current trace, if there is one and it names none itself.
    pub(crate) fn join_current_trace(&mut self) {
        trace_context::inject(&mut self.attributes);
    }

    /// Names the schema, by id and version, that the payload was written by.
    pub(crate) fn of_schema(mut self, id: u64, version: u32) -> NewMessage {
        self.schema = Some((id, version));
        self
    }

    /// The routing key.
    pub(crate) fn key_ref(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// As it is encoded when it is published now.
    pub(crate) fn on_wire(&self) -> stream::Message<'_> {
        self.on_wire_at(self.publish_time_ms.unwrap_or_else(now_ms))
    }

    /// As it is encoded when it is published at `now_ms`.
    pub(crate) fn on_wire_at(&self, now_ms: u64) -> stream::Message<'_> {
        stream::Message {
            payload: &self.payload,
            publish_time: WallMs(self.publish_time_ms.unwrap_or(now_ms)),
            attributes: &self.attributes,
            schema: self.schema,
            routing_key: self.key.as_deref(),
        }
    }
}

/// Pairs for the application, as [`Producer::send`](crate::Producer::send) takes them.
pub type Attributes = HashMap<String, String>;

/// Milliseconds since the Unix epoch; 0 on a machine whose clock stands before it.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What all messages of one producer on one topic partition have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) topic: Arc<str>,
    pub(crate) producer_id: u64,
    pub(crate) broker_url: String,
}

/// Where a published message is.
///
/// Topic and offset name a message for ever; the same pair is what consumers see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageId {
    pub(crate) place: Arc<Place>,
    pub(crate) offset: u64,
}

impl MessageId {
    /// The topic partition.
    ///
    /// ```
    /// # fn example(id: danube_sdk::MessageId) {
    /// println!("stored in {}", id.topic());
    /// # }
    /// ```
    pub fn topic(&self) -> &str {
        &self.place.topic
    }

    /// The position within the topic partition, counted from 0. On a topic that keeps nothing it
    /// only counts.
    ///
    /// ```
    /// # fn example(id: danube_sdk::MessageId) {
    /// println!("stored at {}", id.offset());
    /// # }
    /// ```
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The producer's id on the topic partition.
    ///
    /// ```
    /// # fn example(id: danube_sdk::MessageId) {
    /// println!("published by {}", id.producer_id());
    /// # }
    /// ```
    pub fn producer_id(&self) -> u64 {
        self.place.producer_id
    }

    /// The URL of the broker that took it.
    ///
    /// ```
    /// # fn example(id: danube_sdk::MessageId) {
    /// println!("taken by {}", id.broker_url());
    /// # }
    /// ```
    pub fn broker_url(&self) -> &str {
        &self.place.broker_url
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.place.topic, self.offset)
    }
}
