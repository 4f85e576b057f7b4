//! One `Publish` stream: many producers, pipelined batches, cumulative answers.
//!
//! Here is the reading half: it walks the messages of a batch, leaves out what can never be stored
//! and hands the rest to the topic as the log will keep it. What this leaves to others: the answers
//! ([`outbox`](super::outbox)), sequences (the log), durability.
//!
//! Law: a batch that is not answered holds its memory, and no more is read than can be answered.

use super::outbox::{Answer, Answers, Outbox};
use super::refusal::Refused;
use crate::context::Context;
use crate::schema::{self, Tagged, Wanted};
use crate::topic::{AccessMode, BatchFault, OpenedProducer, PublishBatch, TopicHandle};
use crate::traces::Parent;
use bytes::Bytes;
use danube_core::name::ProducerName;
use danube_core::sequence::{Origin, RUNS_MAX};
use danube_core::settings::Limit;
use danube_core::{Delivery, Fault, TopicName};
use danube_store::{Appended, RecordBatchBuilder};
use danube_wire::convert;
use danube_wire::limit::message_len_max;
use danube_wire::proto::stream as proto;
use danube_wire::record::native::{self, Checked, Wrapping};
use danube_wire::stream::{Batch, EncodedMessages, PublishRequest, PublishRequests};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tonic::Status;

/// Producers that one stream may have open.
const PRODUCERS_MAX: usize = 100_000;
/// Openings that are worked on at a time; the stream is not read further meanwhile.
const OPENINGS_MAX: usize = 256;
/// Messages of one batch. Bounds what the log adds to small messages, too.
const MESSAGES_MAX: u32 = 16_384;
/// Bytes of messages that a producer may have under way, as it is told.
const WINDOW_BYTES: u64 = 16 << 20;
/// Runs of sequences of one producer that were refused for good and are remembered, so that what
/// follows them is known to follow.
const SKIPPED_MAX: usize = RUNS_MAX;

/// Starts to serve a stream; the answers are its other half.
pub(super) fn serve(context: Arc<Context>, incoming: PublishRequests) -> Answers {
    let outbox = Arc::new(Outbox::default());
    let stopping = context.stopping.clone();
    let reader = Reader {
        context,
        outbox: Arc::clone(&outbox),
        producers: HashMap::new(),
        openings: JoinSet::new(),
    };
    let reading = tokio::spawn(async move {
        let outbox = Arc::clone(&reader.outbox);
        let end = tokio::select! {
            end = reader.run(incoming) => end,
            () = stopping.cancelled() => {
                Some(Status::unavailable("the broker is stopping; connect again"))
            }
        };
        outbox.end(end);
    });
    Answers::new(outbox, reading.abort_handle())
}

/// A producer that is open on this stream.
struct Producer {
    topic: TopicHandle,
    name: ProducerName,
    wrapping: Wrapping,
    origin: Origin,
    /// Batches that are not answered.
    under_way: Arc<AtomicU32>,
    /// Sequences refused for good, in order.
    skipped: VecDeque<Range<u64>>,
}

impl Producer {
    /// The sequence number that the message before `first` had, if that was not refused for good.
    fn after(&self, first: u64) -> u64 {
        let skipped = self.skipped.iter().rev().find(|skipped| skipped.end == first);
        skipped.map_or(first, |skipped| skipped.start).saturating_sub(1)
    }

    fn skip(&mut self, sequence: u64) {
        match self.skipped.back_mut() {
            Some(last) if last.end == sequence => last.end += 1,
            Some(last) if last.contains(&sequence) => {}
            _ => {
                self.skipped.push_back(sequence..sequence.saturating_add(1));
                if self.skipped.len() > SKIPPED_MAX {
                    self.skipped.pop_front();
                }
            }
        }
    }
}

/// What became of an opening.
type Opened = Result<(Producer, proto::ProducerOpened), Refused>;
type Opening = (proto::OpenProducer, Opened);

/// The reading half of a stream.
struct Reader {
    context: Arc<Context>,
    outbox: Arc<Outbox>,
    producers: HashMap<u32, Producer>,
    openings: JoinSet<Opening>,
}

impl Reader {
    /// Reads until the client ends the stream; the answer is how to end the other half.
    async fn run(mut self, mut incoming: PublishRequests) -> Option<Status> {
        loop {
            tokio::select! {
                biased;
                Some(opened) = self.openings.join_next() => {
                    // An opening that panicked has said so in the log; its client times out.
                    if let Ok((request, opened)) = opened {
                        self.on_opened(&request, opened);
                    }
                }
                message = incoming.message(), if self.openings.len() < OPENINGS_MAX => {
                    match message {
                        Ok(Some(request)) => self.on_request(request).await,
                        Ok(None) => break,
                        Err(status) => return Some(status),
                    }
                }
            }
        }
        while let Some(opened) = self.openings.join_next().await {
            if let Ok((request, opened)) = opened {
                self.on_opened(&request, opened);
            }
        }
        None
    }

    async fn on_request(&mut self, request: PublishRequest) {
        for open in request.open {
            self.open(open);
        }
        for batch in request.batches {
            self.publish(batch).await;
        }
        for proto::CloseProducer { producer } in request.close {
            let known = self.producers.remove(&producer);
            let under_way = known.map_or_else(Arc::default, |known| known.under_way);
            self.outbox.close(producer, under_way);
        }
    }

    fn open(&mut self, request: proto::OpenProducer) {
        if self.producers.len() + self.openings.len() >= PRODUCERS_MAX {
            let reason = format!("one stream can have {PRODUCERS_MAX} producers; open another");
            let refused = Refused::new(proto::Refusal::Precondition, reason);
            return self.outbox.refuse(request.producer, 0, 0, refused);
        }
        let context = Arc::clone(&self.context);
        self.openings.spawn(async move {
            let opened = open(&context, &request).await;
            (request, opened.map_err(Refused::from))
        });
    }

    fn on_opened(&mut self, request: &proto::OpenProducer, opened: Opened) {
        match opened {
            Ok((producer, opened)) => {
                self.producers.insert(request.producer, producer);
                self.outbox.opened(opened);
            }
            Err(refused) => self.outbox.refuse(request.producer, 0, 0, refused),
        }
    }

    /// Hands a batch to its topic, without the messages that can never be stored.
    async fn publish(&mut self, batch: Batch) {
        self.outbox.room().await;
        let Batch { producer: number, first_sequence, messages } = batch;
        let count = messages.count();
        let Some(producer) = self.producers.get_mut(&number) else {
            let reason = "this stream has no such producer; open it first";
            let refused = Refused::new(proto::Refusal::Moved, reason);
            return self.outbox.refuse(number, first_sequence, count, refused);
        };
        if let Err(refused) = admit(producer, first_sequence, count) {
            return self.outbox.refuse(number, first_sequence, count, refused);
        }
        let (runs, refused) = lay_out(&self.context, producer, first_sequence, &messages);
        for (sequence, fault) in refused {
            self.outbox.refuse(number, sequence, 1, fault.into());
        }
        for run in runs {
            self.send(number, run).await;
        }
    }

    async fn send(&mut self, number: u32, run: Run) {
        let Some(producer) = self.producers.get(&number) else { return };
        let Run { first_sequence, records, traced } = run;
        let Some(batch) = records.build() else { return };
        let arrived = self.context.clock.elapsed();
        let memory = Arc::clone(&self.context.publish_memory);
        let bytes = u32::try_from(batch.byte_len()).unwrap_or(u32::MAX);
        let Ok(permit) = memory.acquire_many_owned(bytes).await else { return };
        let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let of = (number, first_sequence, count);
        let answer = Answer::owed(&self.outbox, &producer.under_way, of);
        let metrics = Arc::clone(producer.topic.metrics());
        let traced = (!traced.is_empty()).then(|| Traced {
            context: Arc::clone(&self.context),
            topic: producer.topic.clone(),
            messages: traced,
        });
        let publish = PublishBatch {
            producer: producer.origin.producer,
            producer_name: producer.name.clone(),
            batch,
            arrived,
            permit,
            done: Box::new(move |result| {
                if let Err(fault) = &result {
                    metrics.refused(fault.kind(), count.into());
                }
                if let Some(traced) = traced {
                    traced.end(arrived, &result);
                }
                answer.tell(result);
            }),
        };
        if let Err(unsent) = producer.topic.publish_batch(publish).await {
            let name = &producer.topic.identity().name;
            let moved = format!("topic `{name}` was unloaded; open the producer again");
            self.producers.remove(&number);
            (unsent.done)(Err(BatchFault::Moved(moved)));
        }
    }
}

/// Messages of a batch that follow one another, ready for the log.
struct Run {
    first_sequence: u64,
    records: RecordBatchBuilder,
    /// Those that belong to a recorded trace, by their place in the run.
    traced: Vec<(u64, Parent)>,
}

/// Messages of a run that want a span.
struct Traced {
    context: Arc<Context>,
    topic: TopicHandle,
    messages: Vec<(u64, Parent)>,
}

impl Traced {
    /// The run is answered.
    fn end(self, arrived: Duration, result: &Result<Appended, BatchFault>) {
        let took = self.context.clock.elapsed().saturating_sub(arrived);
        for (index, parent) in &self.messages {
            let result = result.as_ref().map(|appended| appended.first.plus(*index));
            let result = result.map_err(BatchFault::kind);
            self.context.traces.published(self.topic.identity(), parent, took, result);
        }
    }
}

/// The recorded trace that a message belongs to.
fn parent(bytes: &Bytes, checked: &Checked) -> Option<Parent> {
    let text = |range: &Range<usize>| std::str::from_utf8(&bytes[range.clone()]).ok();
    let state = checked.tracestate.as_ref().and_then(text);
    Parent::read(checked.traceparent.as_ref().and_then(text)?, state)
}

impl Run {
    /// Of `producer`, from a sequence number on, for at most `left` messages and bytes of a batch.
    fn new(producer: &Producer, first_sequence: u64, left: (usize, usize)) -> Run {
        let (count, bytes) = left;
        let bytes = bytes + count * producer.wrapping.record_len_max(0);
        let after = producer.after(first_sequence);
        let origin = Origin { after, first_sequence, ..producer.origin };
        Run {
            first_sequence,
            records: RecordBatchBuilder::numbered(origin, count, bytes),
            traced: Vec::new(),
        }
    }
}

/// Whether the producer may have this batch under way.
fn admit(producer: &Producer, first_sequence: u64, count: u32) -> Result<(), Refused> {
    let topic = &producer.topic.identity().name;
    // The upper end leaves room to count up.
    let is_number = (1..u64::MAX - u64::from(MESSAGES_MAX)).contains(&first_sequence);
    if !is_number || count == 0 || count > MESSAGES_MAX {
        let reason = format!(
            "topic `{topic}`: a batch of {count} messages from sequence number {first_sequence} on; \
             a batch has 1 to {MESSAGES_MAX} messages, and the first one ever has number 1"
        );
        return Err(Refused::new(proto::Refusal::Invalid, reason));
    }
    if producer.under_way.load(Ordering::Acquire) as usize >= RUNS_MAX {
        let reason = format!(
            "topic `{topic}`: more than {RUNS_MAX} batches of producer `{}` are under way; wait \
             for answers",
            producer.name
        );
        return Err(Refused::new(proto::Refusal::Overloaded, reason));
    }
    Ok(())
}

/// The messages of a batch as the log will keep them, and those that can never be stored.
fn lay_out(
    context: &Context,
    producer: &mut Producer,
    first_sequence: u64,
    messages: &EncodedMessages,
) -> (Vec<Run>, Vec<(u64, Fault)>) {
    let topic = producer.topic.clone();
    let (bytes, count) = (messages.bytes(), messages.count() as usize);
    // What holds for all of them is asked once.
    let rules = BatchRules {
        context,
        topic: &topic.identity().name,
        len_max: message_len_max(topic.limit(Limit::MaxMessageSize).into()),
        gate: topic.gate().as_it_is(),
    };
    let traces = context.traces.is_on();
    let (mut runs, mut refused): (Vec<Run>, _) = (Vec::with_capacity(1), Vec::new());
    let mut goes_on = false;
    for (sequence, range) in (first_sequence..).zip(messages.ranges()) {
        match rules.check(bytes, range.clone()) {
            Ok(checked) => {
                if !goes_on {
                    runs.push(Run::new(producer, sequence, (count, bytes.len() - range.start)));
                }
                let run = runs.last_mut().expect("pushed when there was none");
                if traces && let Some(parent) = parent(bytes, &checked) {
                    run.traced.push((run.records.len() as u64, parent));
                }
                let wrapping = &producer.wrapping;
                run.records.push(|out| wrapping.write(bytes, range, &checked, out));
                goes_on = true;
            }
            Err(fault) => {
                producer.skip(sequence);
                topic.metrics().refused(fault.kind, 1);
                refused.push((sequence, fault));
                goes_on = false;
            }
        }
    }
    (runs, refused)
}

/// What a message of a batch has to keep to.
struct BatchRules<'a> {
    context: &'a Context,
    topic: &'a TopicName,
    len_max: u64,
    gate: schema::Passage<'a>,
}

impl BatchRules<'_> {
    /// Whether the message at `range` can be stored.
    fn check(&self, bytes: &Bytes, range: Range<usize>) -> Result<Checked, Fault> {
        let BatchRules { context, topic, len_max, gate } = self;
        let len = range.len() as u64;
        if len > *len_max {
            return Err(Fault::invalid(format!(
                "message of `{len}` bytes on topic `{topic}` is larger than {len_max}; split it, \
                 or publish a reference to it"
            )));
        }
        let checked = native::check(bytes, range)
            .map_err(|error| Fault::invalid(format!("topic `{topic}`: {error}; encode it anew")))?;
        let (schema_id, schema_version) = (checked.schema_id, checked.schema_version);
        let payload = &bytes[checked.payload.clone()];
        gate.check(context, Tagged { schema_id, schema_version, payload })?;
        Ok(checked)
    }
}

fn wanted(version: Option<&proto::schema_reference::Version>) -> Wanted {
    use proto::schema_reference::Version;
    match version {
        Some(Version::Pinned(version)) => Wanted::Pinned(*version),
        Some(Version::AtLeast(version)) => Wanted::AtLeast(*version),
        Some(Version::Latest(_)) | None => Wanted::Latest,
    }
}

async fn open(
    context: &Arc<Context>,
    request: &proto::OpenProducer,
) -> Result<(Producer, proto::ProducerOpened), Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let name = ProducerName::parse(&request.producer_name)?;
    // Before the topic is made, so that a refused producer leaves nothing behind.
    let choice = match &request.schema {
        Some(reference) => {
            let wanted = wanted(reference.version.as_ref());
            Some(schema::choose(context, &topic, &reference.subject, wanted)?)
        }
        None => None,
    };
    let delivery = convert::stream_delivery(request.delivery)?;
    let mode = if request.exclusive { AccessMode::Exclusive } else { AccessMode::Shared };
    let handle = context.topics.get_or_create(context, &topic, delivery).await?;
    if let Some(choice) = &choice {
        schema::adopt(context, &topic, &name, choice).await?;
    }
    let OpenedProducer { id, opened } = handle.open_producer(name.clone(), mode).await?;
    let answer = proto::ProducerOpened {
        producer: request.producer,
        producer_id: id.0,
        last_sequence: opened.last_sequence,
        window_batches: RUNS_MAX as u32,
        window_bytes: WINDOW_BYTES,
        message_bytes_max: message_len_max(handle.limit(Limit::MaxMessageSize).into()),
        schema_id: choice.as_ref().map(|choice| choice.schema_id),
        schema_version: choice.as_ref().map(|choice| choice.version),
        is_volatile: handle.identity().delivery == Delivery::NonReliable,
    };
    let producer = Producer {
        topic: handle,
        wrapping: Wrapping::new(id, &name),
        name,
        origin: Origin { producer: id, epoch: opened.epoch, after: 0, first_sequence: 0 },
        under_way: Arc::default(),
        skipped: VecDeque::new(),
    };
    Ok((producer, answer))
}
