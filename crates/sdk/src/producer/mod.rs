//! Publishing.
//!
//! A [`Producer`] has a *lane* per topic partition, which gathers messages into batches and knows
//! what is not answered yet (`queue`), and all lanes to one broker share a *link*, the one Publish
//! stream there. [`Receipt`]s of a batch share one state.
//!
//! Law: a message whose receipt says that it is stored is stored once; one that is sent again
//! after a broken connection is the same message to the broker.

mod batch;
mod builder;
mod lane;
mod link;
pub(crate) mod measured;
mod queue;
mod receipt;

pub(crate) use builder::fresh_name;
pub use builder::{ProducerBuilder, SchemaChoice};
pub(crate) use link::Link;
pub use receipt::{Receipt, Receipts};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::message::{Attributes, MessageId, NewMessage, now_ms};
use crate::schema::Schema;
use crate::trace_context;
use crate::typed::TypedProducer;
use danube_core::WallMs;
use danube_core::ids::{FNV_OFFSET_BASIS, fnv1a_64};
use danube_wire::stream::Message;
use futures::future::join_all;
use lane::Lane;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Publishes to one topic, to all its partitions.
///
/// Made with [`Client::producer`](crate::Client::producer). It can be used from many tasks at
/// once. Dropping it lets the broker know in the background, after what was published is answered;
/// [`close`](Producer::close) does the same and waits.
#[derive(Debug)]
pub struct Producer {
    topic: String,
    cluster: Arc<Cluster>,
    lanes: Vec<Arc<Lane>>,
    turn: AtomicUsize,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Producer {
    /// Publishes one message and waits until it is as durable as the topic promises.
    ///
    /// To publish many messages quickly, do not wait for each: see [`enqueue`](Self::enqueue).
    ///
    /// # Errors
    /// Why it is not stored, or that the broker did not say in time.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// use std::collections::HashMap;
    ///
    /// let mut attributes = HashMap::new();
    /// attributes.insert("source".to_string(), "app-1".to_string());
    /// let id = producer.send(b"Important message".to_vec(), Some(attributes)).await?;
    /// println!("stored at offset {} of {}", id.offset(), id.topic());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(
        &self,
        payload: impl AsRef<[u8]>,
        attributes: Option<Attributes>,
    ) -> Result<MessageId, Error> {
        let mut attributes: Vec<_> = attributes.into_iter().flatten().collect();
        trace_context::inject(&mut attributes);
        let message = Message {
            payload: payload.as_ref(),
            publish_time: WallMs(now_ms()),
            attributes: &attributes,
            ..Message::default()
        };
        self.lane_of(None).put(&message).await?.await
    }

    /// Publishes one message with everything that can go with it, and waits as
    /// [`send`](Self::send) does.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// use danube_sdk::NewMessage;
    ///
    /// producer.send_message(NewMessage::new("paid").key("customer-17")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_message(&self, message: NewMessage) -> Result<MessageId, Error> {
        self.enqueue(message).await?.await
    }

    /// Puts a message into the next batch, and gives a [`Receipt`] to wait for its id with.
    /// Waits only when the broker lets no more be under way.
    ///
    /// # Errors
    /// The message is too large, the producer is over, or there was no room in time.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// use danube_sdk::NewMessage;
    ///
    /// for number in 0..1_000_000 {
    ///     drop(producer.enqueue(NewMessage::new(format!("message {number}"))).await?);
    /// }
    /// producer.flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue(&self, mut message: NewMessage) -> Result<Receipt, Error> {
        message.join_current_trace();
        let message = message.on_wire();
        self.lane_of(message.routing_key).put(&message).await
    }

    /// Puts messages into the next batches, and gives [`Receipts`] to wait for their ids with: for
    /// many messages that are there at once it takes less than [`enqueue`](Self::enqueue) for
    /// each. Those without a key all go to one partition, in their order. Waits only when the broker
    /// lets no more be under way.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue), for the first one that is refused: those before it are
    /// published all the same.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// use danube_sdk::NewMessage;
    ///
    /// let lines = ["first line", "second line", "third line"];
    /// let ids = producer.enqueue_all(lines.map(NewMessage::new)).await?.await?;
    /// assert_eq!(ids.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_all(
        &self,
        messages: impl IntoIterator<Item = NewMessage>,
    ) -> Result<Receipts, Error> {
        let mut messages: Vec<NewMessage> = messages.into_iter().collect();
        messages.iter_mut().for_each(NewMessage::join_current_trace);
        let mut receipts = Receipts::default();
        let (now, keyless) = (now_ms(), self.lane_of(None));
        let lane = |message: &NewMessage| match message.key_ref() {
            None => keyless,
            key => self.lane_of(key),
        };
        let mut rest = &messages[..];
        while let Some(to) = rest.first().map(lane) {
            let others = rest.iter().position(|message| !Arc::ptr_eq(lane(message), to));
            let (together, others) = rest.split_at(others.unwrap_or(rest.len()));
            to.put_all(together, now, &mut receipts).await?;
            rest = others;
        }
        Ok(receipts)
    }

    /// Waits until everything published before is answered.
    ///
    /// # Errors
    /// Why one of the messages that were still waited for is not stored.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// producer.flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn flush(&self) -> Result<(), Error> {
        let batches: Vec<_> = self.lanes.iter().flat_map(Lane::flush).collect();
        let mut flushed = Ok(());
        for batch in batches {
            let answered = batch.all().await;
            flushed = flushed.and(answered);
        }
        flushed
    }

    /// Waits until everything is answered, then lets the broker know that this producer is gone.
    ///
    /// # Errors
    /// As [`flush`](Self::flush). It is closed even so.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// producer.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(mut self) -> Result<(), Error> {
        let flushed = self.flush().await;
        self.lanes.iter().for_each(Lane::release);
        let tasks = std::mem::take(&mut self.tasks);
        let limit = self.lanes.first().map(|lane| lane.timeout()).unwrap_or_default();
        // A broker that does not answer is left; it sees the stream end.
        let _ = tokio::time::timeout(limit, join_all(tasks)).await;
        flushed
    }

    /// How many partitions it publishes to.
    ///
    /// ```no_run
    /// # fn example(producer: danube_sdk::Producer) {
    /// println!("{} partitions", producer.partition_count());
    /// # }
    /// ```
    pub fn partition_count(&self) -> usize {
        self.lanes.len()
    }

    /// The topic, as it was given.
    ///
    /// ```no_run
    /// # fn example(producer: danube_sdk::Producer) {
    /// println!("publishing to {}", producer.topic());
    /// # }
    /// ```
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The schema that the broker put to its messages when it was opened, from the registry or from
    /// memory; `None` where it has none.
    ///
    /// # Errors
    /// What the registry said, or that it cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
    /// if let Some(schema) = producer.schema().await? {
    ///     println!("publishing version {} of {}", schema.version(), schema.subject());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schema(&self) -> Result<Option<Arc<Schema>>, Error> {
        match self.lanes.first().and_then(|lane| lane.schema()) {
            Some((id, version)) => self.cluster.schema(id, version).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same producer, for values of a type instead of bytes.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// #[derive(serde::Serialize)]
    /// struct Order {
    ///     id: u64,
    /// }
    ///
    /// let orders = client.producer("/default/orders").open().await?.typed::<Order>();
    /// orders.send(&Order { id: 17 }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<T: Serialize>(self) -> TypedProducer<T> {
        TypedProducer::new(self)
    }

    /// Messages of one key always go to the same partition, the others in turn.
    fn lane_of(&self, key: Option<&str>) -> &Arc<Lane> {
        let count = self.lanes.len();
        let index = match key {
            _ if count == 1 => 0,
            Some(key) => partition_of(key, count),
            None => self.turn.fetch_add(1, Ordering::Relaxed) % count,
        };
        &self.lanes[index]
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.lanes.iter().for_each(Lane::release);
    }
}

/// The partition of `key` among `count`: the one that the other clients send it to.
fn partition_of(key: &str, count: usize) -> usize {
    let index = fnv1a_64(FNV_OFFSET_BASIS, key.as_bytes()) % (count as u64);
    usize::try_from(index).expect("less than the count")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the published hashes `af63dc4c8601ec8c` and `85944171f73967e8`.
    #[test]
    fn keys_go_where_the_other_clients_send_them() {
        assert_eq!(partition_of("a", 3), 1);
        assert_eq!(partition_of("foobar", 7), 6);
        assert_eq!(partition_of("anything", 1), 0);
    }
}
