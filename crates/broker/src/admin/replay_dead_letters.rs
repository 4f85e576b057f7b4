//! Publish dead letters again: one batch of a replay.
//!
//! The caller drives a replay call by call; what was done is remembered here. Each letter that was
//! published again is noted in the journal of the dead-letter topic, as progress of a subscription
//! with a number that the catalog never gives. So a replay that is cut short goes on where it was,
//! and what a filter passed over stays for another one.
//!
//! The end is remembered too, until it is reached: what comes back while a replay runs is not taken
//! for one of its letters, also when the replay is cut short and goes on later.
//!
//! Law: a letter is noted after its copy is as durable as its new topic promises, never before.
//! Cut short at any point, at most the batch at hand is published twice.

use crate::context::Context;
use crate::scan;
use crate::schema::Tagged;
use bytes::Bytes;
use danube_core::ids::{FNV_OFFSET_BASIS, fnv1a_64};
use danube_core::name::ProducerName;
use danube_core::settings::Limit;
use danube_core::subscription::{Progress, ProgressRecord, Step};
use danube_core::{
    Delivery, Fault, Offset, ProducerId, SubscriptionId, SubscriptionName, TopicId, TopicName,
    WalSyncMode,
};
use danube_store::{Bounds, ReadLimit, TopicLog};
use danube_wire::proto::control;
use danube_wire::record::{self, Record, header};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Dead letters of one batch, and their bytes, apart from the first.
const BATCH_LEN_MAX: u32 = 100;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Dead letters that one call looks at.
const SCAN_LEN_MAX: u64 = 10_000;
/// Records and bytes of one read.
const READ: ReadLimit = ReadLimit { records_max: 256, bytes_max: 1 << 20 };
/// Whose progress the replayed letters are.
const REPLAY: SubscriptionId = SubscriptionId::REPLAY;
/// Whose cursor is the end of a replay that has not come to it; 0 when there is none.
const REPLAY_END: SubscriptionId = SubscriptionId::REPLAY_END;
/// The name under which the broker publishes replays.
const PRODUCER: &str = "danube-replay";

/// The dead-letter topics of which a batch is being replayed.
#[derive(Default)]
pub(crate) struct Replays {
    running: Mutex<HashSet<TopicId>>,
}

/// Keeps others out of one topic's replay until it is dropped.
struct Claim {
    context: Arc<Context>,
    topic: TopicId,
}

impl Claim {
    fn take(context: &Arc<Context>, name: &TopicName, topic: TopicId) -> Result<Claim, Fault> {
        if !context.replays.running.lock().insert(topic) {
            return Err(Fault::retry(format!(
                "a batch of `{name}` is being replayed by somebody else; try again in a moment"
            )));
        }
        Ok(Claim { context: Arc::clone(context), topic })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.context.replays.running.lock().remove(&self.topic);
    }
}

pub(super) async fn call(
    context: &Arc<Context>,
    request: control::ReplayDeadLettersRequest,
) -> Result<control::ReplayDeadLettersResponse, Fault> {
    let plan = Plan::parse(context, request)?;
    // A caller that vanishes drops this call; the batch comes to its end all the same, so that
    // what was published is noted.
    let batch = tokio::spawn(plan.run(Arc::clone(context)));
    batch.await.map_err(|error| Fault::internal(format!("the replay broke off: {error}")))?
}

/// What one call is to do.
struct Plan {
    letters: TopicName,
    id: TopicId,
    sync: WalSyncMode,
    log: TopicLog,
    /// Where they go instead of where they came from: a topic, or the partitions of one.
    to: Option<Vec<TopicName>>,
    subscription: Option<SubscriptionName>,
    filters: BTreeMap<String, String>,
    limit: usize,
    from: Option<Offset>,
    end: Option<Offset>,
    dry_run: bool,
    again: bool,
    close: bool,
    /// One letter alone, and what its payload becomes.
    only: Option<Only>,
}

/// One letter that somebody chose.
struct Only {
    offset: Offset,
    payload: Option<Bytes>,
}

impl Plan {
    fn parse(
        context: &Arc<Context>,
        request: control::ReplayDeadLettersRequest,
    ) -> Result<Plan, Fault> {
        let letters = TopicName::parse(&request.name)?;
        let view = context.meta.view();
        let Some(topic) = view.topic(&letters) else {
            // Says that there is none, or else it is the name of several.
            super::partitions(context, &letters)?;
            return Err(Fault::precondition(format!(
                "topic `{letters}` has partitions; replay them one by one"
            )));
        };
        let to = request.to.as_deref().map(TopicName::parse).transpose()?;
        let to = to.map(|to| super::partitions(context, &to)).transpose()?;
        if to.as_ref().is_some_and(|to| to.contains(&letters)) {
            return Err(Fault::invalid(format!(
                "the dead letters of `{letters}` cannot be replayed to `{letters}`; name another \
                 topic"
            )));
        }
        if request.payload.is_some() && request.offset.is_none() {
            return Err(Fault::invalid(
                "a payload is for one dead letter; say which, by its offset",
            ));
        }
        let payload = request.payload.map(Bytes::from);
        let subscription = request.subscription.as_deref();
        Ok(Plan {
            only: request.offset.map(|offset| Only { offset: Offset(offset), payload }),
            id: topic.id,
            sync: topic.wal_sync_mode(),
            log: scan::log_of(context, &letters, topic)?,
            letters,
            to,
            subscription: subscription.map(SubscriptionName::parse).transpose()?,
            filters: request.filters.into_iter().collect(),
            limit: request.limit.clamp(1, BATCH_LEN_MAX) as usize,
            from: request.from.map(Offset),
            end: request.end.map(Offset),
            dry_run: request.dry_run,
            again: request.again,
            close: request.close,
        })
    }

    async fn run(self, context: Arc<Context>) -> Result<control::ReplayDeadLettersResponse, Fault> {
        let _claim = match self.dry_run {
            true => None,
            false => Some(Claim::take(&context, &self.letters, self.id)?),
        };
        if self.close {
            self.record(vec![(REPLAY_END, Step::Moved { cursor: Offset(0) })]).await?;
            return Ok(control::ReplayDeadLettersResponse::default());
        }
        let mut batch = match &self.only {
            Some(only) => self.take_only(&context, only.offset).await?,
            None => {
                let (done, end) = self.begin().await?;
                self.gather(&context, &done, end).await?
            }
        };
        if !self.dry_run {
            self.publish(&context, &mut batch.letters).await;
            self.note(&context, &batch).await?;
        }
        let letters = batch.letters.into_iter().map(|letter| letter.told).collect();
        Ok(control::ReplayDeadLettersResponse { letters, ..batch.answer })
    }

    /// What was replayed before, and the end of this replay. Beginning again forgets it, once, so
    /// that a replay which is cut short can go on like any other.
    async fn begin(&self) -> Result<(Progress, End), Fault> {
        let next = self.log.bounds().next;
        let known = |id| self.log.subscription(id, Offset(0));
        if let Some(end) = self.end {
            let done = if self.again && self.dry_run { Progress::default() } else { known(REPLAY) };
            return Ok((done, End { at: end.min(next), resumed: false }));
        }
        let open = known(REPLAY_END).cursor().min(next);
        if open > Offset(0) && !self.again {
            return Ok((known(REPLAY), End { at: open, resumed: true }));
        }
        if !self.dry_run {
            let mut steps = vec![(REPLAY_END, Step::Moved { cursor: next })];
            if self.again {
                steps.push((REPLAY, Step::Moved { cursor: Offset(0) }));
            }
            self.record(steps).await?;
        }
        let done = if self.again { Progress::default() } else { known(REPLAY) };
        Ok((done, End { at: next, resumed: false }))
    }

    /// The one letter that was chosen.
    async fn take_only(&self, context: &Arc<Context>, offset: Offset) -> Result<Batch, Fault> {
        let one = ReadLimit { records_max: 1, bytes_max: READ.bytes_max };
        let read = scan::read(&self.log, offset, one).await?;
        let found = read.records.into_iter().find(|(at, _)| *at == offset);
        let letter = found.and_then(|(at, stored)| Letter::read(self, context, at, stored));
        let letter = letter.ok_or_else(|| {
            let Bounds { start, next } = self.log.bounds();
            Fault::not_found(format!(
                "topic `{}` has no such dead letter at offset {offset}; it has {start} up to {next}",
                self.letters
            ))
        })?;
        Ok(Batch { letters: vec![letter], ..Batch::default() })
    }

    /// Reads on until the batch is full or the end is reached.
    async fn gather(
        &self,
        context: &Arc<Context>,
        done: &Progress,
        End { at: end, resumed }: End,
    ) -> Result<Batch, Fault> {
        let bounds = self.log.bounds();
        let first = self.from.unwrap_or_default().max(bounds.start);
        let mut batch = Batch::default();
        let (mut next, mut bytes) = (first, 0);
        'full: while next < end && next.0 - first.0 < SCAN_LEN_MAX {
            let read = scan::read(&self.log, next, READ).await?;
            if read.records.is_empty() {
                next = end;
                break;
            }
            for (offset, stored) in read.records {
                if offset >= end || batch.letters.len() >= self.limit {
                    next = offset;
                    break 'full;
                }
                if done.is_finished(offset) {
                    batch.answer.replayed_before += 1;
                    continue;
                }
                let len = stored.len();
                match Letter::read(self, context, offset, stored) {
                    None => batch.answer.not_matching += 1,
                    Some(_) if bytes + len > BATCH_BYTES_MAX && !batch.letters.is_empty() => {
                        next = offset;
                        break 'full;
                    }
                    Some(letter) => {
                        bytes += len;
                        batch.letters.push(letter);
                    }
                }
            }
            next = read.next;
        }
        batch.answer.next = next.min(end).0;
        batch.answer.end = end.0;
        batch.answer.resumed = resumed;
        batch.answer.later = bounds.next.0.saturating_sub(end.0);
        Ok(batch)
    }

    /// Whether this letter is wanted.
    fn takes(&self, record: &Record) -> bool {
        let from = record.attribute(header::ORIGINAL_SUBSCRIPTION);
        self.subscription.as_ref().is_none_or(|wanted| from == Some(wanted.as_str()))
            && self.filters.iter().all(|(key, value)| record.attribute(key) == Some(value.as_str()))
    }

    /// Where a letter goes.
    fn target(
        &self,
        context: &Context,
        record: &Record,
        offset: Offset,
    ) -> Result<TopicName, Fault> {
        let name = match &self.to {
            Some(partitions) => {
                // As clients do: the key says which partition, and without one they take turns.
                let turn = match record.routing_key() {
                    Some(key) => fnv1a_64(FNV_OFFSET_BASIS, key.as_bytes()),
                    None => offset.0,
                };
                let count = partitions.len() as u64;
                partitions[usize::try_from(turn % count).unwrap_or(0)].clone()
            }
            None => {
                let origin = record.attribute(header::ORIGINAL_TOPIC).ok_or_else(|| {
                    Fault::precondition(format!(
                        "it has no `{}`, so it is not known where it came from; name a topic with \
                         --to",
                        header::ORIGINAL_TOPIC
                    ))
                })?;
                TopicName::parse(origin)?
            }
        };
        match context.meta.view().topic(&name).map(|topic| topic.delivery) {
            Some(Delivery::Reliable) => Ok(name),
            Some(Delivery::NonReliable) => Err(Fault::precondition(format!(
                "topic `{name}` is NonReliable and might lose it; name a Reliable one with --to"
            ))),
            None => Err(Fault::not_found(format!(
                "topic `{name}` does not exist; create it, or name another with --to"
            ))),
        }
    }

    /// Publishes the batch in its order and waits for all of it.
    async fn publish(&self, context: &Arc<Context>, letters: &mut [Letter]) {
        let publishes = letters.iter().map(|letter| letter.publish(context));
        let outcomes = futures::future::join_all(publishes).await;
        for (letter, outcome) in letters.iter_mut().zip(outcomes) {
            if let Err(fault) = outcome {
                letter.told.error = Some(fault.message);
            }
        }
    }

    /// Notes which letters were published, and that the end was reached.
    async fn note(&self, context: &Arc<Context>, batch: &Batch) -> Result<(), Fault> {
        let published = batch.letters.iter().filter(|letter| letter.told.error.is_none());
        let offsets = published.map(|letter| Offset(letter.told.offset));
        let mut steps: Vec<(SubscriptionId, Step)> =
            offsets.map(|first| (REPLAY, Step::Finished { first, end: first.next() })).collect();
        // One letter alone ends no replay that was cut short.
        if self.only.is_none() && batch.answer.next >= batch.answer.end {
            steps.push((REPLAY_END, Step::Moved { cursor: Offset(0) }));
        }
        self.record(steps).await?;
        // So that it counts again what waits to be replayed.
        if let Ok(Some(letters)) = context.topics.get_by_id(context, self.id) {
            letters.log_grew();
        }
        Ok(())
    }

    async fn record(&self, steps: Vec<(SubscriptionId, Step)>) -> Result<(), Fault> {
        let (answer, recorded) = oneshot::channel();
        let progress = |(subscription, step)| ProgressRecord { subscription, step };
        self.log.record(steps.into_iter().map(progress).collect(), self.sync, move |result| {
            let _ = answer.send(result);
        });
        let recorded = recorded.await.map_err(|_| Fault::retry("the log is closing; try again"))?;
        recorded.map_err(|error| {
            Fault::new(
                error.kind(),
                format!(
                    "it cannot be noted what was replayed of `{}`, so it will be replayed once \
                     more: {error}",
                    self.letters
                ),
            )
        })
    }
}

/// Where a replay ends.
#[derive(Clone, Copy)]
struct End {
    at: Offset,
    /// It is that of a replay that was cut short.
    resumed: bool,
}

/// What one call found to do.
#[derive(Default)]
struct Batch {
    letters: Vec<Letter>,
    answer: control::ReplayDeadLettersResponse,
}

/// A dead letter that is to be published again, and what is told of it.
struct Letter {
    told: control::ReplayedLetter,
    /// The topic and the record to publish there; `None` when it cannot be.
    publish: Option<(TopicName, Replayed)>,
}

impl Letter {
    /// `None` when it is not wanted.
    fn read(plan: &Plan, context: &Arc<Context>, offset: Offset, stored: Bytes) -> Option<Letter> {
        let mut told =
            control::ReplayedLetter { offset: offset.0, ..control::ReplayedLetter::default() };
        let record = match Record::parse(stored) {
            Ok(record) => record,
            Err(error) => {
                told.error = Some(format!("it cannot be read: {error}"));
                return Some(Letter { told, publish: None });
            }
        };
        if !plan.takes(&record) {
            return None;
        }
        let owned = |key| record.attribute(key).map(str::to_owned);
        let mut replayed = Replayed::of(&record, &plan.letters, offset);
        if let Some(payload) = plan.only.as_ref().and_then(|only| only.payload.clone()) {
            replayed.message.payload = payload;
            replayed.is_fixed = true;
        }
        told.key = record.routing_key().map(str::to_owned);
        told.subscription = owned(header::ORIGINAL_SUBSCRIPTION);
        told.reason = owned(header::FAILURE_REASON);
        told.replay_count = replayed.count;
        match plan.target(context, &record, offset) {
            Ok(to) => {
                told.to = to.to_string();
                Some(Letter { told, publish: Some((to, replayed)) })
            }
            Err(fault) => {
                told.error = Some(fault.message);
                Some(Letter { told, publish: None })
            }
        }
    }

    async fn publish(&self, context: &Arc<Context>) -> Result<(), Fault> {
        // One that cannot be published has said why.
        let Some((to, replayed)) = &self.publish else { return Ok(()) };
        let handle = context.topics.get(context, to)?;
        if replayed.is_fixed {
            // Somebody has just written it, so it is held against the topic like any publish.
            let message = &replayed.message;
            handle.gate().check(
                context,
                Tagged {
                    schema_id: message.schema_id,
                    schema_version: message.schema_version,
                    payload: &message.payload,
                },
            )?;
            let len_max = handle.limit(Limit::MaxMessageSize);
            if len_max > 0 && message.payload.len() > len_max as usize {
                return Err(Fault::invalid(format!(
                    "its new payload has {} bytes; topic `{to}` takes at most {len_max}",
                    message.payload.len()
                )));
            }
        }
        let producer = ProducerId::derive(handle.identity().id, PRODUCER);
        let record = record::encode_trusted(producer, &replayed.message);
        let name = ProducerName::parse(PRODUCER).expect("a well-formed name");
        handle.publish(context, producer, name, record).await.map(|_| ())
    }
}

/// The message that a dead letter becomes.
struct Replayed {
    message: danube_wire::proto::danube::StreamMessage,
    count: u32,
    /// Whether its payload is not what its producer gave it.
    is_fixed: bool,
}

impl Replayed {
    /// What it says of its origin stays, what it says of its failure goes, and everything that its
    /// producer gave it is as it was.
    fn of(record: &Record, letters: &TopicName, offset: Offset) -> Replayed {
        let mut message = record.to_message(letters, "", offset, None);
        let attributes = &mut message.attributes;
        for gone in [header::POISON_POLICY, header::DELIVERY_ATTEMPT, header::FAILURE_REASON] {
            attributes.remove(gone);
        }
        let before = attributes.get(header::REPLAY_COUNT).and_then(|count| count.parse().ok());
        let count = before.unwrap_or(0_u32).saturating_add(1);
        attributes.insert(header::REPLAY_COUNT.to_owned(), count.to_string());
        attributes.insert(header::REPLAYED_FROM.to_owned(), letters.to_string());
        Replayed { message, count, is_fixed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_wire::proto::danube::StreamMessage;

    fn letter(attributes: &[(&str, &str)]) -> Record {
        let attributes =
            attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let message = StreamMessage {
            payload: "p".into(),
            publish_time: 7,
            producer_name: "maker".into(),
            attributes,
            schema_id: Some(3),
            schema_version: Some(2),
            routing_key: Some("k".into()),
            ..StreamMessage::default()
        };
        Record::parse(record::encode_trusted(ProducerId(1), &message)).expect("our own")
    }

    #[test]
    fn a_replay_keeps_the_origin_counts_and_forgets_the_failure() {
        let letters = TopicName::parse("/default/jobs-dlq").expect("well formed");
        let first = letter(&[
            ("colour", "blue"),
            ("x-original-topic", "/default/jobs"),
            ("x-original-topic-offset", "5"),
            ("x-poison-policy", "dead_letter"),
            ("x-delivery-attempt", "6"),
            ("x-failure-reason", "broken"),
        ]);
        let replayed = Replayed::of(&first, &letters, Offset(0));
        let attributes: Vec<(&str, &str)> =
            replayed.message.attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            attributes,
            [
                ("colour", "blue"),
                ("x-original-topic", "/default/jobs"),
                ("x-original-topic-offset", "5"),
                ("x-replay-count", "1"),
                ("x-replayed-from", "/default/jobs-dlq"),
            ]
        );
        let kept = &replayed.message;
        assert_eq!((kept.schema_id, kept.schema_version), (Some(3), Some(2)));
        assert_eq!(kept.routing_key.as_deref(), Some("k"));
        assert_eq!((kept.publish_time, kept.producer_name.as_str()), (7, "maker"));
        let again = Replayed::of(&letter(&[("x-replay-count", "4")]), &letters, Offset(0));
        assert_eq!(again.count, 5);
    }
}
