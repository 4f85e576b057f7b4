//! What every test does with the official client, in few words.

use danube_client::{Consumer, ConsumerOptions, DanubeClient, Producer, ProducerOptions, SubType};
use danube_core::message::StreamMessage;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;

/// Nothing a test waits for takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a test watches that something does not come. Too short a time can only hide a fault.
const WATCH: Duration = Duration::from_millis(300);

/// Awaits `future`; panics when it hangs.
#[track_caller]
pub fn within<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: waited {PATIENCE:?} in vain for {what}"),
        }
    }
}

/// A producer of a `Reliable` topic.
pub async fn reliable_producer(client: &DanubeClient, topic: &str, name: &str) -> Producer {
    producer(client, topic, name, true, None).await
}

/// A producer of a `NonReliable` topic.
pub async fn plain_producer(client: &DanubeClient, topic: &str, name: &str) -> Producer {
    producer(client, topic, name, false, None).await
}

/// A producer, created.
pub async fn producer(
    client: &DanubeClient,
    topic: &str,
    name: &str,
    reliable: bool,
    partitions: Option<usize>,
) -> Producer {
    let mut builder = client.new_producer().with_topic(topic).with_name(name);
    // More patience than the default, so that a restart on a busy machine fits in.
    builder = builder.with_options(ProducerOptions::new(200, 50, 200));
    if reliable {
        builder = builder.with_reliable_dispatch();
    }
    if let Some(partitions) = partitions {
        builder = builder.with_partitions(partitions);
    }
    let mut producer = builder.build().expect("all that is required is set");
    within("the producer", producer.create()).await.expect("the producer is created");
    producer
}

/// Sends each payload and awaits its acknowledgement before the next one.
pub async fn send_all<P: AsRef<[u8]>>(producer: &Producer, payloads: impl IntoIterator<Item = P>) {
    for payload in payloads {
        send(producer, payload.as_ref()).await;
    }
}

/// Sends one payload.
pub async fn send(producer: &Producer, payload: &[u8]) {
    within("an acknowledgement", producer.send(payload.to_vec(), None)).await.expect("sent");
}

/// Sends one payload with a routing key.
pub async fn send_keyed(producer: &Producer, payload: &[u8], key: &str) {
    let sending = producer.send_with_key(payload.to_vec(), None, key);
    within("an acknowledgement", sending).await.expect("sent");
}

/// Attributes from pairs.
pub fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> HashMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// `prefix-0`, `prefix-1`, and so on.
pub fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}-{i}")).collect()
}

/// A consumer that subscribed and whose stream is being opened.
pub struct Inbox {
    /// The official consumer.
    pub consumer: Consumer,
    messages: mpsc::Receiver<StreamMessage>,
}

/// Which consumer an [`Inbox`] is.
pub struct Who<'a> {
    pub topic: &'a str,
    pub subscription: &'a str,
    pub kind: SubType,
    pub name: &'a str,
    pub key_filters: &'a [&'a str],
}

impl<'a> Who<'a> {
    /// The consumer `name` of a subscription.
    pub fn new(topic: &'a str, subscription: &'a str, kind: SubType, name: &'a str) -> Who<'a> {
        Who { topic, subscription, kind, name, key_filters: &[] }
    }

    /// With key filters.
    pub fn filtered(self, key_filters: &'a [&'a str]) -> Who<'a> {
        Who { key_filters, ..self }
    }

    /// The official consumer, not yet subscribed.
    pub fn build(&self, client: &DanubeClient) -> Consumer {
        client
            .new_consumer()
            .with_topic(self.topic)
            .with_consumer_name(self.name)
            .with_subscription(self.subscription)
            .with_subscription_type(self.kind.clone())
            .with_key_filters(self.key_filters.iter().map(|f| (*f).to_owned()).collect())
            .with_options(ConsumerOptions::new(200, 50, 200))
            .build()
            .expect("all that is required is set")
    }

    /// Subscribes and starts to receive.
    pub async fn open(&self, client: &DanubeClient) -> Inbox {
        let mut consumer = self.build(client);
        within("a subscription", consumer.subscribe()).await.expect("subscribed");
        let messages = within("a stream", consumer.receive()).await.expect("receiving");
        Inbox { consumer, messages }
    }
}

impl Inbox {
    /// The next message, not acknowledged.
    #[track_caller]
    pub fn next(&mut self) -> impl Future<Output = StreamMessage> + '_ {
        let waiting = within("a message", self.messages.recv());
        async move { waiting.await.expect("the client still receives") }
    }

    /// The next message, not acknowledged; `None` when the client gave up receiving.
    pub async fn next_or_end(&mut self) -> Option<StreamMessage> {
        within("a message", self.messages.recv()).await
    }

    /// Whether the client gave up receiving, and everything it had received was taken.
    pub fn gave_up(&self) -> bool {
        self.messages.is_closed() && self.messages.is_empty()
    }

    /// The next message, acknowledged.
    pub async fn take(&mut self) -> StreamMessage {
        let message = self.next().await;
        self.ack(&message).await;
        message
    }

    /// The next `count` messages, each acknowledged as it comes.
    pub async fn take_many(&mut self, count: usize) -> Vec<StreamMessage> {
        let mut messages = Vec::with_capacity(count);
        while messages.len() < count {
            messages.push(self.take().await);
        }
        messages
    }

    /// What came already and was not looked at.
    pub fn pending(&mut self) -> Vec<StreamMessage> {
        std::iter::from_fn(|| self.messages.try_recv().ok()).collect()
    }

    /// Watches that nothing comes.
    pub async fn stays_empty(&mut self) {
        if let Ok(Some(message)) = tokio::time::timeout(WATCH, self.messages.recv()).await {
            panic!("came and should not have: {:?} {}", message.msg_id, text(&message));
        }
    }

    pub async fn ack(&mut self, message: &StreamMessage) {
        within("the answer to an ack", self.consumer.ack(message)).await.expect("acknowledged");
    }

    pub async fn nack(&mut self, message: &StreamMessage, reason: Option<&str>) {
        let nack = self.consumer.nack(message, None, reason.map(str::to_owned));
        within("the answer to a nack", nack).await.expect("nacked");
    }

    /// Closes the stream as an application does that ends.
    pub async fn close(mut self) {
        within("the close", self.consumer.close()).await;
    }
}

/// A message's payload as text.
pub fn text(message: &StreamMessage) -> String {
    String::from_utf8_lossy(&message.payload).into_owned()
}

/// The payloads of messages as text.
pub fn texts<'a>(messages: impl IntoIterator<Item = &'a StreamMessage>) -> Vec<String> {
    messages.into_iter().map(text).collect()
}

/// The payloads of messages as text, sorted.
pub fn sorted_texts<'a>(messages: impl IntoIterator<Item = &'a StreamMessage>) -> Vec<String> {
    sorted(texts(messages))
}

/// Sorted.
pub fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}
