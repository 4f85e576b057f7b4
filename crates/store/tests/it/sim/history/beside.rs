//! What is written in one frame with messages: who sent them, and steps of other topics.
//!
//! Law: of a message and a step that are one, both are there or neither is; and what the log says of
//! a producer is what its messages say.

use super::{History, PAIRS_FROM, PRODUCERS, progress};
use crate::sim::life::Request;
use crate::sim::oracle::Violation;
use bytes::Bytes;
use danube_core::sequence::Origin;
use danube_core::subscription::progress::Step;
use danube_core::{Epoch, Offset, ProducerId, Retention, SubscriptionId, TopicId};
use danube_store::{Store, TopicLog};
use std::collections::BTreeMap;

/// What a look at the topics has shown.
pub(super) type Seen = BTreeMap<TopicId, Vec<(u64, Bytes)>>;

/// A message that is one with a step of another topic.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    topic: TopicId,
    record: Bytes,
    other: TopicId,
    offset: Offset,
}

/// What the log says of producers is what the messages say that can be read. It is `ahead` of them
/// where a batch may have been answered before it was written, and then was not.
pub(super) fn check_producers(
    log: &TopicLog,
    messages: &[(u64, Bytes)],
    ahead: bool,
) -> Result<(), Violation> {
    let mut last = BTreeMap::new();
    let end = log.bounds().next.0;
    for (offset, bytes) in messages {
        if let Some((producer, sequence)) = parse_origin(bytes) {
            last.insert(producer, (*offset, sequence));
        }
    }
    let known = log.sequences();
    for (producer, (offset, sequence)) in &last {
        let found = known.last(ProducerId(*producer)).map(|(last, at)| (at.0, last));
        // What came after may have been let go.
        let later = found.is_some_and(|(at, _)| at > *offset && (at < end || ahead));
        if found != Some((*offset, *sequence)) && !later {
            return Err(format!(
                "producer {producer} is at {found:?}, and {sequence} is its last, at {offset}"
            ));
        }
    }
    for producer in 0..PRODUCERS {
        let Some((sequence, last)) = known.last(ProducerId(producer)) else { continue };
        let at = messages.iter().find(|(offset, _)| *offset == last.0);
        let other = at.is_some_and(|(_, bytes)| parse_origin(bytes) != Some((producer, sequence)));
        if other || (last.0 >= end && !ahead) {
            return Err(format!(
                "producer {producer} is at {sequence}, offset {last}, which is another's, or nobody's"
            ));
        }
    }
    Ok(())
}

/// Producer and sequence number that a message has at its front.
fn parse_origin(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut parts = bytes.splitn(3, |byte| *byte == b':');
    let number = |part: &[u8]| std::str::from_utf8(part).ok()?.parse().ok();
    Some((number(parts.next()?)?, number(parts.next()?)?))
}

impl History {
    /// The epoch of a producer in this life of the store, in which it is opened once.
    fn open_producer(&mut self, store: &Store, topic: usize, producer: ProducerId) -> u32 {
        let log = store.topic(self.topics[topic].id, Epoch(1));
        let known = &mut self.topics[topic].epochs[producer.0 as usize];
        *known.get_or_insert_with(|| {
            let (tell, answer) = std::sync::mpsc::sync_channel(1);
            log.open_producer(producer, move |opened| drop(tell.send(opened)));
            answer.recv().ok().and_then(Result::ok).map_or(0, |opened| opened.epoch)
        })
    }

    /// An append, as it may come.
    pub(super) fn draw_append(&mut self, store: &Store, topic: usize) -> Request {
        match self.random.below(10) {
            0..3 => {
                let producer = self.random.below(PRODUCERS);
                let sequences = &mut self.topics[topic].sequences[producer as usize];
                // The first one ever is 1.
                let first_sequence = *sequences + 1;
                // Never said to follow anything: what a sequence refuses has tests of its own, and
                // here everything is to be written.
                let epoch = self.open_producer(store, topic, ProducerId(producer));
                let producer_id = ProducerId(producer);
                let origin = Origin { producer: producer_id, epoch, after: 0, first_sequence };
                let records = self.draw_records(topic);
                self.topics[topic].sequences[producer as usize] += records.len() as u64;
                let marked = (first_sequence..).zip(records).map(|(sequence, record)| {
                    Bytes::from([format!("{producer}:{sequence}:").as_bytes(), &record].concat())
                });
                Request::From(marked.collect(), origin)
            }
            3..5 => {
                let other = self.random.below(self.topics.len() as u64) as usize;
                let records = self.draw_records(topic);
                // A number that no other step has.
                let number = self.next_message;
                self.next_message += 1;
                let offset = Offset(PAIRS_FROM + number);
                let step = Step::Failed { offset, attempt: 1, blocked: false, reason: "".into() };
                let (topic, other) = (self.topics[topic].id, self.topics[other].id);
                let record = records[0].clone();
                self.pairs.push(Pair { topic, record, other, offset });
                Request::Both(records, store.topic(other, Epoch(1)), step)
            }
            _ => Request::Append(self.draw_records(topic)),
        }
    }

    /// Of each pair, both halves are there or neither is.
    pub(super) fn check_pairs(&mut self, store: &Store, seen: &Seen) -> Result<(), Violation> {
        let trusted = store.lost_progress().is_none();
        self.pairs.retain(|pair| seen.contains_key(&pair.topic) && seen.contains_key(&pair.other));
        for Pair { topic, record, other, offset } in &self.pairs {
            let messages = &seen[topic];
            let there = messages.iter().any(|(_, bytes)| bytes == record);
            let failures = progress(&store.topic(*other, Epoch(1)), SubscriptionId::REPLAY.0);
            let stepped = failures.failures().any(|(at, _)| at == *offset);
            let kept = self.topics.iter().find(|it| it.id == *topic);
            let all = kept.is_some_and(|it| it.retention == Retention::FOREVER);
            if (there && !stepped && trusted) || (stepped && !there && all) {
                return Err(format!(
                    "topic {}: half of a pair is there: message {there}, step {stepped} ({offset:?} of topic {})",
                    topic.0, other.0
                ));
            }
        }
        Ok(())
    }
}
