//! Look at messages where they lie. No subscription, no consumer and no counter hears of it: the
//! log is read directly, and the topic's actor is not asked.
//!
//! Law: an answer is bounded in messages and bytes; what does not fit is said to be there.

use crate::context::Context;
use crate::scan;
use crate::schema;
use danube_core::{Fault, Offset, Position, SubscriptionName, TopicName, catalog};
use danube_store::{ReadLimit, TopicLog};
use danube_wire::proto::control;
use danube_wire::record::Record;
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages of one answer.
const MESSAGES_MAX: u32 = 1_000;
/// Bytes of the messages of one answer, apart from the first.
const BYTES_MAX: usize = 8 << 20;

pub(super) async fn call(
    context: &Arc<Context>,
    request: control::PeekMessagesRequest,
) -> Result<control::PeekMessagesResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    if request.limit == 0 || request.limit > MESSAGES_MAX {
        return Err(Fault::invalid(format!(
            "cannot peek at `{}` messages of topic `{name}`; give 1 to {MESSAGES_MAX}",
            request.limit
        )));
    }
    let from = From::parse(&request)?;
    let view = context.meta.view();
    let mut heads = Vec::new();
    for partition in super::partitions(context, &name)? {
        let Some(topic) = view.topic(&partition) else { continue };
        let log = scan::log_of(context, &partition, topic)?;
        if let Some(at) = from.offset(&log, topic).await? {
            heads.push(Head::read(partition, &log, at, request.limit).await?);
        }
    }
    match &from {
        From::Cursor(subscription) if heads.is_empty() => Err(Fault::not_found(format!(
            "topic `{name}` has no subscription `{subscription}`; `danube ctl topics subscriptions \
             {name}` shows what it has"
        ))),
        _ => schema::control::decode(context, merge(heads, request.limit as usize)).await,
    }
}

/// Where to begin.
enum From {
    Position(Position),
    Cursor(SubscriptionName),
}

impl From {
    fn parse(request: &control::PeekMessagesRequest) -> Result<From, Fault> {
        match (&request.position, &request.subscription) {
            (Some(_), Some(_)) => Err(Fault::invalid(
                "a position and a subscription are two places to begin at; leave one of them out",
            )),
            (Some(position), None) => Position::parse(position).map(From::Position),
            (None, Some(name)) => SubscriptionName::parse(name).map(From::Cursor),
            (None, None) => Ok(From::Position(Position::Earliest)),
        }
    }

    /// The offset that this means in one partition; `None` where it does not have the
    /// subscription.
    async fn offset(
        &self,
        log: &TopicLog,
        topic: &catalog::Topic,
    ) -> Result<Option<Offset>, Fault> {
        match self {
            From::Position(position) => scan::locate(log, *position).await.map(Some),
            From::Cursor(name) => Ok(topic
                .subscriptions
                .get(name)
                .map(|known| log.subscription(known.id, known.start).cursor())),
        }
    }
}

/// The first messages of one partition.
struct Head {
    partition: TopicName,
    messages: VecDeque<(Offset, Record)>,
    /// More would have fitted the limit, but not the answer.
    cut: bool,
}

impl Head {
    async fn read(
        partition: TopicName,
        log: &TopicLog,
        from: Offset,
        limit: u32,
    ) -> Result<Head, Fault> {
        let mut head = Head { partition, messages: VecDeque::new(), cut: false };
        let (mut next, mut bytes) = (from, 0);
        while head.messages.len() < limit as usize {
            let records_max = limit as usize - head.messages.len();
            let batch =
                scan::read(log, next, ReadLimit { records_max, bytes_max: BYTES_MAX }).await?;
            if batch.records.is_empty() {
                break;
            }
            for (offset, stored) in batch.records {
                bytes += stored.len();
                if bytes > BYTES_MAX && !head.messages.is_empty() {
                    head.cut = true;
                    return Ok(head);
                }
                let record = Record::parse(stored).map_err(|error| {
                    Fault::internal(format!(
                        "cannot read offset {offset} of topic `{}`: {error}",
                        head.partition
                    ))
                })?;
                head.messages.push_back((offset, record));
            }
            next = batch.next;
        }
        Ok(head)
    }

    fn published(&self) -> Option<u64> {
        self.messages.front().map(|(_, record)| record.publish_time().0)
    }
}

/// The first messages of all partitions: each partition's in its order, the earliest published of
/// their heads first.
fn merge(mut heads: Vec<Head>, limit: usize) -> control::PeekMessagesResponse {
    let mut answer = control::PeekMessagesResponse::default();
    let mut bytes = 0;
    while answer.messages.len() < limit {
        let earliest = heads.iter_mut().filter(|head| !head.messages.is_empty());
        let Some(head) = earliest.min_by_key(|head| head.published()) else {
            answer.cut = heads.iter().any(|head| head.cut);
            return answer;
        };
        let Some((offset, record)) = head.messages.pop_front() else { return answer };
        bytes += record.bytes().len();
        if bytes > BYTES_MAX && !answer.messages.is_empty() {
            answer.cut = true;
            return answer;
        }
        answer.messages.push(message(&head.partition, offset, &record));
    }
    answer
}

fn message(partition: &TopicName, offset: Offset, record: &Record) -> control::PeekedMessage {
    let whole = record.to_message(partition, "", offset, None);
    control::PeekedMessage {
        topic: partition.to_string(),
        offset: offset.0,
        key: whole.routing_key,
        attributes: whole.attributes.into_iter().collect(),
        payload: whole.payload.into(),
        publish_time: whole.publish_time,
        producer_name: whole.producer_name,
        schema_id: whole.schema_id,
        schema_version: whole.schema_version,
        decoded: None,
        schema_type: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::ProducerId;
    use danube_wire::proto::danube::StreamMessage;
    use danube_wire::record;

    fn head(partition: &str, published: &[u64], len: usize) -> Head {
        let record = |at: &u64| {
            let payload = vec![b'x'; len].into();
            let message = StreamMessage { publish_time: *at, payload, ..Default::default() };
            Record::parse(record::encode(ProducerId(1), &message)).expect("our own")
        };
        let messages = (0..).map(Offset).zip(published.iter().map(record)).collect();
        let partition = TopicName::parse(partition).expect("well formed");
        Head { partition, messages, cut: false }
    }

    fn order(answer: &control::PeekMessagesResponse) -> Vec<(char, u64)> {
        let last = |topic: &str| topic.chars().last().expect("not empty");
        answer.messages.iter().map(|m| (last(&m.topic), m.offset)).collect()
    }

    #[test]
    fn partitions_are_merged_by_time_and_each_keeps_its_order() {
        // The clock of the second producer ran backwards once.
        let heads = || vec![head("/n/a", &[10, 40], 1), head("/n/b", &[30, 20, 50], 1)];
        let merged = [('a', 0), ('b', 0), ('b', 1), ('a', 1), ('b', 2)];
        assert_eq!(order(&merge(heads(), 9)), merged);
        assert_eq!(order(&merge(heads(), 3)), merged[..3]);
        assert!(!merge(heads(), 3).cut, "what is beyond the limit was not asked for");
        assert!(merge(vec![], 3).messages.is_empty());
    }

    #[test]
    fn an_answer_is_full_at_some_size_and_says_so() {
        let heads = vec![head("/n/a", &[1, 2, 3], BYTES_MAX / 2)];
        let answer = merge(heads, 9);
        assert_eq!((answer.messages.len(), answer.cut), (1, true));
    }
}
