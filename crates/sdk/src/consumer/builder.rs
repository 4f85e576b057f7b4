//! What a consumer is to be, and subscribing it.

use super::Consumer;
use super::inbox::Inbox;
use super::partition::Partition;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::producer::fresh_name;
use danube_core::{FaultKind, SubscriptionName, TopicName};
use danube_wire::proto::stream::{
    Credit, Position as WirePosition, Subscribe, SubscriptionType, position::At,
};
use futures::future::try_join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long acks wait for others when nobody says.
const ACK_LINGER_DEFAULT: Duration = Duration::from_millis(5);
/// Messages that may wait for the application when nobody says.
const PREFETCH_DEFAULT: u32 = 1_000;
/// Encoded bytes that may wait for the application when nobody says.
const PREFETCH_BYTES_DEFAULT: u64 = 32 * 1024 * 1024;
/// The least of them, so that giving back a part is never giving back nothing.
const PREFETCH_BYTES_MIN: u64 = 64 * 1024;

/// Where a subscription that is made by subscribing starts. One that exists goes on where it is.
///
/// ```
/// use danube_sdk::Position;
///
/// let everything = Position::Earliest;
/// let the_last_hour = Position::Time(1_700_000_000_000 - 3_600_000);
/// # let _ = (everything, the_last_hour);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At the first message that is kept.
    Earliest,
    /// At what is published from now on; this is the default.
    Latest,
    /// At this offset, of each partition.
    Offset(u64),
    /// At the first message that the broker took at this time or later, in milliseconds since the
    /// Unix epoch.
    Time(u64),
}

impl Position {
    fn on_wire(self) -> WirePosition {
        let at = match self {
            Position::Earliest => At::Earliest(true),
            Position::Latest => At::Latest(true),
            Position::Offset(offset) => At::Offset(offset),
            Position::Time(ms) => At::Time(ms),
        };
        WirePosition { at: Some(at) }
    }
}

/// What a consumer is to be; made with [`Client::consumer`](crate::Client::consumer).
///
/// ```no_run
/// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
/// use danube_sdk::Position;
///
/// let consumer = client
///     .consumer("/default/orders", "billing")
///     .key_shared(["customer-*"])
///     .start(Position::Earliest)
///     .prefetch(200)
///     .subscribe()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `subscribe`"]
pub struct ConsumerBuilder {
    cluster: Arc<Cluster>,
    topic: String,
    subscription: String,
    name: Option<String>,
    kind: SubscriptionType,
    key_filters: Vec<String>,
    start: Option<Position>,
    credit: Credit,
    ack_linger: Duration,
}

impl ConsumerBuilder {
    pub(crate) fn new(cluster: Arc<Cluster>, topic: &str, subscription: &str) -> ConsumerBuilder {
        ConsumerBuilder {
            cluster,
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            name: None,
            kind: SubscriptionType::Shared,
            key_filters: Vec::new(),
            start: None,
            credit: Credit { messages: PREFETCH_DEFAULT, bytes: PREFETCH_BYTES_DEFAULT },
            ack_linger: ACK_LINGER_DEFAULT,
        }
    }

    /// Its name: unique on the subscription; the same name takes over from itself. A new one when
    /// not set.
    pub fn name(mut self, name: impl Into<String>) -> ConsumerBuilder {
        self.name = Some(name.into());
        self
    }

    /// All consumers of the subscription in turn; this is the default.
    pub fn shared(mut self) -> ConsumerBuilder {
        self.kind = SubscriptionType::Shared;
        self
    }

    /// One consumer alone, everything in order.
    pub fn exclusive(mut self) -> ConsumerBuilder {
        self.kind = SubscriptionType::Exclusive;
        self
    }

    /// The consumer that has been there longest, and the next one when it goes.
    pub fn failover(mut self) -> ConsumerBuilder {
        self.kind = SubscriptionType::Failover;
        self
    }

    /// Messages of one key to one consumer, in order. `filters` are patterns of the keys that this
    /// one wants; none means all.
    pub fn key_shared<F: Into<String>>(
        mut self,
        filters: impl IntoIterator<Item = F>,
    ) -> ConsumerBuilder {
        self.kind = SubscriptionType::KeyShared;
        self.key_filters = filters.into_iter().map(Into::into).collect();
        self
    }

    /// Where the subscription starts if this call makes it.
    pub fn start(mut self, at: Position) -> ConsumerBuilder {
        self.start = Some(at);
        self
    }

    /// How many messages of each partition may wait here for the application (default 1,000).
    /// Waiting costs no attempt, but what waits here is not with another consumer.
    pub fn prefetch(mut self, messages: u32) -> ConsumerBuilder {
        self.credit.messages = messages.max(1);
        self
    }

    /// How many encoded bytes of each partition may wait here (default 32 MiB, at least 64 KiB).
    pub fn prefetch_bytes(mut self, bytes: u64) -> ConsumerBuilder {
        self.credit.bytes = bytes.max(PREFETCH_BYTES_MIN);
        self
    }

    /// How long acks that nobody awaits wait for others, so that one request carries many (default 5
    /// ms; 0 sends each at once). If the application dies meanwhile, their messages come again.
    pub fn ack_linger(mut self, time: Duration) -> ConsumerBuilder {
        self.ack_linger = time;
        self
    }

    /// Subscribes to every partition that there is now, and makes the subscription if it is new.
    ///
    /// # Errors
    /// There is no such topic, what the broker said, or that it could not be reached in time.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let consumer = client.consumer("/default/orders", "billing").subscribe().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(self) -> Result<Consumer, Error> {
        let doing = format!("subscription `{}` on topic `{}`", self.subscription, self.topic);
        let malformed =
            |fault: danube_core::Fault| Error::refused(fault.kind, &doing, fault.message);
        TopicName::parse(&self.topic).map_err(malformed)?;
        SubscriptionName::parse(&self.subscription).map_err(malformed)?;
        let topics = self.cluster.partitions_persistently(&self.topic).await?;
        if topics.is_empty() {
            let reason = format!(
                "topic `{0}` does not exist; make it with `danube ctl topics create {0}`",
                self.topic
            );
            return Err(Error::refused(FaultKind::NotFound, &doing, reason));
        }
        let name = self.name.clone().unwrap_or_else(fresh_name);
        let inbox = Arc::new(Inbox::new(topics.len()));
        let (mut partitions, mut tasks, mut subscribed) = (Vec::new(), Vec::new(), Vec::new());
        for topic in topics {
            let subscribe = Subscribe {
                topic,
                subscription: self.subscription.clone(),
                consumer_name: name.clone(),
                r#type: self.kind.into(),
                key_filters: self.key_filters.clone(),
                start: self.start.map(Position::on_wire),
                credit: Some(self.credit),
            };
            let partition = Partition::new(subscribe, self.ack_linger);
            let (sender, receiver) = oneshot::channel();
            let cluster = Arc::clone(&self.cluster);
            tasks.push(tokio::spawn(Arc::clone(&partition).run(
                cluster,
                Arc::clone(&inbox),
                sender,
            )));
            partitions.push(partition);
            subscribed.push(receiver);
        }
        // Made before the wait, so that partitions are left if one of them refuses.
        let (topic, cluster) = (self.topic, self.cluster);
        let consumer = Consumer { topic, partitions, inbox, tasks, cluster };
        let closed = |_| Error::Closed { who: doing.clone() };
        for answer in try_join_all(subscribed).await.map_err(closed)? {
            answer?;
        }
        Ok(consumer)
    }
}
