//! What is written in one frame with messages: who sent them, and steps of other topics.
//!
//! Law: of a message and a step that are one, both are there or neither is; and what the log says of
//! a producer is what its messages say.

use super::{History, PAIRS_FROM, PRODUCERS, progress};
use crate::sim::life::Request;
use crate::sim::oracle::Violation;
use bytes::Bytes;
use danube_core::subscription::progress::Step;
use danube_core::{Epoch, Offset, ProducerId, Retention, SubscriptionId, TopicId};
use danube_store::{Origin, Store, TopicLog};
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

/// What the log says of producers is what the messages say that can be read.
pub(super) fn check_producers(log: &TopicLog, messages: &[(u64, Bytes)]) -> Result<(), Violation> {
    let mut last = BTreeMap::new();
    let end = log.bounds().next.0;
    for (offset, bytes) in messages {
        if let Some((producer, sequence)) = parse_origin(bytes) {
            last.insert(producer, (*offset, sequence));
        }
    }
    let known = log.producers();
    for (producer, (offset, sequence)) in &last {
        let found = known.get(&ProducerId(*producer)).map(|it| (it.last.0, it.last_sequence));
        // What came after may have been let go.
        let later = found.is_some_and(|(at, _)| at > *offset && at < end);
        if found != Some((*offset, *sequence)) && !later {
            return Err(format!(
                "producer {producer} is at {found:?}, and {sequence} is its last, at {offset}"
            ));
        }
    }
    for (producer, produced) in known {
        let at = messages.iter().find(|(offset, _)| *offset == produced.last.0);
        let other = at.is_some_and(|(_, bytes)| {
            parse_origin(bytes) != Some((producer.0, produced.last_sequence))
        });
        if other || produced.last.0 >= end {
            return Err(format!(
                "{producer:?} is at {produced:?}, which is another's, or nobody's"
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
    /// An append, as it may come.
    pub(super) fn draw_append(&mut self, store: &Store, topic: usize) -> Request {
        match self.random.below(10) {
            0..3 => {
                let producer = self.random.below(PRODUCERS);
                let sequences = &mut self.topics[topic].sequences[producer as usize];
                let first_sequence = *sequences;
                let origin = Origin { producer: ProducerId(producer), epoch: 7, first_sequence };
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
