//! A producer that is measured, on either wire.
//!
//! Law: no more messages are unanswered than the load says, and a message's time counts from the
//! call that publishes it.

use super::drive::{STALL_MAX, stalled};
use super::lane::Lane;
use super::load::{Load, Subject};
use super::report::{Latencies, Progress};
use super::source::Source;
use crate::channel;
use crate::compat::SchemaTag;
use crate::failure::Failure;
use crate::wire::{self, Wire};
use danube_sdk::{Client, NewMessage, Producer, Receipt, Receipts, SchemaChoice};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A batch that is to have a given size waits this long for its last message.
const BATCH_LINGER: Duration = Duration::from_millis(5);

/// A producer on either wire.
#[derive(Debug)]
pub enum Outlet {
    /// Streams of batches, of so many messages if somebody says.
    Native(Producer, Option<u32>),
    /// One call per message.
    Compatible(Box<Lane>),
}

/// One producer per connection on `topic`.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn outlets(subject: &Subject, topic: &str, load: &Load) -> Result<Vec<Outlet>, Failure> {
    outlets_of(subject, topic, load, None).await
}

/// As [`outlets`], and their messages follow `schema`.
///
/// # Errors
/// As [`outlets`].
pub async fn outlets_of(
    subject: &Subject,
    topic: &str,
    load: &Load,
    schema: Option<&SchemaTag>,
) -> Result<Vec<Outlet>, Failure> {
    let mut outlets = Vec::new();
    for index in 0..load.connections {
        outlets.push(match subject.wire {
            Wire::Native => {
                let client = client(subject, topic).await?;
                Outlet::open_of(&client, subject, topic, (load, index), schema).await?
            }
            Wire::Compatible => {
                let url = &subject.service_addr;
                let channel = channel::connect(url).await?;
                let reliable = subject.is_reliable();
                let mut lane = Lane::attach(url, channel, topic, reliable, (load, index)).await?;
                schema.into_iter().for_each(|schema| lane.tag(schema));
                Outlet::Compatible(Box::new(lane))
            }
        });
    }
    Ok(outlets)
}

/// A client of the native wire.
///
/// # Errors
/// That the broker cannot be reached.
pub async fn client(subject: &Subject, topic: &str) -> Result<Client, Failure> {
    let connected = Client::connect(&subject.service_addr).await;
    connected.map_err(|error| wire::failure(&format!("no producer on topic `{topic}`"), &error))
}

impl Outlet {
    /// A producer of `client`.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn open(
        client: &Client,
        subject: &Subject,
        topic: &str,
        load: (&Load, u32),
    ) -> Result<Outlet, Failure> {
        Outlet::open_of(client, subject, topic, load, None).await
    }

    async fn open_of(
        client: &Client,
        subject: &Subject,
        topic: &str,
        (load, index): (&Load, u32),
        schema: Option<&SchemaTag>,
    ) -> Result<Outlet, Failure> {
        let mut builder = client.producer(topic).name(format!("bench-{index}"));
        builder = match subject.is_reliable() {
            true => builder.reliable(),
            false => builder.non_reliable(),
        };
        if let Some(count) = load.batch {
            builder = builder.batch_messages(count).batch_bytes(2 << 20).linger(BATCH_LINGER);
        }
        if let Some(schema) = schema {
            builder = builder.schema(SchemaChoice::version(&schema.subject, schema.version));
        }
        let opened = builder.open().await;
        let failed = |error| wire::failure(&format!("no producer on topic `{topic}`"), &error);
        opened.map(|producer| Outlet::Native(producer, load.batch)).map_err(failed)
    }

    /// Publishes until the source ends and everything is answered. Returns how many messages.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn run(
        &self,
        in_flight: usize,
        source: &mut Source,
        latencies: &mut Latencies,
        progress: &Progress,
    ) -> Result<u64, Failure> {
        match self {
            Outlet::Native(producer, batch) => {
                stream((producer, *batch), in_flight, source, latencies, progress).await
            }
            Outlet::Compatible(lane) => call(lane, in_flight, source, latencies, progress).await,
        }
    }
}

/// Messages that are not answered, and when they were published.
struct Waiting {
    at: Instant,
    count: u32,
    receipt: Promise,
}

enum Promise {
    One(Receipt),
    All(Receipts),
}

impl Waiting {
    /// Until the answer is there.
    async fn answered(&mut self) -> Result<(), danube_sdk::Error> {
        match &mut self.receipt {
            Promise::One(receipt) => receipt.await.map(drop),
            Promise::All(receipts) => receipts.await.map(drop),
        }
    }
}

/// Publishes one by one or, if there is a number, so many together.
async fn stream(
    (producer, batch): (&Producer, Option<u32>),
    in_flight: usize,
    source: &mut Source,
    latencies: &mut Latencies,
    progress: &Progress,
) -> Result<u64, Failure> {
    let refused = |error| wire::failure("a publish was refused", &error);
    // Answered in order, so it is enough to wait for the oldest.
    let mut waiting: VecDeque<Waiting> = VecDeque::with_capacity(in_flight.min(1 << 16));
    let (mut sent, mut under_way, mut more) = (0, 0, true);
    while more || !waiting.is_empty() {
        let has_room = under_way < in_flight;
        tokio::select! {
            biased;
            first = source.next(), if more && has_room => {
                let Some(first) = first else {
                    more = false;
                    continue;
                };
                let at = Instant::now();
                let (receipt, count) = match batch {
                    None => (producer.enqueue(NewMessage::new(first)).await.map(Promise::One), 1),
                    Some(batch) => {
                        let rest = source.ready(batch.saturating_sub(1));
                        let all = std::iter::once(first).chain(rest).map(NewMessage::new);
                        let receipts = producer.enqueue_all(all).await;
                        let count = receipts.as_ref().map_or(0, Receipts::len);
                        (receipts.map(Promise::All), count as u32)
                    }
                };
                waiting.push_back(Waiting { at, count, receipt: receipt.map_err(refused)? });
                sent += u64::from(count);
                under_way += count as usize;
            }
            answered = oldest(&mut waiting), if !waiting.is_empty() => {
                let (time, count) = answered.map_err(refused)?;
                latencies.record_many(time, count.into());
                progress.more(count.into());
                under_way -= count as usize;
            }
        }
    }
    Ok(sent)
}

async fn oldest(waiting: &mut VecDeque<Waiting>) -> Result<(Duration, u32), danube_sdk::Error> {
    let oldest = waiting.front_mut().expect("the caller looked");
    let answered = oldest.answered().await;
    let (time, count) = (oldest.at.elapsed(), oldest.count);
    waiting.pop_front();
    answered.map(|()| (time, count))
}

async fn call(
    lane: &Lane,
    in_flight: usize,
    source: &mut Source,
    latencies: &mut Latencies,
    progress: &Progress,
) -> Result<u64, Failure> {
    let refused = |status| channel::failure("a publish was refused", &status);
    let mut calls = FuturesUnordered::new();
    let (mut sent, mut more) = (0, true);
    while more || !calls.is_empty() {
        let has_room = calls.len() < in_flight;
        tokio::select! {
            biased;
            payload = source.next(), if more && has_room => match payload {
                None => {
                    more = false;
                }
                Some(payload) => {
                    calls.push(lane.send(sent, payload));
                    sent += 1;
                }
            },
            Some(answered) = calls.next(), if !calls.is_empty() => {
                latencies.record(answered.map_err(refused)?);
                progress.one_more();
            }
            () = tokio::time::sleep(STALL_MAX), if !calls.is_empty() => {
                return Err(refused(stalled()));
            }
        }
    }
    Ok(sent)
}
