//! Receiving.
//!
//! A [`Consumer`] has a *partition* per topic partition, which keeps a stream to its broker open,
//! and one *inbox*, where messages wait for the application. The library keeps the leases of what
//! waits there; those of messages in the application's hands are the application's.
//!
//! Law: a message that the application never saw burns no attempt.

mod builder;
mod inbox;
pub(crate) mod measured;
mod message;
mod partition;
mod ranges;
mod settle;

pub use builder::{ConsumerBuilder, Position};
pub use message::Message;
pub use settle::{Ack, Extension};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::schema::Schema;
use crate::typed::TypedConsumer;
use futures::Stream;
use futures::future::join_all;
use inbox::Inbox;
use partition::Partition;
use ranges::Ranges;
use serde::de::DeserializeOwned;
use settle::{Answering, Ticket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Receives the messages of one subscription, of all partitions of its topic.
///
/// Made with [`Client::consumer`](crate::Client::consumer). It can be used from many tasks at
/// once, and is also a [`Stream`]. Dropping it gives back what it holds in the background;
/// [`close`](Consumer::close) does the same and waits.
///
/// ```no_run
/// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
/// let consumer = client.consumer("/default/orders", "billing").subscribe().await?;
/// loop {
///     let message = consumer.next().await?;
///     println!("{}: {:?}", message.offset(), message.payload());
///     drop(consumer.ack(&message));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Consumer {
    topic: String,
    partitions: Vec<Arc<Partition>>,
    inbox: Arc<Inbox>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    cluster: Arc<Cluster>,
}

impl Consumer {
    /// Waits for the next message, for as long as it takes: a broken connection is mended
    /// meanwhile.
    ///
    /// # Errors
    /// Why nothing will come any more from a partition; once all of them are over, that the
    /// consumer is closed.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// let message = consumer.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&self) -> Result<Message, Error> {
        let next = std::future::poll_fn(|context| self.inbox.poll_next(context)).await;
        next.unwrap_or_else(|| {
            let who = format!("the consumer of topic `{}`", self.topic);
            Err(Error::Closed { who })
        })
    }

    /// Waits up to `wait` for a message, then takes up to `max` that are there without waiting for
    /// more. Nothing when none came.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// use std::time::Duration;
    ///
    /// let messages = consumer.next_batch(100, Duration::from_secs(1)).await?;
    /// consumer.ack_all(&messages).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_batch(&self, max: usize, wait: Duration) -> Result<Vec<Message>, Error> {
        let Ok(first) = tokio::time::timeout(wait, self.next()).await else {
            return Ok(Vec::new());
        };
        let mut batch = vec![first?];
        self.inbox.take_ready(max, &mut batch);
        Ok(batch)
    }

    /// Finishes a message: it is sent at once, also when the [`Ack`] is dropped.
    ///
    /// The ack fails with [`Error::LeaseLost`] when the message went to somebody else meanwhile.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// let message = consumer.next().await?;
    /// consumer.ack(&message).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ack(&self, message: &Message) -> Ack {
        let deliveries = Ranges::one(message.range());
        let ticket = match message.is_leased {
            true => message.partition.ack(message.session, deliveries),
            false => unleased(message, deliveries),
        };
        Ack { first: Some(ticket), others: Vec::new() }
    }

    /// Finishes many messages at once.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// use std::time::Duration;
    ///
    /// let messages = consumer.next_batch(100, Duration::from_secs(1)).await?;
    /// drop(consumer.ack_all(&messages));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ack_all<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> Ack {
        let mut streams: Vec<(&Message, Ranges)> = Vec::new();
        for message in messages.into_iter().filter(|message| message.is_leased) {
            let of = |other: &Message| {
                Arc::ptr_eq(&other.partition, &message.partition)
                    && other.session == message.session
            };
            let found = streams.iter().rposition(|(other, _)| of(other));
            let index = found.unwrap_or_else(|| {
                streams.push((message, Ranges::default()));
                streams.len() - 1
            });
            streams[index].1.push(message.range());
        }
        let mut tickets = streams
            .into_iter()
            .map(|(first, deliveries)| first.partition.ack(first.session, deliveries));
        let first = tickets.next();
        Ack { first, others: tickets.collect() }
    }

    /// Gives a message back as failed: it comes again after `delay`, or after what the failure
    /// policy says where that is longer. `reason` is for people, and for the dead-letter headers.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// use std::time::Duration;
    ///
    /// let message = consumer.next().await?;
    /// consumer.nack(&message, Duration::ZERO, "the printer is out of paper").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn nack(&self, message: &Message, delay: Duration, reason: impl Into<String>) -> Ack {
        let range = message.range();
        let ticket = match message.is_leased {
            true => message.partition.nack(message.session, range, delay, reason.into()),
            false => unleased(message, Ranges::one(range)),
        };
        Ack { first: Some(ticket), others: Vec::new() }
    }

    /// Asks for more time for a message: `by`, from now on. Zero gives it back without counting
    /// this attempt.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// use std::time::Duration;
    ///
    /// let message = consumer.next().await?;
    /// drop(consumer.extend(&message, Duration::from_secs(120)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn extend(&self, message: &Message, by: Duration) -> Extension {
        let range = message.range();
        Extension(match message.is_leased {
            true => message.partition.extend(message.session, range, by),
            false => unleased(message, Ranges::one(range)),
        })
    }

    /// Gives back what is held, uncounted, after what was acked is answered, and waits for it.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) {
    /// consumer.close().await;
    /// # }
    /// ```
    pub async fn close(mut self) {
        self.partitions.iter().for_each(|partition| partition.close());
        let tasks = std::mem::take(&mut self.tasks);
        // A broker that does not answer is left; it sees the stream end.
        let _ = tokio::time::timeout(self.cluster.options.call_timeout, join_all(tasks)).await;
    }

    /// The schema of a message, from the registry or from memory; `None` where it has none.
    ///
    /// # Errors
    /// What the registry said, or that it cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
    /// let message = consumer.next().await?;
    /// if let Some(schema) = consumer.schema_of(&message).await? {
    ///     println!("a message of {}", schema.subject());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schema_of(&self, message: &Message) -> Result<Option<Arc<Schema>>, Error> {
        match message.schema_id().zip(message.schema_version()) {
            Some((id, version)) => self.cluster.schema(id, version).await.map(Some),
            None => Ok(None),
        }
    }

    /// The topic, as it was given.
    ///
    /// ```no_run
    /// # fn example(consumer: danube_sdk::Consumer) {
    /// println!("receiving from {}", consumer.topic());
    /// # }
    /// ```
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The same consumer, for values of a type instead of bytes.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// #[derive(serde::Deserialize)]
    /// struct Order {
    ///     id: u64,
    /// }
    ///
    /// let orders = client.consumer("/default/orders", "billing").subscribe().await?;
    /// let orders = orders.typed::<Order>();
    /// let order = orders.next().await?;
    /// println!("order {}", order.value()?.id);
    /// drop(orders.ack(&order));
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<T: DeserializeOwned>(self) -> TypedConsumer<T> {
        TypedConsumer::new(self)
    }
}

/// Nothing is acknowledged on this topic.
fn unleased(message: &Message, deliveries: Ranges) -> Ticket {
    Ticket::new(message.topic().into(), deliveries, Answering::Known(Ok(())))
}

impl Stream for Consumer {
    type Item = Result<Message, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inbox.poll_next(context)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.partitions.iter().for_each(|partition| partition.close());
    }
}
