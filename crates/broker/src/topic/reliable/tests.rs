//! A reliable topic in a whole broker, asked without a network: what a seek takes back, and that a
//! dead letter has one copy however the broker ends.

use super::*;
use crate::broker::Broker;
use crate::clock::Clock;
use crate::options::BrokerOptions;
use crate::rpc::Rpc;
use crate::topic::{ConsumerStream, QueueReader, StopReason, Terms, TopicHandle, Verdict};
use danube_core::change::{Change, CreateTopic, SetFailurePolicy};
use danube_core::subscription::AttemptId;
use danube_core::{Delivery, Intent, PoisonPolicy, ProducerId, TopicName};
use danube_wire::proto::danube as proto;
use danube_wire::record::{Record, header};
use futures::{FutureExt, StreamExt};
use proto::consumer_service_server::ConsumerService;
use std::path::Path;
use tonic::Request;

const TOPIC: &str = "/default/jobs";
const DEAD_LETTERS: &str = "/default/jobs-dlq";
const SUBSCRIPTION: &str = "workers";

struct Fixture {
    broker: Broker,
    context: Arc<Context>,
}

impl Fixture {
    async fn start(dir: &Path) -> Fixture {
        let free = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let options = BrokerOptions {
            data_dir: dir.to_owned(),
            broker_addr: free,
            admin_addr: free,
            http_addr: free,
            ..BrokerOptions::default()
        };
        let broker = Broker::start(options, |_| {}).await.expect("a fresh directory");
        let context = broker.context();
        Fixture { broker, context }
    }

    async fn create(&self, intent: Intent) {
        self.propose(Change::CreateTopic(CreateTopic {
            name: topic(TOPIC),
            partitions: None,
            intent: Some(intent),
            delivery: Delivery::Reliable,
            schema_subject: None,
            dead_letter_topic: None,
            implicit: false,
        }))
        .await;
    }

    async fn propose(&self, change: Change) {
        self.context.meta.propose(change, Clock::wall()).await.expect("taken");
    }

    fn topic(&self, name: &str) -> TopicHandle {
        self.context.topics.get(&self.context, &topic(name)).expect("created")
    }

    async fn publish(&self, payload: &'static str) {
        let handle = self.topic(TOPIC);
        let producer = ProducerId::derive(handle.identity().id, "p");
        let message = proto::StreamMessage { payload: payload.into(), ..Default::default() };
        let record = danube_wire::record::encode(producer, &message);
        let name = danube_core::name::ProducerName::parse("p").expect("well formed");
        handle.publish(&self.context, producer, name, record).await.expect("published");
    }

    async fn consume(&self) -> ConsumerStream {
        let rpc = Rpc::new(Arc::clone(&self.context));
        let request = proto::ConsumerRequest {
            topic_name: TOPIC.into(),
            consumer_name: "c".into(),
            subscription: SUBSCRIPTION.into(),
            ..Default::default()
        };
        let attached = rpc.subscribe(Request::new(request)).await.expect("attached").into_inner();
        let request = proto::ReceiveRequest { request_id: 1, consumer_id: attached.consumer_id };
        rpc.receive_messages(Request::new(request)).await.expect("open").into_inner()
    }

    async fn subscription(&self) -> SubscriptionDescription {
        let state = self.topic(TOPIC).describe().await.expect("described");
        state.subscriptions.into_iter().next().expect("one subscription")
    }

    /// Asks until the subscription is as wanted. Each question is a turn of the topic's actor.
    async fn until(&self, what: &str, is: impl Fn(&SubscriptionDescription) -> bool) {
        let asked = async {
            while !is(&self.subscription().await) {
                tokio::task::yield_now().await;
            }
        };
        let patience = std::time::Duration::from_secs(60);
        assert!(tokio::time::timeout(patience, asked).await.is_ok(), "in vain: {what}");
    }

    async fn dead_letters(&self) -> u64 {
        self.topic(DEAD_LETTERS).describe().await.expect("described").next.0
    }

    async fn nack(&self, offset: u64) {
        let handle = self.topic(TOPIC);
        let verdict = Verdict::Nack { delay_ms: None, reason: Some("broken".to_owned()) };
        let claim = Claim::of(Offset(offset), verdict);
        handle.settle(name(SUBSCRIPTION), vec![claim]).await.expect("nacked");
    }

    /// The first failure of a message is its last.
    async fn fail_at_once(&self) {
        let policy = FailurePolicy {
            max_redelivery_count: 0,
            poison_policy: PoisonPolicy::DeadLetter,
            dead_letter_topic: Some(topic(DEAD_LETTERS)),
            ..FailurePolicy::default()
        };
        self.propose(Change::SetFailurePolicy(SetFailurePolicy {
            topic: topic(TOPIC),
            subscription: name(SUBSCRIPTION),
            policy,
        }))
        .await;
    }

    async fn stop(self) {
        drop(self.context);
        self.broker.stop().await.expect("stopped");
    }
}

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn name(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).expect("well formed")
}

async fn next(stream: &mut ConsumerStream) -> u64 {
    stream.next().await.expect("open").expect("a delivery").offset().0
}

#[tokio::test]
async fn a_seek_takes_back_what_the_connection_has_not_taken() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let fixture = Fixture::start(dir.path()).await;
    fixture.create(Intent::EventStream).await;
    let mut stream = fixture.consume().await;
    for _ in 0..100 {
        fixture.publish("m").await;
    }
    for offset in 0..10 {
        assert_eq!(next(&mut stream).await, offset);
    }
    // Ten are with the application, and the queue of the stream is full.
    fixture.until("a full queue", |known| known.in_flight == 42).await;
    let old = fixture.topic(TOPIC).seek(name(SUBSCRIPTION), Offset(80)).await;
    assert_eq!(old, Ok(Offset(0)));
    for offset in 80..100 {
        assert_eq!(next(&mut stream).await, offset, "nothing of before the seek comes");
    }
    fixture.until("all are delivered", |known| known.in_flight == 20).await;
    assert!(stream.next().now_or_never().is_none(), "there is no more");
    let known = fixture.subscription().await;
    assert_eq!((known.cursor, known.backlog), (Offset(80), 20));
    // Late acks of before the seek have no effect; the room of the queue was given back.
    for offset in 0..10 {
        let claim = Claim::of(Offset(offset), Verdict::Ack);
        fixture.topic(TOPIC).settle(name(SUBSCRIPTION), vec![claim]).await.expect("no error");
    }
    let old = fixture.topic(TOPIC).seek(name(SUBSCRIPTION), Offset(0)).await;
    assert_eq!(old, Ok(Offset(80)));
    for offset in 0..40 {
        assert_eq!(next(&mut stream).await, offset);
    }
    drop(stream);
    fixture.stop().await;
}

#[tokio::test]
async fn each_failure_for_good_has_one_copy() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let fixture = Fixture::start(dir.path()).await;
    fixture.create(Intent::EventStream).await;
    fixture.fail_at_once().await;
    let mut stream = fixture.consume().await;
    fixture.publish("poison").await;
    assert_eq!(next(&mut stream).await, 0);
    fixture.nack(0).await;
    fixture.until("the cursor has moved", |known| known.cursor == Offset(1)).await;
    assert_eq!(fixture.dead_letters().await, 1);
    drop(stream);

    // Copy and end of the message were one record: neither the engine nor the log has more to do.
    fixture.stop().await;
    let fixture = Fixture::start(dir.path()).await;
    assert_eq!(fixture.subscription().await.cursor, Offset(1));
    let mut stream = fixture.consume().await;

    // Another failure has a copy of its own, and so has the same message after a seek.
    fixture.publish("another").await;
    assert_eq!(next(&mut stream).await, 1);
    fixture.nack(1).await;
    fixture.until("the cursor has moved", |known| known.cursor == Offset(2)).await;
    assert_eq!(fixture.dead_letters().await, 2);
    fixture.topic(TOPIC).seek(name(SUBSCRIPTION), Offset(0)).await.expect("sought");
    assert_eq!(next(&mut stream).await, 0);
    fixture.nack(0).await;
    fixture.until("the cursor has moved", |known| known.cursor >= Offset(1)).await;
    assert_eq!(fixture.dead_letters().await, 3);

    let letters = fixture.topic(DEAD_LETTERS);
    let log = fixture.context.store.topic(letters.identity().id, letters.identity().epoch);
    let limit = danube_store::ReadLimit { records_max: 9, bytes_max: 1 << 20 };
    let batch = crate::scan::read(&log, Offset(0), limit).await.expect("read");
    let origin = |(_, bytes): &(Offset, bytes::Bytes)| {
        let record = Record::parse(bytes.clone()).expect("our own");
        record.attribute(header::ORIGINAL_TOPIC_OFFSET).map(str::to_owned)
    };
    let origins: Vec<_> = batch.records.iter().filter_map(origin).collect();
    assert_eq!(origins, ["0", "1", "0"]);
    drop(stream);
    fixture.stop().await;
}

/// Takes one delivery: its offset, its attempt, its terms.
async fn take(reader: &mut QueueReader) -> (u64, u32, Terms) {
    let (mut one, mut room) = (None, true);
    let terms = std::future::poll_fn(|cx| {
        let fits = |_: &_| std::mem::replace(&mut room, false);
        reader.poll_take(cx, fits, |delivery, _| one = Some(delivery))
    });
    let terms = terms.await.expect("open").expect("a delivery");
    let delivered = one.expect("one fits");
    (delivered.offset.0, delivered.attempt, terms)
}

/// What a wire that numbers its deliveries is offered: attempts and leases with each delivery,
/// claims of ranges, extensions, a goodbye. Case U25 in the broker.
#[tokio::test]
async fn a_wire_that_numbers_its_deliveries_has_leases() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let fixture = Fixture::start(dir.path()).await;
    fixture.create(Intent::EventStream).await;
    drop(fixture.consume().await);
    let handle = fixture.topic(TOPIC);
    let consumer = |name: &str| ConsumerId::derive(handle.identity().id, SUBSCRIPTION, name);
    let first = consumer("c");
    let mut stream = handle.open(first, Wire::Native).await.expect("attached before").reader;
    for _ in 0..50 {
        fixture.publish("m").await;
    }
    for offset in 0..50 {
        let (found, number, terms) = take(&mut stream).await;
        assert_eq!((found, number), (offset, 1));
        assert_eq!(terms, Terms { epoch: 0, lease_ms: 30_000 });
    }
    fixture.until("all are with the client", |known| known.in_flight == 50).await;
    let claim = |first: u64, end: u64, number: u32, verdict: Verdict| {
        let attempt = Some(AttemptId { number, consumer: consumer("c"), epoch: 0 });
        Claim { first: Offset(first), end: Offset(end), attempt, verdict }
    };
    let offsets = |range: std::ops::Range<u64>| range.map(Offset).collect::<Vec<_>>();
    let settle = async |claims| handle.settle(name(SUBSCRIPTION), claims).await.expect("journaled");

    let claims = vec![
        claim(0, 10, 1, Verdict::Ack),
        claim(8, 12, 1, Verdict::Ack),
        claim(20, 22, 2, Verdict::Ack),
        claim(20, 22, 1, Verdict::Extend { by_ms: 45_000 }),
        claim(22, 23, 1, Verdict::Extend { by_ms: u64::MAX }),
    ];
    let outcomes = settle(claims).await;
    let stale: Vec<_> = outcomes.iter().map(|outcome| outcome.stale.clone()).collect();
    assert_eq!(stale, [vec![], offsets(8..10), offsets(20..22), vec![], vec![]]);
    let held: Vec<_> = outcomes.iter().map(|outcome| outcome.held_ms).collect();
    assert_eq!(held, [None, None, None, Some(45_000), Some(600_000)]);
    assert_eq!(fixture.subscription().await.cursor, Offset(12));

    // Given back uncounted, so the next delivery has the same number; the old claim is stale.
    settle(vec![claim(30, 31, 1, Verdict::Extend { by_ms: 0 })]).await;
    let (again, number, _) = take(&mut stream).await;
    assert_eq!((again, number), (30, 1));

    // A goodbye burns no attempt; a connection that is lost does.
    stream.close();
    fixture.until("all are given back", |known| known.in_flight == 0).await;
    let mut stream = handle.open(first, Wire::Native).await.expect("attached before").reader;
    let (offset, number, _) = take(&mut stream).await;
    assert_eq!((offset, number), (12, 1));
    drop(stream);
    fixture.until("all are given back", |known| known.in_flight == 0).await;
    let mut stream = handle.open(first, Wire::Native).await.expect("attached before").reader;
    let (offset, number, _) = take(&mut stream).await;
    assert_eq!((offset, number), (12, 2));
    let outcomes = settle(vec![claim(12, 13, 1, Verdict::Ack)]).await;
    assert_eq!(outcomes[0].stale, offsets(12..13), "lost is lost");

    // A seek raises the epoch; claims of before it are stale.
    handle.seek(name(SUBSCRIPTION), Offset(40)).await.expect("sought");
    let outcomes = settle(vec![claim(40, 50, 1, Verdict::Ack)]).await;
    assert_eq!(outcomes[0].stale, offsets(40..50));
    fixture.until("the rest is on its way", |known| known.in_flight == 10).await;
    let (offset, _, terms) = take(&mut stream).await;
    assert_eq!((offset, terms.epoch), (40, 1));
    let too_many = claim(0, 10_001, 1, Verdict::Ack);
    let refused = handle.settle(name(SUBSCRIPTION), vec![too_many]).await.expect_err("too many");
    assert_eq!(refused.kind, danube_core::FaultKind::Invalid);
    drop(stream);
    fixture.stop().await;
}

#[tokio::test]
async fn a_subscription_that_waits_for_the_log_in_vain_is_counted_and_told() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let fixture = Fixture::start(dir.path()).await;
    fixture.create(Intent::EventStream).await;
    drop(fixture.consume().await);
    fixture.publish("m").await;
    let handle = fixture.topic(TOPIC);
    let identity = handle.identity();
    fixture.context.topics.stop(identity.id, StopReason::Unloaded).await;

    // The same subscription with a driver of our own, which never hears what it has read.
    let view = fixture.context.meta.view();
    let record = view.topic(&topic(TOPIC)).and_then(|t| t.subscriptions.get(&name(SUBSCRIPTION)));
    let record = record.expect("attached");
    let log = fixture.context.store.topic(identity.id, identity.epoch);
    let mut known =
        ReliableSubscription::load(&fixture.context, identity, &log, &name(SUBSCRIPTION), record);
    #[expect(clippy::disallowed_methods, reason = "a test")]
    let (sender, _unread) = unbounded_channel();
    let signals = Arc::<Signals>::default();
    let completions = Completions { sender, signals: Arc::clone(&signals) };
    let topic = Arc::new(TopicIdentity {
        name: identity.name.clone(),
        id: identity.id,
        epoch: identity.epoch,
        delivery: identity.delivery,
        wal_sync_mode: identity.wal_sync_mode,
    });
    let (mut steps, mut letters) = (Vec::new(), Vec::new());
    let mut at = |ms: u64, act: &mut dyn FnMut(&mut ReliableSubscription, &mut Turn<'_>)| {
        let turn = &mut Turn {
            now: Tick(ms),
            topic: &topic,
            log: &log,
            signals: &signals,
            completions: &completions,
            steps: &mut steps,
            letters: &mut letters,
        };
        act(&mut known, turn);
        known.watch(turn);
        known.next_deadline()
    };
    let consumer = ConsumerId::derive(topic.id, SUBSCRIPTION, "c");
    let opened = at(0, &mut |known, turn| drop(known.open(turn, consumer, Wire::Compatible)));
    assert_eq!(opened, Some(Tick(10_001)), "it looks again when an answer would be late");
    at(10_000, &mut |_, _| {});
    assert!(!fixture.context.scrape().contains(STALLED));
    assert_eq!(at(10_001, &mut |_, _| {}), Some(Tick(70_001)), "and a minute after that");
    assert!(fixture.context.scrape().contains(STALLED));
    at(10_002, &mut |_, _| {});
    assert!(fixture.context.scrape().contains(STALLED), "not at every turn");
    fixture.stop().await;
}

const STALLED: &str =
    r#"danube_subscription_stall_total{topic="/default/jobs",subscription="workers"} 1"#;
