//! The native wire through a real listener, with the client that any language would generate.

use crate::broker::Broker;
use crate::context::Context;
use crate::options::BrokerOptions;
use crate::topic::StopReason;
use danube_core::change::{Change, CreateTopic};
use danube_core::{Delivery, Intent, SubscriptionName, TopicName};
use danube_wire::proto::stream as proto;
use proto::stream_client::StreamClient;
use proto::{ConsumeResponse, PublishResponse, Refusal};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::transport::Channel;

const TOPIC: &str = "/default/t";
/// Long enough for any machine; reached only when an answer never comes.
const PATIENCE: Duration = Duration::from_secs(60);

struct House {
    broker: Broker,
    context: Arc<Context>,
    client: StreamClient<Channel>,
    _dir: tempfile::TempDir,
}

impl House {
    async fn open() -> House {
        let dir = tempfile::tempdir().expect("a directory");
        let (broker, client) = start(dir.path()).await;
        let context = broker.context();
        let house = House { broker, context, client, _dir: dir };
        house.create(TOPIC, Some(Intent::EventStream), Delivery::Reliable).await;
        house
    }

    async fn create(&self, name: &str, intent: Option<Intent>, delivery: Delivery) {
        let change = Change::CreateTopic(CreateTopic {
            name: TopicName::parse(name).expect("well formed"),
            partitions: None,
            intent,
            delivery,
            schema_subject: None,
            dead_letter_topic: None,
            implicit: false,
        });
        self.context.meta.propose(change, crate::clock::Clock::wall()).await.expect("created");
    }

    async fn publisher(&self) -> Publisher {
        let (requests, outgoing) = mpsc::channel(16);
        let outgoing = tokio_stream::wrappers::ReceiverStream::new(outgoing);
        let answers = self.client.clone().publish(outgoing).await.expect("open").into_inner();
        Publisher { requests, answers }
    }

    async fn consumer(&self, subscribe: proto::Subscribe) -> Consumer {
        let (requests, outgoing) = mpsc::channel(16);
        let first = proto::ConsumeRequest { subscribe: Some(subscribe), ..Default::default() };
        requests.send(first).await.expect("room");
        let outgoing = tokio_stream::wrappers::ReceiverStream::new(outgoing);
        let responses = self.client.clone().consume(outgoing).await.expect("open").into_inner();
        Consumer { requests, responses }
    }

    async fn unload(&self) {
        let name = TopicName::parse(TOPIC).expect("well formed");
        let id = self.context.meta.view().topic(&name).expect("created").id;
        self.context.topics.stop(id, StopReason::Unloaded).await;
    }
}

async fn start(dir: &Path) -> (Broker, StreamClient<Channel>) {
    let options = BrokerOptions {
        data_dir: dir.to_owned(),
        broker_addr: "127.0.0.1:0".parse().expect("an address"),
        admin_addr: "127.0.0.1:0".parse().expect("an address"),
        http_addr: "127.0.0.1:0".parse().expect("an address"),
        ..BrokerOptions::default()
    };
    let broker = Broker::start(options, |_| {}).await.expect("starts");
    let url = format!("http://{}", broker.addresses().broker);
    (broker, StreamClient::connect(url).await.expect("connects"))
}

async fn soon<T>(what: &str, answer: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap_or_else(|_| panic!("in vain: {what}"))
}

struct Publisher {
    requests: mpsc::Sender<proto::PublishRequest>,
    answers: Streaming<PublishResponse>,
}

impl Publisher {
    async fn ask(&mut self, request: proto::PublishRequest) -> PublishResponse {
        self.requests.send(request).await.expect("open");
        self.answer().await
    }

    async fn answer(&mut self) -> PublishResponse {
        soon("an answer", self.answers.message()).await.expect("well").expect("not ended")
    }

    async fn open(&mut self, topic: &str) -> proto::ProducerOpened {
        let open = proto::OpenProducer {
            producer: 3,
            topic: topic.to_owned(),
            producer_name: "p".to_owned(),
            ..Default::default()
        };
        let request = proto::PublishRequest { open: vec![open], ..Default::default() };
        let answer = self.ask(request).await;
        assert_eq!(answer.refusals, []);
        answer.opened[0]
    }

    async fn publish(
        &mut self,
        first_sequence: u64,
        messages: Vec<proto::Message>,
    ) -> PublishResponse {
        let batch = proto::Batch { producer: 3, first_sequence, messages };
        self.ask(proto::PublishRequest { batches: vec![batch], ..Default::default() }).await
    }

    async fn publish_texts(&mut self, first_sequence: u64, texts: &[&str]) -> PublishResponse {
        self.publish(first_sequence, texts.iter().map(|text| message(text)).collect()).await
    }
}

struct Consumer {
    requests: mpsc::Sender<proto::ConsumeRequest>,
    responses: Streaming<ConsumeResponse>,
}

impl Consumer {
    async fn ask(&self, request: proto::ConsumeRequest) {
        self.requests.send(request).await.expect("open");
    }

    async fn credit(&self, messages: u32) {
        let credit = Some(proto::Credit { messages, bytes: 1 << 20 });
        self.ask(proto::ConsumeRequest { credit, ..Default::default() }).await;
    }

    async fn ack(&mut self, id: u64, ranges: Vec<proto::Range>) -> proto::Settled {
        self.ask(proto::ConsumeRequest { id, acks: ranges, ..Default::default() }).await;
        self.settled().await
    }

    async fn response(&mut self) -> Option<ConsumeResponse> {
        soon("a response", self.responses.message()).await.expect("well")
    }

    async fn settled(&mut self) -> proto::Settled {
        loop {
            let response = self.response().await.expect("not ended");
            if let Some(settled) = response.settled.into_iter().next() {
                return settled;
            }
        }
    }

    /// The next `count` deliveries: offset, attempt, payload.
    async fn take(&mut self, count: usize) -> Vec<(u64, u32, String)> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let response = self.response().await.expect("not ended");
            for delivered in response.deliveries {
                let message = delivered.message.expect("there is one");
                let text = String::from_utf8(message.payload.to_vec()).expect("text");
                taken.push((delivered.offset, delivered.attempt, text));
            }
        }
        taken
    }

    /// Says goodbye and waits for the end.
    async fn close(mut self) {
        self.ask(proto::ConsumeRequest { close: true, ..Default::default() }).await;
        while self.response().await.is_some() {}
    }
}

fn message(text: &str) -> proto::Message {
    proto::Message { payload: text.to_owned().into(), publish_time: 1, ..Default::default() }
}

fn subscribe(consumer: &str, credit: u32) -> proto::Subscribe {
    proto::Subscribe {
        topic: TOPIC.to_owned(),
        subscription: "s".to_owned(),
        consumer_name: consumer.to_owned(),
        start: Some(proto::Position { at: Some(proto::position::At::Earliest(true)) }),
        credit: Some(proto::Credit { messages: credit, bytes: 1 << 20 }),
        ..Default::default()
    }
}

fn range(first: u64, count: u32, attempt: u32) -> proto::Range {
    proto::Range { first, count, attempt, epoch: 0 }
}

fn ack(first_sequence: u64, first_offset: u64, count: u32) -> proto::PublishAck {
    proto::PublishAck { producer: 3, first_sequence, first_offset, count }
}

fn kinds(answer: &PublishResponse) -> Vec<Refusal> {
    answer.refusals.iter().map(proto::PublishRefusal::refusal).collect()
}

#[tokio::test]
async fn what_is_published_is_delivered_in_order_and_an_ack_is_for_good() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    assert_eq!(publisher.open(TOPIC).await.last_sequence, 0);
    let answer = publisher.publish_texts(1, &["a", "b", "c"]).await;
    assert_eq!(answer.acks, [ack(1, 0, 3)]);
    let mut consumer = house.consumer(subscribe("c", 0)).await;
    let first = consumer.response().await.expect("open").subscribed.expect("told first");
    assert_eq!(first.cursor, 0);
    consumer.credit(10).await;
    let taken = consumer.take(3).await;
    let expected = [(0, 1, "a".to_owned()), (1, 1, "b".to_owned()), (2, 1, "c".to_owned())];
    assert_eq!(taken, expected);
    let settled = consumer.ack(7, vec![range(0, 2, 1)]).await;
    assert_eq!(settled, proto::Settled { id: 7, ..Default::default() });
    let again = consumer.ack(8, vec![range(0, 3, 1)]).await;
    assert_eq!(again.stale, [range(0, 2, 1)], "two of them were settled before");
    consumer.close().await;
    publisher.publish_texts(4, &["d"]).await;
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    assert_eq!(consumer.take(1).await, [(3, 1, "d".to_owned())]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn a_producer_that_comes_back_neither_loses_nor_doubles() {
    let house = House::open().await;
    let mut old = house.publisher().await;
    old.open(TOPIC).await;
    old.publish_texts(1, &["a", "b"]).await;
    let mut new = house.publisher().await;
    assert_eq!(new.open(TOPIC).await.last_sequence, 2);
    assert_eq!(new.publish_texts(1, &["a", "b"]).await.acks, [ack(1, 0, 2)], "as it was");
    assert_eq!(new.publish_texts(3, &["c"]).await.acks, [ack(3, 2, 1)]);
    let fenced = old.publish_texts(3, &["x"]).await;
    assert_eq!(kinds(&fenced), [Refusal::Fenced]);
    let early = new.publish_texts(9, &["y"]).await;
    assert_eq!(kinds(&early), [Refusal::OutOfOrder]);
    let endless = new.publish_texts(u64::MAX, &["z", "z"]).await;
    assert_eq!(kinds(&endless), [Refusal::Invalid], "no number can follow it");
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn a_message_that_can_never_be_stored_does_not_hold_up_the_others() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    let max = publisher.open(TOPIC).await.message_bytes_max as usize;
    let forged = proto::Message { producer_name: "somebody".to_owned(), ..message("b") };
    let large = proto::Message { payload: vec![0; max].into(), ..Default::default() };
    let answer = publisher.publish(1, vec![message("a"), forged, large, message("d")]).await;
    let mut answers = vec![answer];
    while answers.iter().map(|answer| answer.acks.len()).sum::<usize>() < 2 {
        answers.push(publisher.answer().await);
    }
    let refused =
        answers.iter().flat_map(|answer| &answer.refusals).map(|r| (r.first_sequence, r.refusal()));
    assert_eq!(refused.collect::<Vec<_>>(), [(2, Refusal::Invalid), (3, Refusal::Invalid)]);
    let acks: Vec<_> = answers.iter().flat_map(|answer| answer.acks.clone()).collect();
    assert_eq!(acks, [ack(1, 0, 1), ack(4, 1, 1)]);
    assert_eq!(publisher.publish_texts(5, &["e"]).await.acks, [ack(5, 2, 1)]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn nothing_is_sent_for_which_there_is_no_credit() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    publisher.open(TOPIC).await;
    publisher.publish_texts(1, &["a", "b", "c", "d"]).await;
    let mut consumer = house.consumer(subscribe("c", 2)).await;
    let offsets = |taken: Vec<(u64, u32, String)>| taken.iter().map(|t| t.0).collect::<Vec<_>>();
    assert_eq!(offsets(consumer.take(2).await), [0, 1]);
    // An answer comes, and no delivery before it.
    let settled = consumer.ack(1, vec![range(0, 1, 1)]).await;
    assert_eq!(settled.id, 1);
    consumer.credit(1).await;
    assert_eq!(offsets(consumer.take(1).await), [2]);
    // What waits for credit has not been delivered: it is nobody's attempt when the client dies.
    drop(consumer);
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    let taken = consumer.take(3).await;
    let taken = taken.iter().map(|(offset, attempt, _)| (*offset, *attempt)).collect::<Vec<_>>();
    assert_eq!(taken, [(1, 2), (2, 2), (3, 1)]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn a_goodbye_burns_no_attempt_and_a_lease_can_be_extended() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    publisher.open(TOPIC).await;
    publisher.publish_texts(1, &["a", "b"]).await;
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    consumer.take(2).await;
    consumer.close().await;
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    let taken = consumer.take(2).await;
    assert_eq!(taken.iter().map(|t| t.1).collect::<Vec<_>>(), [1, 1]);
    let extension = proto::Extension { range: Some(range(0, 1, 1)), by_ms: 45_000 };
    let request =
        proto::ConsumeRequest { id: 5, extensions: vec![extension], ..Default::default() };
    consumer.ask(request).await;
    let settled = consumer.settled().await;
    assert_eq!((settled.id, settled.extended), (5, vec![extension]));
    let nack = proto::Nack { range: Some(range(1, 1, 9)), delay_ms: 1, reason: "no".to_owned() };
    consumer.ask(proto::ConsumeRequest { id: 6, nacks: vec![nack], ..Default::default() }).await;
    assert_eq!(consumer.settled().await.stale, [range(1, 1, 9)]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn a_seek_makes_older_deliveries_void() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    publisher.open(TOPIC).await;
    publisher.publish_texts(1, &["a", "b"]).await;
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    consumer.take(2).await;
    let name = TopicName::parse(TOPIC).expect("well formed");
    let handle = house.context.topics.get(&house.context, &name).expect("loaded");
    let subscription = SubscriptionName::parse("s").expect("well formed");
    handle.seek(subscription, danube_core::Offset(0)).await.expect("sought");
    let mut epochs = Vec::new();
    while epochs.len() < 2 {
        let response = consumer.response().await.expect("not ended");
        epochs.extend(response.deliveries.iter().map(|_| response.epoch));
    }
    assert_eq!(epochs, [1, 1]);
    assert_eq!(consumer.ack(1, vec![range(0, 2, 1)]).await.stale, [range(0, 2, 1)]);
    let now = proto::Range { epoch: 1, ..range(0, 2, 1) };
    assert_eq!(consumer.ack(2, vec![now]).await.stale, []);
    house.broker.stop().await.expect("stops");
}

/// Why the broker ends a stream, once it has.
async fn end_of(consumer: &mut Consumer) -> Refusal {
    let ended = loop {
        let response = consumer.response().await.expect("told before the end");
        if let Some(ended) = response.ended {
            break ended;
        }
    };
    assert_eq!(consumer.response().await, None);
    ended.why()
}

#[tokio::test]
async fn a_consumer_whose_name_somebody_else_took_is_told_not_to_come_back() {
    let house = House::open().await;
    house.publisher().await.open(TOPIC).await;
    let mut first = house.consumer(subscribe("c", 10)).await;
    // The second comes when the first is there, or it would be the one that is replaced.
    first.response().await.expect("open").subscribed.expect("told first");
    let _second = house.consumer(subscribe("c", 10)).await;
    let why = end_of(&mut first).await;
    assert_eq!(why, Refusal::Fenced, "two that both came back would never end");
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn an_unloaded_topic_tells_both_sides_to_come_again() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    publisher.open(TOPIC).await;
    publisher.publish_texts(1, &["a"]).await;
    let mut consumer = house.consumer(subscribe("c", 10)).await;
    consumer.take(1).await;
    house.unload().await;
    let moved = publisher.publish_texts(2, &["b"]).await;
    assert_eq!(kinds(&moved), [Refusal::Moved]);
    assert_eq!(end_of(&mut consumer).await, Refusal::Moved);
    assert_eq!(publisher.open(TOPIC).await.last_sequence, 1);
    assert_eq!(publisher.publish_texts(2, &["b"]).await.acks, [ack(2, 1, 1)]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_words() {
    let house = House::open().await;
    let mut consumer = house
        .consumer(proto::Subscribe { topic: "/default/no".to_owned(), ..subscribe("c", 1) })
        .await;
    let ended = consumer.response().await.expect("told").ended.expect("refused");
    assert_eq!(ended.why(), Refusal::NotFound);
    assert!(ended.reason.contains("`/default/no` not found"), "{}", ended.reason);
    let mut publisher = house.publisher().await;
    let open = proto::OpenProducer { topic: "no slash".to_owned(), ..Default::default() };
    let request = proto::PublishRequest { open: vec![open], ..Default::default() };
    assert_eq!(kinds(&publisher.ask(request).await), [Refusal::Invalid]);
    assert_eq!(kinds(&publisher.publish_texts(1, &["a"]).await), [Refusal::Moved]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn a_topic_that_keeps_nothing_goes_to_whoever_listens() {
    let house = House::open().await;
    house.create("/default/v", None, Delivery::NonReliable).await;
    let wish =
        proto::Subscribe { topic: "/default/v".to_owned(), start: None, ..subscribe("c", 9) };
    let mut consumer = house.consumer(wish).await;
    consumer.response().await.expect("subscribed");
    let mut publisher = house.publisher().await;
    assert!(publisher.open("/default/v").await.is_volatile);
    let answer = publisher.publish_texts(1, &["a", "b"]).await;
    assert_eq!((answer.acks[0].first_sequence, answer.acks[0].count), (1, 2));
    let taken = consumer.take(2).await;
    assert_eq!(taken.iter().map(|t| t.2.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    house.broker.stop().await.expect("stops");
}

#[tokio::test]
async fn both_wires_carry_the_same_message() {
    let house = House::open().await;
    let mut publisher = house.publisher().await;
    publisher.open(TOPIC).await;
    let sent = proto::Message {
        attributes: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        routing_key: Some("key".to_owned()),
        ..message("a")
    };
    publisher.publish(1, vec![sent.clone()]).await;
    let mut consumer = house.consumer(subscribe("c", 1)).await;
    let found = loop {
        let response = consumer.response().await.expect("not ended");
        if let Some(delivered) = response.deliveries.into_iter().next() {
            break delivered.message.expect("there is one");
        }
    };
    assert_eq!(found, proto::Message { producer_name: "p".to_owned(), ..sent });
    house.broker.stop().await.expect("stops");
}
