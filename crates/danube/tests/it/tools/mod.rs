//! The operator's tools against a broker: what they show, what they move, and how they exit.

mod dispatch;
mod failure_policy;
mod peek;
mod replay;
mod seek;

use crate::harness::{Node, Run, danube};
use crate::wire::{Wire, message};
use danube_core::{Position, WallMs};
use danube_wire::proto::danube::{NackRequest, StreamMessage};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::Streaming;

/// Runs `danube ctl topics` against the node.
fn topics(node: &Node, arguments: &[&str]) -> Run {
    let at = ["ctl", "--endpoint", node.addresses().admin.as_str(), "topics"];
    danube(&[&at, arguments].concat())
}

/// The same, and requires success and a clean stderr; stdout.
#[track_caller]
pub fn topics_ok(node: &Node, arguments: &[&str]) -> String {
    let run = topics(node, arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}: {}", run.stdout);
    run.stdout
}

/// The same, as JSON.
#[track_caller]
pub fn topics_json(node: &Node, arguments: &[&str]) -> Value {
    let text = topics_ok(node, &[arguments, &["--output", "json"]].concat());
    serde_json::from_str(&text).expect("a JSON document")
}

/// Requires a refusal: this exit code, nothing on stdout, and this on stderr.
#[track_caller]
fn refused(run: &Run, code: i32, says: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{}", run.stderr);
    assert!(run.stderr.contains(says), "{says:?} is not in {}", run.stderr);
}

/// The offset that the next message of a topic gets.
#[track_caller]
pub fn next_offset(node: &Node, topic: &str) -> u64 {
    let described = topics_json(node, &["describe", topic]);
    described["partitions"][0]["next_offset"].as_u64().expect("a number")
}

/// Publishes one message for each payload.
pub async fn publish<P: Into<Vec<u8>>>(
    wire: &mut Wire,
    topic: &str,
    payloads: impl IntoIterator<Item = P>,
) {
    let producer = wire.create_producer(topic, "p").await.expect("a producer");
    for (index, payload) in (0_u64..).zip(payloads) {
        let mut message = message(topic, producer, "p", payload.into());
        message.publish_time += index * 1_000;
        message.routing_key = Some(format!("k{}", index % 7));
        wire.send(message).await.expect("published");
    }
}

/// A time after everything published so far and before everything published from now on, by the
/// broker's clock as well as by ours, as a position.
fn between() -> String {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        u64::try_from(since.as_millis()).expect("before the year 500 million")
    };
    // The two clocks may differ by the rounding.
    let middle = now() + 5;
    while now() < middle + 5 {
        std::thread::yield_now();
    }
    Position::Time(WallMs(middle)).to_string()
}

/// The next message of a stream.
pub async fn receive(stream: &mut Streaming<StreamMessage>) -> StreamMessage {
    let next = crate::wire::within("a message", stream.message()).await;
    next.expect("the stream is open").expect("a message")
}

/// Says that a message failed.
pub async fn nack(wire: &mut Wire, message: &StreamMessage, subscription: &str) {
    let request = NackRequest {
        request_id: message.request_id,
        msg_id: message.msg_id.clone(),
        subscription_name: subscription.into(),
        delay_ms: None,
        reason: Some("broken".into()),
    };
    crate::wire::within("Nack", wire.consumers.nack(request)).await.expect("nacked");
}
