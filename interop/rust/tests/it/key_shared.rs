//! KeyShared: a key's messages go to one consumer at a time, in order, one at a time.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::{Admin, quick_policy};
use danube_client::{Producer, SubType};
use danube_core::admin_proto::SubscriptionPoisonPolicy;
use danube_core::message::StreamMessage;
use std::collections::{BTreeMap, BTreeSet};

const TOPIC: &str = "/default/keyed";
const SUB: &str = "by-key";

fn who<'a>(name: &'a str) -> Who<'a> {
    Who::new(TOPIC, SUB, SubType::KeyShared, name)
}

/// Sends `rounds` messages for each key, `key/round`, all keys of a round before the next round.
async fn send_rounds(producer: &Producer, keys: &[String], rounds: std::ops::Range<usize>) {
    for round in rounds {
        for key in keys {
            send_keyed(producer, format!("{key}/{round}").as_bytes(), key).await;
        }
    }
}

/// All that `send_rounds` sends.
fn rounds(keys: &[String], rounds: std::ops::Range<usize>) -> Vec<String> {
    rounds.flat_map(|round| keys.iter().map(move |key| format!("{key}/{round}"))).collect()
}

fn keys_of<'a>(messages: impl IntoIterator<Item = &'a StreamMessage>) -> BTreeSet<String> {
    messages.into_iter().map(|m| m.routing_key.clone().expect("sent with a key")).collect()
}

/// Takes messages of several inboxes as they come, acknowledging each, until there are `count`.
async fn take_from(inboxes: &mut [Inbox], count: usize) -> Vec<Vec<StreamMessage>> {
    let mut taken: Vec<Vec<StreamMessage>> = inboxes.iter().map(|_| Vec::new()).collect();
    let collecting = async {
        while taken.iter().map(Vec::len).sum::<usize>() < count {
            let mut idle = true;
            for (inbox, taken) in inboxes.iter_mut().zip(&mut taken) {
                for message in inbox.pending() {
                    inbox.ack(&message).await;
                    taken.push(message);
                    idle = false;
                }
            }
            if idle {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        }
    };
    within("all messages", collecting).await;
    taken
}

/// Every key is at one consumer, and its messages are in order there.
fn assert_affinity(taken: &[Vec<StreamMessage>]) {
    let mut holder: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (who, messages) in taken.iter().enumerate() {
        for message in messages {
            let key = (
                message.msg_id.topic_name.clone(),
                message.routing_key.clone().unwrap_or_default(),
            );
            assert_eq!(*holder.entry(key.clone()).or_insert(who), who, "{key:?} at two consumers");
        }
        for key in keys_of(messages) {
            let of_key: Vec<_> =
                messages.iter().filter(|m| m.routing_key.as_deref() == Some(&key)).collect();
            assert!(
                of_key.is_sorted_by_key(|m| (m.msg_id.topic_name.clone(), m.msg_id.topic_offset))
            );
        }
    }
}

async fn single_consumer(reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let mut inbox = who("c").open(&client).await;
    Admin::connect(&broker).await.connected(TOPIC, SUB, &["c"]).await;
    let keys = numbered("key", 5);
    send_rounds(&producer, &keys, 0..4).await;
    assert_eq!(sorted_texts(&inbox.take_many(20).await), sorted(rounds(&keys, 0..4)));
}

#[tokio::test]
async fn key_shared_basic_single_consumer_non_reliable() {
    single_consumer(false).await;
}

#[tokio::test]
async fn key_shared_basic_single_consumer_reliable() {
    single_consumer(true).await;
}

async fn affinity(reliable: bool, partitions: Option<usize>) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, partitions).await;
    let mut inboxes = [who("a").open(&client).await, who("b").open(&broker.client().await).await];
    Admin::connect(&broker).await.connected(TOPIC, SUB, &["a", "b"]).await;
    let keys = numbered("key", 20);
    send_rounds(&producer, &keys, 0..3).await;
    let taken = take_from(&mut inboxes, 60).await;
    assert_affinity(&taken);
    assert!(taken.iter().all(|messages| !messages.is_empty()), "both have work");
    assert_eq!(sorted_texts(taken.iter().flatten()), sorted(rounds(&keys, 0..3)));
}

#[tokio::test]
async fn key_shared_per_key_affinity_non_reliable() {
    affinity(false, None).await;
}

#[tokio::test]
async fn key_shared_reliable_per_key_affinity() {
    affinity(true, None).await;
}

#[tokio::test]
async fn key_shared_partitioned_multi_consumer_affinity() {
    affinity(false, Some(3)).await;
}

#[tokio::test]
async fn key_shared_reliable_partitioned() {
    affinity(true, Some(3)).await;
}

#[tokio::test]
async fn key_shared_partitioned_single_consumer() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", false, Some(3)).await;
    let mut inbox = who("c").open(&client).await;
    Admin::connect(&broker).await.connected(TOPIC, SUB, &["c"]).await;
    let keys = numbered("key", 10);
    send_rounds(&producer, &keys, 0..3).await;
    let messages = inbox.take_many(30).await;
    assert_eq!(sorted_texts(&messages), sorted(rounds(&keys, 0..3)));
    let topics: BTreeSet<_> = messages.iter().map(|m| m.msg_id.topic_name.as_str()).collect();
    assert!(topics.len() > 1, "{topics:?}");
}

#[tokio::test]
async fn key_shared_reliable_out_of_order_ack() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = who("c").open(&client).await;
    let keys = numbered("key", 10);
    send_rounds(&producer, &keys, 0..2).await;
    let mut first = Vec::new();
    for _ in 0..10 {
        first.push(inbox.next().await);
    }
    assert_eq!(sorted_texts(&first), sorted(rounds(&keys, 0..1)), "one of each key at a time");
    inbox.stays_empty().await;
    for message in first.iter().rev() {
        inbox.ack(message).await;
    }
    assert_eq!(sorted_texts(&inbox.take_many(10).await), sorted(rounds(&keys, 1..2)));
}

async fn disjoint_filters(reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let mut eu = who("eu").filtered(&["eu-*"]).open(&client).await;
    let mut us = who("us").filtered(&["us-?"]).open(&broker.client().await).await;
    Admin::connect(&broker).await.connected(TOPIC, SUB, &["eu", "us"]).await;
    for key in ["eu-west", "us-1", "eu-east", "us-2", "eu-", "us-3"] {
        send_keyed(&producer, key.as_bytes(), key).await;
    }
    assert_eq!(sorted_texts(&eu.take_many(3).await), ["eu-", "eu-east", "eu-west"]);
    assert_eq!(sorted_texts(&us.take_many(3).await), ["us-1", "us-2", "us-3"]);
    eu.stays_empty().await;
    us.stays_empty().await;
}

#[tokio::test]
async fn key_shared_filter_glob_non_reliable() {
    disjoint_filters(false).await;
}

#[tokio::test]
async fn key_shared_filter_glob_reliable() {
    disjoint_filters(true).await;
}

#[tokio::test]
async fn key_shared_filter_mixed_with_unfiltered() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut vip = who("vip").filtered(&["vip-*"]).open(&client).await;
    let mut rest = who("rest").open(&broker.client().await).await;
    Admin::connect(&broker).await.connected(TOPIC, SUB, &["rest", "vip"]).await;
    let (vips, others) = (numbered("vip", 8), numbered("std", 8));
    for key in vips.iter().chain(&others) {
        send_keyed(&producer, key.as_bytes(), key).await;
    }
    // A filter that matches takes precedence over a consumer without one.
    assert_eq!(sorted_texts(&vip.take_many(8).await), sorted(vips));
    assert_eq!(sorted_texts(&rest.take_many(8).await), sorted(others));
}

#[tokio::test]
async fn key_shared_filter_multiple_patterns() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = who("c").filtered(&["order-*", "refund-??", "*-urgent"]).open(&client).await;
    let mut admin = Admin::connect(&broker).await;
    admin.connected(TOPIC, SUB, &["c"]).await;
    for key in ["order-1", "refund-12", "refund-123", "mail-urgent", "other"] {
        send_keyed(&producer, key.as_bytes(), key).await;
    }
    assert_eq!(sorted_texts(&inbox.take_many(3).await), ["mail-urgent", "order-1", "refund-12"]);
    // What nobody wants is skipped, counted, and does not stand in the way.
    admin
        .until(TOPIC, "all are finished", |d| {
            d.subscriptions.iter().any(|s| s.backlog == 0 && s.unmatched == 2)
        })
        .await;
    inbox.stays_empty().await;
}

#[tokio::test]
async fn key_shared_consumer_churn_join() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inboxes = vec![who("a").open(&client).await, who("b").open(&client).await];
    admin.connected(TOPIC, SUB, &["a", "b"]).await;
    let keys = numbered("key", 20);
    send_rounds(&producer, &keys, 0..2).await;
    let before = take_from(&mut inboxes, 40).await;
    inboxes.push(who("c").open(&client).await);
    admin.connected(TOPIC, SUB, &["a", "b", "c"]).await;
    send_rounds(&producer, &keys, 2..4).await;
    let after = take_from(&mut inboxes, 40).await;
    assert_affinity(&before);
    assert_affinity(&after);
    assert!(after.iter().filter(|messages| !messages.is_empty()).count() >= 2);
    let all = before.iter().chain(&after).flatten();
    assert_eq!(sorted_texts(all), sorted(rounds(&keys, 0..4)), "no loss, no duplicate");
}

#[tokio::test]
async fn key_shared_reliable_inactive_consumer_eviction() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inboxes =
        vec![who("a").open(&client).await, who("b").open(&broker.client().await).await];
    admin.connected(TOPIC, SUB, &["a", "b"]).await;
    let keys = numbered("key", 20);
    send_rounds(&producer, &keys, 0..1).await;
    let held = inboxes[0].next().await;
    inboxes.remove(0).close().await;
    send_rounds(&producer, &keys, 1..2).await;
    let taken = take_from(&mut inboxes, 40).await;
    assert!(keys_of(&taken[0]).contains(held.routing_key.as_deref().expect("sent with a key")));
    assert_affinity(&taken);
    assert_eq!(sorted_texts(&taken[0]), sorted(rounds(&keys, 0..2)), "what it held comes again");
}

#[tokio::test]
async fn key_shared_reliable_nack_redelivers_same_message() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let policy = quick_policy(5, SubscriptionPoisonPolicy::Block, None);
    Admin::connect(&broker).await.set_failure_policy(TOPIC, SUB, policy).await;
    let mut inbox = who("c").open(&client).await;
    send_keyed(&producer, b"first", "k").await;
    send_keyed(&producer, b"second", "k").await;
    let first = inbox.next().await;
    inbox.nack(&first, Some("not today")).await;
    let again = inbox.take().await;
    assert_eq!(
        (text(&again), again.msg_id.topic_offset),
        (text(&first), first.msg_id.topic_offset)
    );
    assert_eq!(text(&inbox.take().await), "second", "only then the key goes on");
}

/// A subscription with one re-delivery allowed, and on it a poison message of key `bad`, nacked
/// twice, with another message of that key behind it.
async fn poisoned(
    broker: &Broker,
    policy: SubscriptionPoisonPolicy,
) -> (Producer, Inbox, StreamMessage) {
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut admin = Admin::connect(broker).await;
    let dead_letters = match policy {
        SubscriptionPoisonPolicy::DeadLetter => Some("/default/keyed-failed"),
        _ => None,
    };
    if let Some(topic) = dead_letters {
        admin.create_topic(topic, true).await;
    }
    admin.set_failure_policy(TOPIC, SUB, quick_policy(1, policy, dead_letters)).await;
    let mut inbox = who("c").open(&client).await;
    send_keyed(&producer, b"poison", "bad").await;
    send_keyed(&producer, b"behind", "bad").await;
    let first = inbox.next().await;
    inbox.nack(&first, Some("cannot parse")).await;
    let second = inbox.next().await;
    assert_eq!(second.msg_id.topic_offset, first.msg_id.topic_offset);
    inbox.nack(&second, Some("cannot parse")).await;
    (producer, inbox, second)
}

#[tokio::test]
async fn key_shared_reliable_drop_poison_skips_exhausted_message() {
    let broker = Broker::start().await;
    let (_producer, mut inbox, _) = poisoned(&broker, SubscriptionPoisonPolicy::Drop).await;
    assert_eq!(text(&inbox.take().await), "behind");
}

#[tokio::test]
async fn key_shared_reliable_block_poison_stalls_only_affected_key() {
    let broker = Broker::start().await;
    let (producer, mut inbox, poison) = poisoned(&broker, SubscriptionPoisonPolicy::Block).await;
    for key in ["good", "better"] {
        send_keyed(&producer, key.as_bytes(), key).await;
    }
    assert_eq!(sorted_texts(&inbox.take_many(2).await), ["better", "good"]);
    inbox.stays_empty().await;
    inbox.ack(&poison).await;
    assert_eq!(text(&inbox.take().await), "behind", "an ack frees the key");
}

#[tokio::test]
async fn key_shared_reliable_deadletter_routes_to_dlq_and_frees_key() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let (_producer, mut inbox, poison) =
        poisoned(&broker, SubscriptionPoisonPolicy::DeadLetter).await;
    assert_eq!(text(&inbox.take().await), "behind");
    // It was there before this consumer was: a new subscription starts at the latest message, so
    // look from the other side, through a second poison message.
    let failed = "/default/keyed-failed";
    let mut dead = Who::new(failed, "watch", SubType::Exclusive, "w").open(&client).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    send_keyed(&producer, b"more poison", "bad").await;
    for _ in 0..2 {
        let message = inbox.next().await;
        inbox.nack(&message, Some("still bad")).await;
    }
    let copy = dead.take().await;
    assert_eq!(text(&copy), "more poison");
    assert_eq!(copy.msg_id.topic_name, failed);
    assert_eq!(copy.routing_key.as_deref(), Some("bad"), "a dead letter keeps its key");
    let offset = (poison.msg_id.topic_offset + 2).to_string();
    for (name, value) in [
        ("x-original-topic", TOPIC),
        ("x-original-subscription", SUB),
        ("x-original-topic-offset", &offset),
        ("x-poison-policy", "dead_letter"),
        ("x-delivery-attempt", "2"),
        ("x-failure-reason", "still bad"),
    ] {
        assert_eq!(copy.attributes.get(name).map(String::as_str), Some(value), "{name}");
    }
}
