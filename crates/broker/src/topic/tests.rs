//! Topics behind the services that clients call, on a disk that can be told to refuse.

use crate::broker::Addresses;
use crate::clock::Clock;
use crate::context::Context;
use crate::options::BrokerOptions;
use crate::rpc::Rpc;
use crate::topic::ConsumerStream;
use danube_core::change::{
    Change, ConfigureTopicSchema, CreateTopic, RegisterSchema, SetFailurePolicy,
};
use danube_core::{
    Backoff, Delivery, FailurePolicy, Incarnation, Intent, PoisonPolicy, SchemaType, SubjectName,
    SubscriptionName, TopicName, ValidationPolicy,
};
use danube_meta::{Meta, MetaOptions};
use danube_store::disk::{Disk, DiskFile, OsDisk};
use danube_store::{Store, StoreOptions};
use danube_wire::delivery::Delivery as Delivered;
use danube_wire::proto::danube as proto;
use danube_wire::proto::danube::consumer_service_server::ConsumerService;
use danube_wire::proto::danube::producer_service_server::ProducerService;
use futures::{FutureExt, StreamExt};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tonic::{Code, Request, Status};

/// The real disk, until it is told to refuse every write.
#[derive(Clone, Default)]
struct RefusingDisk {
    refuses: Arc<AtomicBool>,
}

struct RefusingFile {
    file: Arc<dyn DiskFile>,
    refuses: Arc<AtomicBool>,
}

impl RefusingDisk {
    fn wrap(&self, file: io::Result<Arc<dyn DiskFile>>) -> io::Result<Arc<dyn DiskFile>> {
        let refuses = Arc::clone(&self.refuses);
        Ok(Arc::new(RefusingFile { file: file?, refuses }))
    }
}

impl Disk for RefusingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.wrap(OsDisk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.wrap(OsDisk.open(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.make_dir(dir)
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Send + Sync>> {
        OsDisk.lock(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        OsDisk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }
}

impl DiskFile for RefusingFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(at, buffer)
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.file.write_at(at, slices)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.file.preallocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// A broker without listeners.
struct House {
    rpc: Rpc,
    context: Arc<Context>,
    disk: RefusingDisk,
    _dir: tempfile::TempDir,
}

impl House {
    async fn open() -> House {
        let dir = tempfile::tempdir().expect("a directory");
        let meta = Meta::open(MetaOptions::new(dir.path().join("raft"))).await.expect("opens");
        let disk = RefusingDisk::default();
        let options = StoreOptions::new(dir.path().join("wal"), Incarnation(1));
        let store = Store::open_on(Arc::new(disk.clone()), options, &mut |_| {}).expect("opens");
        let options = BrokerOptions::default();
        let addresses = Addresses {
            broker: options.broker_addr,
            admin: options.admin_addr,
            http: options.http_addr,
        };
        let context = Arc::new(Context::new(options, meta, store, Incarnation(1)));
        context.set_addresses(addresses, "http://broker:6650".into());
        House { rpc: Rpc::new(Arc::clone(&context)), context, disk, _dir: dir }
    }

    async fn propose(&self, change: impl Into<Change>) {
        self.context.meta.propose(change.into(), Clock::wall()).await.expect("is taken");
    }

    async fn create(&self, name: &str, intent: Option<Intent>) {
        let name = topic(name);
        self.propose(CreateTopic {
            delivery: intent.map_or(Delivery::NonReliable, |intent| intent.expand(&name).delivery),
            name,
            partitions: None,
            intent,
            schema_subject: None,
            dead_letter_topic: None,
            implicit: false,
        })
        .await;
    }

    /// From now on the topic takes no message from outside that has not the schema of a subject.
    async fn enforce(&self, name: &str) {
        let subject = SubjectName::parse("letters").expect("well formed");
        self.propose(RegisterSchema {
            subject: subject.clone(),
            schema_type: SchemaType::Bytes,
            definition: "".into(),
            fingerprint: "sha256:bytes".into(),
            references: [].into(),
            description: "".into(),
            created_by: "".into(),
            tags: vec![],
            by: "".into(),
            expects: 0,
        })
        .await;
        self.propose(ConfigureTopicSchema {
            topic: topic(name),
            subject,
            validation_policy: ValidationPolicy::Enforce,
            enable_payload_validation: true,
            by: "".into(),
        })
        .await;
    }

    async fn publish(&self, topic: &str, payload: &str) -> Result<u64, Status> {
        let producer = self
            .rpc
            .create_producer(Request::new(proto::ProducerRequest {
                topic_name: topic.into(),
                producer_name: "p".into(),
                ..Default::default()
            }))
            .await?
            .into_inner();
        let message = proto::StreamMessage {
            request_id: 77,
            msg_id: Some(proto::MsgId {
                producer_id: producer.producer_id,
                topic_name: topic.into(),
                ..Default::default()
            }),
            payload: payload.to_owned().into(),
            producer_name: "p".into(),
            publish_time: 5,
            attributes: [
                ("kept".to_owned(), "yes".to_owned()),
                ("x-original-topic".to_owned(), "forged".to_owned()),
            ]
            .into(),
            routing_key: Some("k".into()),
            ..Default::default()
        };
        Ok(self.rpc.send_message(Request::new(message)).await?.into_inner().request_id)
    }

    async fn consume(&self, topic: &str, consumer: &str) -> ConsumerStream {
        let id = self.subscribe(topic, consumer).await;
        self.receive(id).await
    }

    async fn subscribe(&self, topic: &str, consumer: &str) -> u64 {
        let request = proto::ConsumerRequest {
            topic_name: topic.into(),
            consumer_name: consumer.into(),
            subscription: "s".into(),
            subscription_type: 1,
            ..Default::default()
        };
        self.rpc.subscribe(Request::new(request)).await.expect("attaches").into_inner().consumer_id
    }

    async fn receive(&self, consumer_id: u64) -> ConsumerStream {
        let request = proto::ReceiveRequest { request_id: 0, consumer_id };
        self.rpc.receive_messages(Request::new(request)).await.expect("opens").into_inner()
    }

    async fn ack(&self, topic: &str, offset: u64) -> Result<(), Status> {
        let request = proto::AckRequest {
            request_id: 0,
            msg_id: Some(id(topic, offset)),
            subscription_name: "s".into(),
        };
        self.rpc.ack(Request::new(request)).await.map(|_| ())
    }

    async fn nack(&self, topic: &str, offset: u64, reason: &str) {
        let request = proto::NackRequest {
            request_id: 0,
            msg_id: Some(id(topic, offset)),
            subscription_name: "s".into(),
            delay_ms: None,
            reason: Some(reason.into()),
        };
        self.rpc.nack(Request::new(request)).await.expect("is taken");
    }
}

fn id(topic: &str, offset: u64) -> proto::MsgId {
    proto::MsgId { topic_name: topic.into(), topic_offset: offset, ..Default::default() }
}

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

async fn next(stream: &mut ConsumerStream) -> Delivered {
    stream.next().await.expect("goes on").expect("a delivery")
}

fn payload(delivery: &Delivered) -> String {
    String::from_utf8(delivery.record().payload().to_vec()).expect("text")
}

#[tokio::test]
async fn a_publish_is_delivered_until_it_is_acknowledged() {
    let house = House::open().await;
    house.create("/default/t", Some(Intent::EventStream)).await;
    let mut stream = house.consume("/default/t", "c").await;
    assert_eq!(house.publish("/default/t", "one").await.expect("is stored"), 77);
    let delivery = next(&mut stream).await;
    assert_eq!((payload(&delivery).as_str(), delivery.offset().0), ("one", 0));
    assert_eq!(delivery.record().attribute("kept"), Some("yes"));
    assert_eq!(delivery.record().attribute("x-original-topic"), None, "forged headers go");
    drop(stream);
    // The holder is gone, so the message is there for whoever comes.
    let mut stream = house.consume("/default/t", "d").await;
    assert_eq!(next(&mut stream).await.offset().0, 0);
    house.ack("/default/t", 0).await.expect("is taken");
    house.publish("/default/t", "two").await.expect("is stored");
    assert_eq!(payload(&next(&mut stream).await), "two");
}

#[tokio::test]
async fn while_the_disk_refuses_nothing_is_acknowledged_and_afterwards_everything_goes_on() {
    let house = House::open().await;
    house.create("/default/t", Some(Intent::TaskQueue)).await;
    let mut stream = house.consume("/default/t", "c").await;
    house.publish("/default/t", "before").await.expect("is stored");
    assert_eq!(next(&mut stream).await.offset().0, 0);

    house.disk.refuses.store(true, Ordering::SeqCst);
    let refused = house.publish("/default/t", "during").await.expect_err("cannot be stored");
    assert!(matches!(refused.code(), Code::ResourceExhausted | Code::Unavailable), "{refused}");
    assert!(refused.message().contains("/default/t"), "{refused}");
    let refused = house.ack("/default/t", 0).await.expect_err("cannot be stored");
    assert!(matches!(refused.code(), Code::ResourceExhausted | Code::Unavailable), "{refused}");

    house.disk.refuses.store(false, Ordering::SeqCst);
    house.publish("/default/t", "after").await.expect("goes on without a restart");
    assert_eq!(next(&mut stream).await.offset().0, 1, "a refused publish uses no offset");
    // The ack is told to be safe once the restatement of all progress is.
    while let Err(status) = house.ack("/default/t", 0).await {
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        tokio::task::yield_now().await;
    }
    let id = house.context.meta.view().topic(&topic("/default/t")).expect("exists").id;
    let log = house.context.store.topic(id, danube_core::Epoch(1));
    let progress = log.subscriptions().into_values().next().expect("recorded");
    assert_eq!(progress.cursor().0, 1);
}

#[tokio::test]
async fn what_keeps_failing_lands_in_the_dead_letters_with_its_story() {
    let house = House::open().await;
    house.create("/default/jobs", Some(Intent::TaskQueue)).await;
    let policy = FailurePolicy {
        max_redelivery_count: 1,
        base_redelivery_delay_ms: 1,
        backoff_strategy: Backoff::Fixed,
        poison_policy: PoisonPolicy::DeadLetter,
        dead_letter_topic: Some(topic("/default/jobs-dlq")),
        ..FailurePolicy::default()
    };
    house
        .propose(SetFailurePolicy {
            topic: topic("/default/jobs"),
            subscription: SubscriptionName::parse("s").expect("well formed"),
            policy,
        })
        .await;
    house.enforce("/default/jobs-dlq").await;
    let refused = house.publish("/default/jobs-dlq", "by a client").await.expect_err("no schema");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let mut dead = house.consume("/default/jobs-dlq", "undertaker").await;
    let mut stream = house.consume("/default/jobs", "c").await;
    house.publish("/default/jobs", "poison").await.expect("is stored");
    house.publish("/default/jobs", "healthy").await.expect("is stored");
    let mut healthy = None;
    for _ in 0..3 {
        let delivery = next(&mut stream).await;
        match delivery.offset().0 {
            0 => house.nack("/default/jobs", 0, "bad wheel").await,
            other => healthy = Some(other),
        }
    }
    assert_eq!(healthy, Some(1), "the healthy one is not held up");
    let copy = next(&mut dead).await;
    let message = copy.record().to_message(&topic("/default/jobs-dlq"), "", copy.offset(), None);
    let story: Vec<String> =
        message.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let producer = copy.record().attribute("x-original-producer-id").expect("is told").to_owned();
    expect_test::expect![[r#"
        kept=yes
        x-delivery-attempt=2
        x-failure-reason=bad wheel
        x-original-broker-addr=http://broker:6650
        x-original-producer-id=PRODUCER
        x-original-subscription=s
        x-original-topic=/default/jobs
        x-original-topic-offset=0
        x-poison-policy=dead_letter"#]]
    .assert_eq(&story.join("\n").replace(&producer, "PRODUCER"));
    assert_eq!(payload(&copy), "poison");
    assert_eq!((message.routing_key.as_deref(), message.publish_time), (Some("k"), 5));
    assert_eq!(message.producer_name, "p");
    assert!(dead.next().now_or_never().is_none(), "one copy");
}

#[tokio::test]
async fn a_slow_listener_of_a_volatile_topic_sees_the_newest() {
    let house = House::open().await;
    house.create("/default/live", Some(Intent::Realtime)).await;
    let mut stream = house.consume("/default/live", "c").await;
    let count = super::stream::FANOUT_LEN_MAX + 3;
    for number in 0..count {
        house.publish("/default/live", &number.to_string()).await.expect("never waits");
    }
    assert_eq!(payload(&next(&mut stream).await), "3", "the three oldest were dropped");
    let text = house.context.scrape();
    let dropped = r#"danube_subscription_dropped_total{topic="/default/live",subscription="s"} 3"#;
    assert!(text.contains(dropped), "{text}");
}

#[tokio::test]
async fn a_second_stream_of_a_consumer_ends_the_first_with_unavailable() {
    for (name, intent) in
        [("/default/kept", Intent::EventStream), ("/default/live", Intent::Realtime)]
    {
        let house = House::open().await;
        house.create(name, Some(intent)).await;
        let id = house.subscribe(name, "c").await;
        let mut first = house.receive(id).await;
        let mut second = house.receive(id).await;
        let status = first.next().await.expect("is told").expect_err("is over");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(first.next().await.is_none());
        house.publish(name, "for the second").await.expect("is taken");
        assert_eq!(payload(&next(&mut second).await), "for the second");
    }
}
