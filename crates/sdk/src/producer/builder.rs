//! What a producer is to be, and opening it.

use super::Producer;
use super::lane::{Lane, Spec};
use super::queue::Limits;
use crate::cluster::Cluster;
use crate::error::Error;
use danube_core::TopicName;
use danube_wire::proto::stream::{Delivery, SchemaReference, schema_reference::Version};
use futures::future::try_join_all;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::sync::oneshot;

/// Messages of a batch when nobody says.
const BATCH_MESSAGES_DEFAULT: u32 = 1_000;
/// Encoded bytes of a batch when nobody says.
const BATCH_BYTES_DEFAULT: usize = 256 * 1024;
/// Encoded bytes of a batch at the most; one message may be larger.
const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Messages of a batch at the most.
const BATCH_MESSAGES_MAX: u32 = 16_384;

/// A schema subject, and which of its versions a producer wants.
///
/// ```
/// use danube_sdk::SchemaChoice;
///
/// let newest = SchemaChoice::latest("order-events");
/// let exactly = SchemaChoice::version("order-events", 3);
/// let no_older = SchemaChoice::at_least("order-events", 2);
/// # let _ = (newest, exactly, no_older);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaChoice(SchemaReference);

impl SchemaChoice {
    /// The latest version at the moment of opening.
    pub fn latest(subject: impl Into<String>) -> SchemaChoice {
        SchemaChoice::of(subject.into(), Version::Latest(true))
    }

    /// Exactly this version.
    pub fn version(subject: impl Into<String>, version: u32) -> SchemaChoice {
        SchemaChoice::of(subject.into(), Version::Pinned(version))
    }

    /// The latest version, which must be at least this one.
    pub fn at_least(subject: impl Into<String>, version: u32) -> SchemaChoice {
        SchemaChoice::of(subject.into(), Version::AtLeast(version))
    }

    fn of(subject: String, version: Version) -> SchemaChoice {
        SchemaChoice(SchemaReference { subject, version: Some(version) })
    }
}

/// What a producer is to be; made with [`Client::producer`](crate::Client::producer).
///
/// ```no_run
/// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
/// use std::time::Duration;
///
/// let producer = client
///     .producer("/default/orders")
///     .name("till-4")
///     .linger(Duration::from_millis(2))
///     .open()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `open`"]
pub struct ProducerBuilder {
    cluster: Arc<Cluster>,
    topic: String,
    name: Option<String>,
    partitions: Option<u32>,
    exclusive: bool,
    delivery: Delivery,
    schema: Option<SchemaReference>,
    limits: Limits,
}

impl ProducerBuilder {
    pub(crate) fn new(cluster: Arc<Cluster>, topic: &str) -> ProducerBuilder {
        let timeout = cluster.options.call_timeout;
        ProducerBuilder {
            cluster,
            topic: topic.to_owned(),
            name: None,
            partitions: None,
            exclusive: false,
            delivery: Delivery::Unspecified,
            schema: None,
            limits: Limits {
                batch_messages_max: BATCH_MESSAGES_DEFAULT,
                batch_bytes_max: BATCH_BYTES_DEFAULT,
                linger: Duration::ZERO,
                timeout,
            },
        }
    }

    /// Its name: unique on the topic, and the same after a restart, so that the broker knows what
    /// it has of it already. A new one when not set. On partition `i` of a partitioned topic it is
    /// called `<name>-<i>`.
    pub fn name(mut self, name: impl Into<String>) -> ProducerBuilder {
        self.name = Some(name.into());
        self
    }

    /// Nobody else may publish to the topic while this one does.
    pub fn exclusive(mut self) -> ProducerBuilder {
        self.exclusive = true;
        self
    }

    /// Publishes to partitions 0 to `count - 1`, which are made where they do not exist. When not
    /// set, to those that there are.
    pub fn partitions(mut self, count: u32) -> ProducerBuilder {
        self.partitions = Some(count.max(1));
        self
    }

    /// A topic that this call makes keeps its messages; this is the default.
    pub fn reliable(mut self) -> ProducerBuilder {
        self.delivery = Delivery::Reliable;
        self
    }

    /// A topic that this call makes keeps nothing: messages go to whoever listens now.
    pub fn non_reliable(mut self) -> ProducerBuilder {
        self.delivery = Delivery::NonReliable;
        self
    }

    /// Messages have this schema; the broker checks them as the topic's policy says.
    pub fn schema(mut self, schema: SchemaChoice) -> ProducerBuilder {
        self.schema = Some(schema.0);
        self
    }

    /// A batch is full with this many messages (1 to 16,384; default 1,000).
    pub fn batch_messages(mut self, count_max: u32) -> ProducerBuilder {
        self.limits.batch_messages_max = count_max.clamp(1, BATCH_MESSAGES_MAX);
        self
    }

    /// A batch is full with this many encoded bytes (up to 2 MiB; default 256 KiB).
    pub fn batch_bytes(mut self, len_max: usize) -> ProducerBuilder {
        self.limits.batch_bytes_max = len_max.clamp(1, BATCH_BYTES_MAX);
        self
    }

    /// How long a batch that is not full waits for more messages. The default is not at all: what
    /// waits when the connection is free goes, which makes large batches under load by itself.
    pub fn linger(mut self, linger: Duration) -> ProducerBuilder {
        self.limits.linger = linger;
        self
    }

    /// How long a message may take from the call that publishes it to its answer; the client's
    /// call timeout when not set.
    pub fn timeout(mut self, timeout: Duration) -> ProducerBuilder {
        self.limits.timeout = timeout;
        self
    }

    /// Attaches to every partition, and makes the topic when it does not exist and the broker may.
    ///
    /// # Errors
    /// What the broker said, or that it could not be reached in time.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let producer = client.producer("/default/orders").exclusive().open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(self) -> Result<Producer, Error> {
        TopicName::parse(&self.topic).map_err(|fault| {
            Error::refused(fault.kind, &format!("topic `{}`", self.topic), fault.message)
        })?;
        let targets = tokio::time::timeout(self.limits.timeout, self.targets()).await;
        let targets = targets.unwrap_or_else(|_| {
            let doing = format!("partitions of topic `{}`", self.topic);
            Err(Error::Timeout { doing, after: self.limits.timeout })
        })?;
        let (mut lanes, mut tasks, mut opened) = (Vec::new(), Vec::new(), Vec::new());
        for (topic, name) in targets {
            let spec = Spec {
                topic: topic.into(),
                name,
                exclusive: self.exclusive,
                delivery: self.delivery,
                schema: self.schema.clone(),
            };
            let lane = Lane::new(spec, self.limits.clone());
            let (sender, receiver) = oneshot::channel();
            tasks.push(tokio::spawn(Arc::clone(&lane).run(Arc::clone(&self.cluster), sender)));
            lanes.push(lane);
            opened.push(receiver);
        }
        // Made before the wait, so that lanes are let go if one of them cannot be opened.
        let (topic, cluster) = (self.topic, self.cluster);
        let producer = Producer { topic, cluster, lanes, turn: AtomicUsize::new(0), tasks };
        let closed = |_| Error::Closed { who: format!("topic `{}`", producer.topic) };
        for answer in try_join_all(opened).await.map_err(closed)? {
            answer?;
        }
        Ok(producer)
    }

    /// Topic and producer name for each partition; asks until somebody answers.
    async fn targets(&self) -> Result<Vec<(String, String)>, Error> {
        let name = self.name.clone().unwrap_or_else(fresh_name);
        let numbered = |topics: Vec<String>| {
            let named = topics.into_iter().enumerate();
            named.map(|(index, topic)| (topic, format!("{name}-{index}"))).collect()
        };
        if let Some(count) = self.partitions {
            let topic = &self.topic;
            return Ok(numbered((0..count).map(|i| format!("{topic}-part-{i}")).collect()));
        }
        let found = self.cluster.partitions_persistently(&self.topic).await?;
        if found.is_empty() || found == [self.topic.as_str()] {
            return Ok(vec![(self.topic.clone(), name)]);
        }
        Ok(numbered(found))
    }
}

/// A name that nobody else has.
pub(crate) fn fresh_name() -> String {
    // The standard library's hashers are seeded by the system, differently each time.
    format!("sdk-{:016x}", RandomState::new().build_hasher().finish())
}
