//! A consumer that is measured, on either wire.
//!
//! It acknowledges what it takes at once, many at a time where the wire can, and does not wait for
//! the answers one by one.
//!
//! Law: [`Inlet::settle`] returns when everything that was taken is acknowledged.

use super::drive::{STALL_MAX, stalled};
use super::load::Subject;
use super::report::Latencies;
use super::subscriber::Subscriber;
use crate::channel;
use crate::failure::Failure;
use crate::wire::{self, Wire};
use bytes::Bytes;
use danube_sdk::{Ack, Client, Consumer, Position};
use danube_wire::proto::danube::StreamMessage;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tonic::{Status, Streaming};

/// Acks that are not answered; beyond them nothing is taken.
const ACKS_MAX: usize = 256;
/// Messages taken at a time.
const TAKEN_MAX: usize = 1_000;
/// Messages that may wait here. More than a fan-out's producer is ahead, so that none is dropped.
const PREFETCH: u32 = 4_096;

/// A subscription that exists; nobody receives from it.
pub enum Prepared {
    /// For `danube.stream.v1`.
    Native {
        /// The client to subscribe with.
        client: Client,
        /// The topic.
        topic: String,
        /// The subscription.
        subscription: String,
        /// The consumer's name.
        name: String,
    },
    /// For the compatible wire.
    Compatible(Subscriber),
}

impl Prepared {
    /// Makes a subscription that begins now, or joins one, as the consumer `name`.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn new(
        subject: &Subject,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<Prepared, Failure> {
        if subject.wire == Wire::Compatible {
            let url = &subject.service_addr;
            let attached = Subscriber::attach(url, topic, subscription, name).await;
            return attached.map(Prepared::Compatible);
        }
        let connected = Client::connect(&subject.service_addr).await;
        let client = connected.map_err(|error| wire::failure("nobody to receive from", &error))?;
        let prepared = Prepared::Native {
            client,
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            name: name.to_owned(),
        };
        prepared.subscribe(Position::Latest).await?.close().await;
        Ok(prepared)
    }

    async fn subscribe(&self, start: Position) -> Result<Consumer, Failure> {
        let Prepared::Native { client, topic, subscription, name } = self else {
            return Err(Failure::refused("the compatible wire has no such call"));
        };
        let builder = client.consumer(topic, subscription).name(name).shared();
        let subscribed = builder.start(start).prefetch(PREFETCH).subscribe().await;
        subscribed
            .map_err(|error| wire::failure(&format!("no subscription on topic `{topic}`"), &error))
    }

    /// Begins to receive.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn open(self) -> Result<Inlet, Failure> {
        match self {
            Prepared::Compatible(subscriber) => {
                let opened = subscriber.open().await;
                let failed = |status| channel::failure("receiving failed", &status);
                let stream = opened.map_err(failed)?;
                let acks = FuturesUnordered::new();
                Ok(Inlet::Compatible { subscriber, stream: Box::new(stream), acks })
            }
            native @ Prepared::Native { .. } => {
                let consumer = native.subscribe(Position::Latest).await?;
                Ok(Inlet::Native { consumer, acks: VecDeque::new() })
            }
        }
    }
}

/// Some messages, when they were acknowledged, and the answer to come.
type Acked = (Instant, u64, Ack);

/// A consumer on either wire.
pub enum Inlet {
    /// Batches of messages, ranges of acks.
    Native {
        /// The consumer.
        consumer: Consumer,
        /// Not answered, oldest first.
        acks: VecDeque<Acked>,
    },
    /// One message and one ack at a time.
    Compatible {
        /// The consumer.
        subscriber: Subscriber,
        /// Its stream.
        stream: Box<Streaming<StreamMessage>>,
        /// Not answered.
        acks: FuturesUnordered<BoxFuture<'static, Result<Duration, Status>>>,
    },
}

impl Inlet {
    /// Waits for messages and acknowledges them; the times of acks that are answered meanwhile go
    /// to `acked`. Nothing is lost when it is given up.
    ///
    /// # Errors
    /// What the broker said, or that nothing came for too long.
    pub async fn take(
        &mut self,
        into: &mut Vec<Bytes>,
        acked: &mut Latencies,
    ) -> Result<(), Failure> {
        match self {
            Inlet::Native { consumer, acks } => loop {
                let has_room = acks.len() < ACKS_MAX;
                tokio::select! {
                    biased;
                    // Awaited late, as by whoever has something else to do, so that acks gather.
                    answered = oldest(acks), if !has_room => note(answered, acked)?,
                    batch = consumer.next_batch(TAKEN_MAX, STALL_MAX), if has_room => {
                        let batch = batch.map_err(|error| failed(&error))?;
                        if batch.is_empty() {
                            return Err(channel::failure("receiving failed", &stalled()));
                        }
                        into.extend(batch.iter().map(|message| message.payload()));
                        let ack = consumer.ack_all(&batch);
                        acks.push_back((Instant::now(), batch.len() as u64, ack));
                        return Ok(());
                    }
                }
            },
            Inlet::Compatible { subscriber, stream, acks } => loop {
                let failed = |status| channel::failure("receiving failed", &status);
                tokio::select! {
                    Some(answered) = acks.next(), if !acks.is_empty() => {
                        acked.record(answered.map_err(failed)?);
                    }
                    message = stream.message(), if acks.len() < ACKS_MAX => {
                        let ended = || failed(Status::unavailable("the stream ended"));
                        let message = message.map_err(failed)?.ok_or_else(ended)?;
                        into.push(message.payload.clone());
                        let subscriber = subscriber.clone();
                        acks.push(Box::pin(async move { subscriber.ack(message).await }));
                        return Ok(());
                    }
                    () = tokio::time::sleep(STALL_MAX) => return Err(failed(stalled())),
                }
            },
        }
    }

    /// Waits until all acks are answered.
    ///
    /// # Errors
    /// What the broker said.
    pub async fn settle(&mut self, acked: &mut Latencies) -> Result<(), Failure> {
        match self {
            Inlet::Native { acks, .. } => {
                while !acks.is_empty() {
                    note(oldest(acks).await, acked)?;
                }
            }
            Inlet::Compatible { acks, .. } => {
                while let Some(answered) = acks.next().await {
                    let failed = |status| channel::failure("an ack was refused", &status);
                    acked.record(answered.map_err(failed)?);
                }
            }
        }
        Ok(())
    }
}

fn failed(error: &danube_sdk::Error) -> Failure {
    wire::failure("receiving failed", error)
}

async fn oldest(acks: &mut VecDeque<Acked>) -> Result<(Duration, u64), danube_sdk::Error> {
    let (at, count, ack) = acks.front_mut().expect("the caller looked");
    let answered = ack.await;
    let taken = (at.elapsed(), *count);
    acks.pop_front();
    answered.map(|()| taken)
}

fn note(
    answered: Result<(Duration, u64), danube_sdk::Error>,
    acked: &mut Latencies,
) -> Result<(), Failure> {
    let (time, count) = answered.map_err(|error| wire::failure("an ack was refused", &error))?;
    acked.record_many(time, count);
    Ok(())
}
