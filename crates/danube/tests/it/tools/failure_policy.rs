//! A failure policy says where each of its values comes from, and what is not given stays.

use super::*;
use expect_test::expect;
use tokio::task::block_in_place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_says_where_it_comes_from() {
    let node = block_in_place(Node::start);
    let topic = "/default/jobs";
    let get = ["get-failure-policy", topic, "-s", "workers"];
    block_in_place(|| {
        topics_ok(&node, &["create", topic, "--intent", "task_queue"]);
        refused(&topics(&node, &get), 1, "has no subscription `workers`");
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    wire.subscribe(topic, "workers", "c").await.expect("attached");
    block_in_place(|| {
        expect![[r#"
            Topic: /default/jobs
            Subscription: workers
            Max Redelivery Count: 5
            Ack Timeout Ms: 30000
            Base Redelivery Delay Ms: 1000
            Max Redelivery Delay Ms: 60000
            Backoff Strategy: exponential
            Dead Letter Topic: /default/jobs-dlq
            Poison Policy: dead_letter
            Source: intent (base_redelivery_delay_ms, dead_letter_topic, max_redelivery_count, poison_policy), fallback (ack_timeout_ms, backoff_strategy, max_redelivery_delay_ms)
        "#]]
        .assert_eq(&topics_ok(&node, &get));

        let set = ["set-failure-policy", topic, "-s", "workers"];
        topics_ok(&node, &[&set[..], &["--max-redelivery-count", "8"]].concat());
        let sources = topics_json(&node, &get)["source"].clone();
        assert_eq!(sources["max_redelivery_count"], "override");
        assert_eq!(sources["base_redelivery_delay_ms"], "intent");
        assert_eq!(sources["ack_timeout_ms"], "fallback");

        // A policy for a subscription that is to come starts from what the topic gives.
        let ahead = ["set-failure-policy", topic, "-s", "later", "--ack-timeout-ms", "45000"];
        topics_ok(&node, &ahead);
        let later = topics_json(&node, &["get-failure-policy", topic, "-s", "later"]);
        assert_eq!(
            (&later["poison_policy"], &later["ack_timeout_ms"]),
            (&json("dead_letter"), &45_000.into())
        );
        assert_eq!(
            (&later["source"]["poison_policy"], &later["source"]["ack_timeout_ms"]),
            (&json("intent"), &json("override"))
        );

        topics_ok(&node, &["create", "/default/live", "--intent", "realtime"]);
        let none = ["get-failure-policy", "/default/live", "-s", "s"];
        assert!(topics_ok(&node, &none).contains("Failure Policy: None"));
        topics_ok(&node, &["create", "/default/plain", "--dispatch-strategy", "reliable"]);
    });
    // The first consumer finds what was set ahead, later ones change nothing.
    wire.subscribe(topic, "later", "c").await.expect("attached");
    wire.subscribe("/default/plain", "s", "c").await.expect("attached");
    block_in_place(|| {
        let later = topics_json(&node, &["get-failure-policy", topic, "-s", "later"]);
        assert_eq!(later["ack_timeout_ms"], 45_000);
        let plain = topics_json(&node, &["get-failure-policy", "/default/plain", "-s", "s"]);
        let sources = plain["source"].as_object().expect("an object");
        assert!(sources.values().all(|source| source == "fallback"), "{plain}");
        assert_eq!(sources.len(), 7);
    });
}

fn json(text: &str) -> Value {
    Value::from(text)
}
