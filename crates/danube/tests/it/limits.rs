//! Limits of namespaces and topics, durability and retention: set, explained, and enforced at once.

use crate::harness::{Node, danube, danube_ok};
use crate::wire::{Wire, message};
use danube_wire::proto::danube::ConsumerRequest;
use danube_wire::proto::danube::consumer_request::SubscriptionType;
use serde_json::Value;
use tokio::task::block_in_place;
use tonic::Code;

fn ctl(node: &Node, arguments: &[&str]) -> String {
    danube_ok(&[&["ctl", "--endpoint", node.addresses().admin.as_str()], arguments].concat())
}

/// Value and origin of a setting, as `explain` has them.
fn explained(node: &Node, topic: &str, name: &str) -> (String, String) {
    let text = ctl(node, &["topics", "explain", topic, "--output", "json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let settings = found["settings"].as_array().expect("a list").clone();
    let setting = settings.into_iter().find(|setting| setting["name"] == name).expect(name);
    let text = |key: &str| setting[key].as_str().expect("text").to_owned();
    (text("value"), text("origin"))
}

fn told(value: &str, origin: &str) -> (String, String) {
    (value.to_owned(), origin.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_at_once_at_the_level_that_speaks_last() {
    let mut node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| ctl(&node, &["topics", "create", topic, "--intent", "event_stream"]));
    let name = "max_producers_per_topic";
    block_in_place(|| {
        assert_eq!(explained(&node, topic, name), told("no limit", "broker default"));
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    wire.create_producer(topic, "p1").await.expect("no limit yet");
    block_in_place(|| {
        ctl(
            &node,
            &["namespaces", "set-policies", "default", "--limit", "max_producers_per_topic=1"],
        );
        assert_eq!(explained(&node, topic, name), told("1", "namespace policy"));
    });
    let refused = wire.create_producer(topic, "p2").await.expect_err("one is enough");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    block_in_place(|| {
        ctl(&node, &["topics", "configure", topic, "--limit", "max_producers_per_topic=2"]);
        assert_eq!(explained(&node, topic, name), told("2", "override"));
    });
    wire.create_producer(topic, "p2").await.expect("two are allowed here");
    wire.create_producer(topic, "p3").await.expect_err("and no third");
    block_in_place(|| {
        node.kill();
        node.restart();
        assert_eq!(explained(&node, topic, name), told("2", "override"));
        ctl(&node, &["topics", "configure", topic, "--unset", name]);
        ctl(&node, &["namespaces", "set-policies", "default", "--unset", name]);
        assert_eq!(explained(&node, topic, name), told("no limit", "broker default"));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_subscriptions_sizes_and_rates_are_limited() {
    let node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| {
        ctl(&node, &["topics", "create", topic, "--intent", "event_stream"]);
        ctl(
            &node,
            &[
                "topics",
                "configure",
                topic,
                "--limit",
                "max_subscriptions_per_topic=1",
                "--limit",
                "max_consumers_per_subscription=1",
                "--limit",
                "max_message_size=100",
                "--limit",
                "max_publish_rate=2",
            ],
        );
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let shared = |name: &str| ConsumerRequest {
        request_id: 1,
        topic_name: topic.to_owned(),
        consumer_name: name.to_owned(),
        subscription: "s".to_owned(),
        subscription_type: SubscriptionType::Shared.into(),
        key_filters: Vec::new(),
    };
    wire.consumers.subscribe(shared("c1")).await.expect("the first");
    let second = wire.consumers.subscribe(shared("c2")).await.expect_err("one consumer");
    assert!(
        second.message().contains("max_consumers_per_subscription of 1 (override)"),
        "{second}"
    );
    let other = wire.subscribe(topic, "t", "c1").await.expect_err("one subscription");
    assert!(other.message().contains("max_subscriptions_per_topic of 1"), "{other}");
    let producer = wire.create_producer(topic, "p").await.expect("attached");
    let send = |len: usize| message(topic, producer, "p", vec![b'x'; len]);
    let large = wire.send(send(200)).await.expect_err("too large");
    assert_eq!(large.code(), Code::InvalidArgument, "{large}");
    wire.send(send(1)).await.expect("the first of this second");
    let mut refused = None;
    for _ in 0..20 {
        if let Err(status) = wire.send(send(1)).await {
            refused = Some(status);
            break;
        }
    }
    let refused = refused.expect("more than two a second, also on a slow machine");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("max_publish_rate of 2 messages per second; retry after"));
    block_in_place(|| ctl(&node, &["topics", "configure", topic, "--unset", "max_publish_rate"]));
    for _ in 0..20 {
        wire.send(send(1)).await.expect("no limit any more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_hands_out_no_more_than_its_rate_and_all_in_the_end() {
    let node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| {
        ctl(&node, &["topics", "create", topic, "--intent", "event_stream"]);
        ctl(&node, &["topics", "configure", topic, "--limit", "max_subscription_dispatch_rate=20"]);
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(topic, "s", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    let producer = wire.create_producer(topic, "p").await.expect("attached");
    let began = std::time::Instant::now();
    for n in 0..50_u32 {
        wire.send(message(topic, producer, "p", n.to_string().into_bytes())).await.expect("taken");
    }
    for _ in 0..50 {
        crate::wire::within("a message", stream.message()).await.expect("open").expect("one");
    }
    // A second's worth goes at once; the other 30 take a second and a half. Slowness cannot fail this.
    assert!(began.elapsed().as_millis() >= 1_400, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durability_can_be_set_for_one_topic_while_producers_are_there() {
    let node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| {
        ctl(&node, &["topics", "create", topic, "--intent", "task_queue"]);
        assert_eq!(explained(&node, topic, "wal_sync_mode"), told("fsync_batch", "intent"));
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let producer = wire.create_producer(topic, "p").await.expect("attached");
    wire.send(message(topic, producer, "p", b"a".to_vec())).await.expect("taken");
    block_in_place(|| {
        ctl(&node, &["topics", "configure", topic, "--wal-sync-mode", "async"]);
        assert_eq!(explained(&node, topic, "wal_sync_mode"), told("async", "override"));
        let text = ctl(&node, &["topics", "explain", topic]);
        assert!(
            text.contains("Publish: an acknowledged publish survives nothing for certain"),
            "{text}"
        );
    });
    wire.send(message(topic, producer, "p", b"b".to_vec())).await.expect("the same producer");
    block_in_place(|| {
        ctl(&node, &["topics", "create", "/default/live", "--intent", "realtime"]);
        let refused = danube(&[
            "ctl",
            "--endpoint",
            &node.addresses().admin,
            "topics",
            "configure",
            "/default/live",
            "--retention-time",
            "7d",
        ]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("is NonReliable: nothing is stored there"), "{refused:?}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_made_ahead_keeps_what_is_published_before_its_first_consumer() {
    let mut node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| {
        ctl(&node, &["topics", "create", topic, "--intent", "task_queue"]);
        ctl(&node, &["topics", "create-subscription", topic, "-s", "w"]);
        ctl(&node, &["topics", "publish", topic, "-m", "early", "--key", "k"]);
        node.kill();
        node.restart();
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(topic, "w", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    let got = crate::wire::within("a message", stream.message()).await.expect("open").expect("one");
    assert_eq!(&got.payload[..], b"early");
}
