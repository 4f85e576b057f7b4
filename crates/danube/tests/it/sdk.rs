//! The client library against the real broker: what is acknowledged is there once, whatever
//! happens to the process, and what the application never saw costs nothing.

use crate::harness::{Node, danube_ok};
use danube_sdk::{Client, Consumer, Error, NewMessage, Position, SchemaChoice};
use futures::future::join_all;
use std::future::Future;
use std::time::Duration;
use tokio::task::block_in_place;

/// Nothing here takes this long, unless it never comes.
const NEVER: Duration = Duration::from_secs(60);

async fn comes<T>(what: &str, future: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(NEVER, future).await;
    came.unwrap_or_else(|_| panic!("{what} never came"))
}

fn connect(node: &Node) -> Client {
    let url = node.addresses().broker.clone();
    let client =
        Client::builder(url).retry_pauses(Duration::from_millis(5), Duration::from_millis(100));
    client.build().expect("a URL")
}

async fn read(consumer: &Consumer, count: usize) -> Vec<(u64, u32, String)> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let message = comes("a message", consumer.next()).await.expect("received");
        let text = String::from_utf8(message.payload().to_vec()).expect("text");
        messages.push((message.offset(), message.attempt(), text));
        drop(consumer.ack(&message));
    }
    messages
}

fn create(node: &Node, topic: &str, intent: &str) {
    let admin = node.addresses().admin.clone();
    block_in_place(|| {
        danube_ok(&["ctl", "--endpoint", &admin, "topics", "create", topic, "--intent", intent]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_is_there_once_after_kills_under_load() {
    const MESSAGES: usize = 3_000;
    let mut node = Node::start();
    create(&node, "/default/t", "task_queue");
    let client = connect(&node);
    let producer = client.producer("/default/t").name("p").batch_messages(50).open().await;
    let producer = producer.expect("opened");
    let publishing = tokio::spawn(async move {
        let mut receipts = Vec::new();
        for n in 0..MESSAGES {
            let message = NewMessage::new(format!("{n}"));
            receipts.push(producer.enqueue(message).await.expect("room"));
            if n % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let mut offsets = Vec::new();
        for receipt in join_all(receipts).await {
            offsets.push(receipt.expect("stored").offset());
        }
        offsets
    });
    for _ in 0..3 {
        let first = client.consumer("/default/t", "watch").start(Position::Earliest);
        let first = comes("the watch", first.subscribe()).await.expect("subscribed");
        comes("a message", first.next()).await.expect("received");
        block_in_place(|| {
            node.kill();
            node.restart();
        });
        drop(first);
    }
    let offsets = comes("all receipts", publishing).await.expect("no panic");
    let strays: Vec<_> = offsets.windows(2).filter(|pair| pair[0] + 1 != pair[1]).collect();
    assert!(strays.is_empty() && offsets[0] == 0, "once, and in order: {strays:?}");

    let reader = client.consumer("/default/t", "read").exclusive().start(Position::Earliest);
    let reader = comes("the reader", reader.subscribe()).await.expect("subscribed");
    let mut read = Vec::new();
    while read.len() as u64 <= offsets[MESSAGES - 1] {
        let message = comes("a message", reader.next()).await.expect("received");
        assert_eq!(message.offset(), read.len() as u64, "in order, nothing left out");
        read.push(String::from_utf8(message.payload().to_vec()).expect("text"));
        drop(reader.ack(&message));
    }
    for (n, offset) in offsets.iter().enumerate() {
        assert_eq!(read[*offset as usize], n.to_string(), "what a receipt said is true");
    }
    comes("the close", reader.close()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_buffer_goes_back_uncounted() {
    let node = Node::start();
    create(&node, "/default/t", "task_queue");
    let client = connect(&node);
    let producer = client.producer("/default/t").open().await.expect("opened");
    let consumer = client.consumer("/default/t", "s").start(Position::Earliest);
    let first = comes("the first", consumer.subscribe()).await.expect("subscribed");
    for n in 0..10 {
        producer.send(format!("{n}"), None).await.expect("stored");
    }
    let one = comes("a message", first.next()).await.expect("received");
    comes("the ack", first.ack(&one)).await.expect("settled");
    comes("the close", first.close()).await;

    let second = client.consumer("/default/t", "s").subscribe();
    let second = comes("the second", second).await.expect("subscribed");
    let rest: Vec<_> = read(&second, 9).await;
    let expected: Vec<_> = (1..10).map(|n| (n, 1, n.to_string())).collect();
    assert_eq!(rest, expected, "in order, and all of them for the first time");
    comes("the close", second.close()).await;
    comes("the close", producer.close()).await.expect("nothing failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nack_comes_again_and_a_lost_lease_is_told() {
    let node = Node::start();
    create(&node, "/default/t", "task_queue");
    let client = connect(&node);
    let producer = client.producer("/default/t").open().await.expect("opened");
    let consumer = client.consumer("/default/t", "s").start(Position::Earliest);
    let consumer = comes("the consumer", consumer.subscribe()).await.expect("subscribed");
    producer.send("job", None).await.expect("stored");
    let first = comes("a message", consumer.next()).await.expect("received");
    let extended = comes("the answer", consumer.extend(&first, Duration::from_secs(90))).await;
    assert!(extended.expect("granted").is_some_and(|granted| granted > Duration::from_secs(5)));
    comes("the answer", consumer.nack(&first, Duration::ZERO, "not now")).await.expect("settled");
    let lost = comes("the answer", consumer.ack(&first)).await.expect_err("it is nacked");
    assert!(matches!(lost, Error::LeaseLost { .. }), "{lost}");
    let second = comes("a message", consumer.next()).await.expect("received");
    assert_eq!((second.offset(), second.attempt()), (first.offset(), 2));
    comes("the answer", consumer.ack(&second)).await.expect("settled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_name_takes_over_and_the_older_one_is_told() {
    let node = Node::start();
    create(&node, "/default/t", "event_stream");
    let client = connect(&node);
    let older = client.producer("/default/t").name("p").open().await.expect("opened");
    older.send("1", None).await.expect("stored");
    let other = connect(&node);
    let newer = other.producer("/default/t").name("p").open().await.expect("opened");
    newer.send("2", None).await.expect("stored");
    let fenced = comes("an answer", older.send("3", None)).await.expect_err("fenced");
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced}");
    let id = newer.send("4", None).await.expect("stored");
    assert_eq!(id.offset(), 2, "what the older one sent is not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_keeps_nothing_is_streamed_too() {
    let node = Node::start();
    create(&node, "/default/t", "realtime");
    let client = connect(&node);
    let producer = client.producer("/default/t").open().await.expect("opened");
    let consumer = client.consumer("/default/t", "s").subscribe();
    let consumer = comes("the consumer", consumer).await.expect("subscribed");
    producer.send("beat", None).await.expect("handed on");
    let message = comes("a message", consumer.next()).await.expect("received");
    assert_eq!(&message.payload()[..], b"beat");
    comes("nothing", consumer.ack(&message)).await.expect("nothing to do");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_speak_both_wires_to_each_other() {
    let node = Node::start();
    create(&node, "/default/t", "task_queue");
    let broker = node.addresses().broker.as_str();
    block_in_place(|| {
        for (from, to) in [("native", "compatible"), ("compatible", "native")] {
            let subscribe = ["consume", "-s", broker, "-t", "/default/t", "-m", to];
            let subscribe = [&subscribe[..], &["--wire", to, "--count", "2", "--timeout", "20"]];
            let mut consumer = crate::harness::command();
            let consumer = consumer.args(subscribe.concat()).stdout(std::process::Stdio::piped());
            let consumer = consumer.stderr(std::process::Stdio::piped()).spawn();
            let mut consumer = consumer.expect("the binary was built for this test");
            let mut line = String::new();
            let stderr = consumer.stderr.as_mut().expect("piped");
            std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line)
                .expect("a pipe can be read");
            assert!(line.starts_with("subscribed"), "{line}");
            let produce = ["produce", "-s", broker, "-t", "/default/t", "-m", "hello"];
            let rest = ["-a", "n:1", "--key", "k", "--count", "2", "-i", "0", "--wire", from];
            let sent = danube_ok(&[&produce[..], &rest].concat());
            assert_eq!(sent.lines().count(), 2);
            assert!(sent.starts_with("sent topic=/default/t request="), "{sent}");
            let out = consumer.wait_with_output().expect("our own child");
            let out = String::from_utf8(out.stdout).expect("text");
            assert_eq!(out.lines().count(), 2, "{out}");
            assert!(out.contains("key=k attributes=n:1 payload=hello"), "{out}");
        }
    });
}

/// Registers a definition; its schema's id, and its version.
async fn register(node: &Node, subject: &str, kind: &str, definition: &str) -> (u64, u32) {
    use danube_wire::proto::danube_schema::RegisterSchemaRequest;
    use danube_wire::proto::danube_schema::schema_registry_client::SchemaRegistryClient;

    let url = node.addresses().broker.clone();
    let mut registry = SchemaRegistryClient::connect(url).await.expect("the broker serves");
    let request = RegisterSchemaRequest {
        subject: subject.into(),
        schema_type: kind.into(),
        schema_definition: definition.to_owned().into(),
        ..RegisterSchemaRequest::default()
    };
    let registered = registry.register_schema(request).await.expect("registered").into_inner();
    (registered.schema_id, registered.version)
}

#[tokio::test(flavor = "multi_thread")]
async fn values_travel_by_the_schema_they_were_written_by_and_what_it_referred_to_then() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Order {
        id: i64,
        ship_to: Address,
    }
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Address {
        street: String,
    }
    let node = Node::start();
    let address = |fields: &str| {
        format!(r#"{{"type": "record", "name": "shop.Address", "fields": [{fields}]}}"#)
    };
    let street = r#"{"name": "street", "type": "string"}"#;
    register(&node, "shop.Address", "avro", &address(street)).await;
    let order = r#"{"type": "record", "name": "shop.Order", "fields": [
        {"name": "id", "type": "long"}, {"name": "ship_to", "type": "shop.Address"}]}"#;
    let id = register(&node, "orders", "avro", order).await;
    // A later version of what it refers to changes nothing for what is registered.
    let floor = r#"{"name": "floor", "type": "int", "default": 0}"#;
    let latest =
        register(&node, "shop.Address", "avro", &address(&[floor, street].join(","))).await;
    assert_eq!(latest.1, 2);

    let client = connect(&node);
    let producer = client.producer("/default/t").reliable();
    let producer = producer.schema(SchemaChoice::latest("orders")).open().await.expect("opened");
    let orders = producer.typed::<Order>();
    let order = Order { id: 7, ship_to: Address { street: "Main".into() } };
    orders.send(&order).await.expect("stored");
    let consumer = client.consumer("/default/t", "s").start(Position::Earliest).subscribe();
    let consumer = comes("the consumer", consumer).await.expect("subscribed").typed::<Order>();
    let message = comes("a message", consumer.next()).await.expect("received");
    assert_eq!(message.message().payload(), &b"\x0e\x08Main"[..], "a bare datum of Avro");
    assert_eq!(message.value().expect("an order"), &order);
    let schema = message.schema().expect("it is named");
    assert_eq!((schema.id(), schema.version(), schema.kind()), (id.0, id.1, "avro"));

    let producer = client.producer("/default/t").name("other");
    let producer = producer.schema(SchemaChoice::latest("orders")).open().await.expect("opened");
    let refused = producer.typed::<u32>().send(&7).await.expect_err("no order").to_string();
    assert!(refused.contains("version 1 of schema `orders`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_names_its_schema_and_is_read_as_it_says() {
    let node = Node::start();
    let list = r#"{"type": "array", "items": {"type": "integer"}}"#;
    let registered = register(&node, "orders", "json_schema", list).await;
    let client = connect(&node);
    let producer = client.producer("/default/t").reliable();
    let producer = producer.schema(SchemaChoice::latest("orders")).open().await.expect("opened");
    let lists = producer.typed::<Vec<u32>>();
    let consumer = client.consumer("/default/t", "s").start(Position::Earliest).subscribe();
    let consumer = comes("the consumer", consumer).await.expect("subscribed");
    let consumer = consumer.typed::<Vec<u32>>();
    lists.send(&vec![1, 2]).await.expect("stored");
    let message = comes("a message", consumer.next()).await.expect("received");
    assert_eq!(message.value().expect("a list"), &[1, 2]);
    let schema = message.schema().expect("it is named");
    assert_eq!((schema.id(), schema.version()), registered);
    assert_eq!((schema.subject(), schema.kind()), ("orders", "json_schema"));
}
