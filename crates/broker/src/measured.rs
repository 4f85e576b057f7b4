//! The paths of a message through a broker without a network, for the bench `path`.
//!
//! A real broker on a directory of its own is called as its listener would call it: the bodies of
//! requests go in as a connection brings them, and those of responses come out as a connection would
//! send them. What a client would do is made before a round or allocates next to nothing, so what a
//! round allocates is the broker's. What this leaves to others: counting and clocks.
//!
//! Not a part of the interface: it changes without notice.
//!
//! Law: what is measured is what the broker runs; nothing here is a copy of it.

use crate::broker::Broker;
use crate::options::BrokerOptions;
use crate::stream;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use bytes::{Buf, Bytes, BytesMut};
use danube_core::WallMs;
use danube_wire::limit::REQUEST_LEN_MAX;
use danube_wire::proto::stream as proto;
use danube_wire::stream::{
    Batch, ClientConsumeCodec, ClientPublishCodec, EncodedMessages, Message, PublishRequest,
    ServerPublishCodec,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{self, Runtime};
use tonic::Streaming;
use tonic::codec::{Codec, EncodeBody};
use tower::Service;

/// Messages that one ack names.
const ACK_LEN: u32 = 100;
/// Rounds that are published before the first is delivered.
const ROUNDS_AHEAD: u32 = 3;
/// Bytes of credit that a consumer gives with each round: more than there are.
const CREDIT_BYTES: u64 = 1 << 30;
/// The number of the producer on its stream.
const PRODUCER: u32 = 1;
/// Long enough for any machine; reached only when something never comes.
const PATIENCE: Duration = Duration::from_secs(60);

// Field numbers of PublishResponse and ConsumeResponse; the golden test of the contract pins them.
const ACKS: u64 = 2;
const REFUSALS: u64 = 3;
const SUBSCRIBED: u64 = 1;
const DELIVERIES: u64 = 2;
const SETTLED: u64 = 5;
const ENDED: u64 = 6;

/// What is published.
#[derive(Debug, Clone)]
pub struct Load {
    /// Messages of one batch.
    pub batch: u32,
    /// Bytes of one payload.
    pub len: usize,
    /// Messages of one round: whole batches, and whole acks.
    pub messages: u32,
}

/// A path of messages, one round at a time.
pub trait Round {
    /// Makes what the next round takes.
    fn prepare(&mut self);
    /// Runs the round.
    fn run(&mut self);
}

/// A running broker. Everything but its log's threads runs on the thread that asks.
pub struct Stand {
    runtime: Runtime,
    broker: Broker,
    server: stream::Server,
    topics: AtomicU32,
}

impl Stand {
    /// Starts a broker in an empty directory.
    pub fn start(dir: &Path) -> Stand {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("starts");
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = BrokerOptions {
            data_dir: dir.to_owned(),
            broker_addr: free,
            admin_addr: free,
            http_addr: free,
            ..BrokerOptions::default()
        };
        let broker = runtime.block_on(Broker::start(options, |_| {})).expect("starts");
        let server = stream::server(broker.context());
        Stand { runtime, broker, server, topics: AtomicU32::new(0) }
    }

    /// Stops the broker.
    ///
    /// # Panics
    /// When its log began another file, so that there was more to measure than the paths.
    pub fn stop(self) {
        assert_eq!(self.broker.context().store.stats().rotations, 0, "the first file holds all");
        self.runtime.block_on(self.broker.stop()).expect("stops");
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let work = async { tokio::time::timeout(PATIENCE, work).await };
        self.runtime.block_on(work).expect("what is waited for comes")
    }

    /// The name of a topic that is not there yet.
    fn topic(&self) -> String {
        format!("/default/t{}", self.topics.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens a stream, as a connection would.
    async fn call(&self, method: &str, feed: &Feed) -> Replies {
        let request = Request::post(format!("/danube.stream.v1.Stream/{method}"))
            .header("content-type", "application/grpc")
            .body(tonic::body::Body::new(Body::from_stream(feed.clone())))
            .expect("well formed");
        let Ok(response) = self.server.clone().call(request).await;
        Replies(Body::new(response.into_body()).into_data_stream())
    }
}

/// What a connection brings of one stream.
#[derive(Clone, Default)]
struct Feed(Arc<Mutex<Fed>>);

#[derive(Default)]
struct Fed {
    pieces: VecDeque<Bytes>,
    waker: Option<Waker>,
}

impl Feed {
    fn push(&self, piece: Bytes) {
        let mut fed = self.0.lock();
        fed.pieces.push_back(piece);
        let waker = fed.waker.take();
        drop(fed);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Stream for Feed {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut fed = self.0.lock();
        if let Some(piece) = fed.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        fed.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// What a connection would send of one stream: pieces of whole gRPC messages.
struct Replies(BodyDataStream);

impl Replies {
    /// Takes the next piece and shows the number of each field of each of its messages.
    async fn next(&mut self, mut each: impl FnMut(u64)) {
        let piece = self.0.next().await.expect("goes on").expect("well");
        let mut rest = &piece[..];
        while !rest.is_empty() {
            rest.advance(1);
            let len = rest.get_u32() as usize;
            let (mut message, behind) = rest.split_at(len);
            while !message.is_empty() {
                let tag = varint(&mut message);
                let value = varint(&mut message);
                match tag & 7 {
                    0 => {}
                    2 => message.advance(usize::try_from(value).expect("within the message")),
                    other => panic!("the contract has no wire type {other}"),
                }
                each(tag >> 3);
            }
            rest = behind;
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// A request as a client would put it on the wire.
async fn framed<C: Codec>(mut codec: C, request: C::Encode) -> Bytes
where
    C::Encode: Sync,
    C::Encoder: Sync,
{
    let requests = futures::stream::iter([Ok(request)]);
    let body = EncodeBody::new_client(codec.encoder(), requests, None, None);
    let piece = Body::new(body).into_data_stream().next().await;
    piece.expect("one piece").expect("well")
}

/// The client's side of a `Publish` stream, with one batch under way at a time.
struct Publisher {
    load: Load,
    messages: EncodedMessages,
    feed: Feed,
    replies: Replies,
    /// Sequence number of the first message that no request was made of.
    next: u64,
    requests: VecDeque<Bytes>,
}

impl Publisher {
    async fn open(stand: &Stand, topic: &str, delivery: proto::Delivery, load: &Load) -> Publisher {
        let feed = Feed::default();
        let open = proto::OpenProducer {
            producer: PRODUCER,
            topic: topic.to_owned(),
            producer_name: "p".to_owned(),
            delivery: delivery.into(),
            ..Default::default()
        };
        let request = PublishRequest { open: vec![open], ..PublishRequest::default() };
        feed.push(framed(ClientPublishCodec, request).await);
        let mut replies = stand.call("Publish", &feed).await;
        replies.next(|field| assert_ne!(field, REFUSALS, "the producer is refused")).await;
        let (load, messages) = (load.clone(), messages(load));
        Publisher { load, messages, feed, replies, next: 1, requests: VecDeque::new() }
    }

    /// Makes the requests of one round.
    async fn prepare(&mut self) {
        requests(&self.load, &self.messages, &mut self.next, &mut self.requests).await;
    }

    /// Publishes one of the batches that were made; whether there was one.
    async fn publish(&mut self) -> bool {
        let Some(request) = self.requests.pop_front() else { return false };
        self.feed.push(request);
        let mut acks = 0;
        while acks == 0 {
            let each = |field| match field {
                ACKS => acks += 1,
                other => panic!("field {other} is not an ack"),
            };
            self.replies.next(each).await;
        }
        true
    }
}

fn messages(load: &Load) -> EncodedMessages {
    let payload = vec![b'd'; load.len];
    let publish_time = WallMs(1_700_000_000_000);
    let message = Message { payload: &payload, publish_time, ..Message::default() };
    let mut out = BytesMut::new();
    (0..load.batch).for_each(|_| EncodedMessages::put(&mut out, &message));
    EncodedMessages::new(out.freeze(), load.batch)
}

async fn requests(
    load: &Load,
    messages: &EncodedMessages,
    next: &mut u64,
    out: &mut VecDeque<Bytes>,
) {
    for _ in 0..load.messages / load.batch {
        let messages = messages.clone();
        let batch = Batch { producer: PRODUCER, first_sequence: *next, messages };
        let request = PublishRequest { batches: vec![batch], ..PublishRequest::default() };
        out.push_back(framed(ClientPublishCodec, request).await);
        *next += u64::from(load.batch);
    }
}

/// The client's side of a `Consume` stream, on a subscription of its own.
struct Taker {
    feed: Feed,
    replies: Replies,
    /// Offset of the first message that no ack was made of.
    next: u64,
    requests: VecDeque<Bytes>,
}

impl Taker {
    async fn open(stand: &Stand, topic: &str, subscription: String, credit: u32) -> Taker {
        let feed = Feed::default();
        let subscribe = proto::Subscribe {
            topic: topic.to_owned(),
            subscription,
            consumer_name: "c".to_owned(),
            credit: Some(proto::Credit { messages: credit, bytes: CREDIT_BYTES }),
            ..Default::default()
        };
        let request = proto::ConsumeRequest { subscribe: Some(subscribe), ..Default::default() };
        feed.push(framed(ClientConsumeCodec, request).await);
        let mut replies = stand.call("Consume", &feed).await;
        let mut is_open = false;
        while !is_open {
            let each = |field| {
                assert_ne!(field, ENDED, "the consumer is refused");
                is_open |= field == SUBSCRIBED;
            };
            replies.next(each).await;
        }
        Taker { feed, replies, next: 0, requests: VecDeque::new() }
    }

    /// Makes the requests of one round: credit for `messages`, then their acks.
    async fn prepare(&mut self, messages: u32) {
        let credit = Some(proto::Credit { messages, bytes: CREDIT_BYTES });
        let request = proto::ConsumeRequest { credit, ..Default::default() };
        self.requests.push_back(framed(ClientConsumeCodec, request).await);
        for _ in 0..messages / ACK_LEN {
            let range = proto::Range { first: self.next, count: ACK_LEN, attempt: 1, epoch: 0 };
            self.next += u64::from(ACK_LEN);
            let (id, acks) = (self.next, vec![range]);
            let request = proto::ConsumeRequest { id, acks, ..Default::default() };
            self.requests.push_back(framed(ClientConsumeCodec, request).await);
        }
    }

    /// Takes `messages`, and nothing else comes.
    async fn take(&mut self, messages: u32) {
        let mut seen = 0;
        while seen < messages {
            self.replies.next(|field| seen += u32::from(field == DELIVERIES)).await;
        }
        assert_eq!(seen, messages, "as many as were published");
    }

    /// Gives the credit of one round, takes its messages and has their acks answered.
    async fn take_and_ack(&mut self, messages: u32) {
        self.feed.push(self.requests.pop_front().expect("the credit was made"));
        let (mut seen, mut settled) = (0, 0);
        while settled < messages / ACK_LEN {
            let each = |field| match field {
                DELIVERIES => seen += 1,
                SETTLED => settled += 1,
                ENDED => panic!("the stream was ended"),
                _ => {}
            };
            self.replies.next(each).await;
            let made = self.requests.len() as u32 * ACK_LEN;
            let asked = messages - made;
            (0..(seen - asked) / ACK_LEN).for_each(|_| {
                self.feed.push(self.requests.pop_front().expect("an ack was made for each"));
            });
        }
        assert_eq!(seen, messages, "as many as there was credit for");
    }
}

/// What gRPC alone does with the batches of a stream, as a yardstick: from the pieces that a
/// connection brings to requests whose messages are left as they are.
pub struct Gathering<'a> {
    stand: &'a Stand,
    load: Load,
    messages: EncodedMessages,
    feed: Feed,
    incoming: Streaming<PublishRequest>,
    requests: VecDeque<Bytes>,
}

impl Gathering<'_> {
    /// Gathers batches as `load` has them.
    pub fn new<'a>(stand: &'a Stand, load: &Load) -> Gathering<'a> {
        let feed = Feed::default();
        let body = Body::from_stream(feed.clone());
        let decoder = ServerPublishCodec.decoder();
        let incoming = Streaming::new_request(decoder, body, None, Some(REQUEST_LEN_MAX));
        let (load, messages) = (load.clone(), messages(load));
        Gathering { stand, load, messages, feed, incoming, requests: VecDeque::new() }
    }
}

impl Round for Gathering<'_> {
    fn prepare(&mut self) {
        let mut next = 1;
        let made = requests(&self.load, &self.messages, &mut next, &mut self.requests);
        self.stand.wait(made);
    }

    fn run(&mut self) {
        self.stand.wait(async {
            while let Some(request) = self.requests.pop_front() {
                self.feed.push(request);
                let read = self.incoming.message().await.expect("well").expect("goes on");
                assert_eq!(read.batches[0].messages.count(), self.load.batch);
            }
        });
    }
}

/// From the bytes of a batch to its ack: a topic with a log and nobody who listens.
pub struct Publishing<'a> {
    stand: &'a Stand,
    publisher: Publisher,
}

impl Publishing<'_> {
    /// Publishes batches as `load` has them.
    pub fn new<'a>(stand: &'a Stand, load: &Load) -> Publishing<'a> {
        let reliable = proto::Delivery::Reliable;
        let publisher = stand.wait(Publisher::open(stand, &stand.topic(), reliable, load));
        Publishing { stand, publisher }
    }
}

impl Round for Publishing<'_> {
    fn prepare(&mut self) {
        self.stand.wait(self.publisher.prepare());
    }

    fn run(&mut self) {
        self.stand.wait(async { while self.publisher.publish().await {} });
    }
}

/// From the log's cache to the bytes of responses, with the acks of what they have.
///
/// There is always more than a subscription reads ahead, so each round begins with as much of it
/// read as it leaves behind.
pub struct Delivering<'a> {
    stand: &'a Stand,
    publisher: Publisher,
    takers: Vec<Taker>,
}

impl Delivering<'_> {
    /// Delivers batches as `load` has them to so many subscriptions.
    pub fn new<'a>(stand: &'a Stand, load: &Load, subscriptions: u32) -> Delivering<'a> {
        let reliable = proto::Delivery::Reliable;
        let (publisher, takers) = stand.wait(open(stand, reliable, load, subscriptions, 0));
        let mut delivering = Delivering { stand, publisher, takers };
        (0..ROUNDS_AHEAD).for_each(|_| delivering.publish());
        delivering
    }

    fn publish(&mut self) {
        self.stand.wait(async {
            self.publisher.prepare().await;
            while self.publisher.publish().await {}
        });
    }
}

impl Round for Delivering<'_> {
    fn prepare(&mut self) {
        self.publish();
        let messages = self.publisher.load.messages;
        self.stand.wait(async {
            for taker in &mut self.takers {
                taker.prepare(messages).await;
            }
        });
    }

    fn run(&mut self) {
        let messages = self.publisher.load.messages;
        let from_disk = || self.stand.broker.context().store.stats().reads_disk;
        let before = from_disk();
        let takers = self.takers.iter_mut().map(|taker| taker.take_and_ack(messages));
        self.stand.wait(futures::future::join_all(takers));
        assert_eq!(from_disk(), before, "everything is in the cache");
    }
}

/// From the bytes of a batch to those of the responses of every subscription: a topic that keeps
/// nothing.
pub struct FanningOut<'a> {
    stand: &'a Stand,
    publisher: Publisher,
    takers: Vec<Taker>,
}

impl FanningOut<'_> {
    /// Fans batches as `load` has them out to so many subscriptions.
    pub fn new<'a>(stand: &'a Stand, load: &Load, subscriptions: u32) -> FanningOut<'a> {
        let volatile = proto::Delivery::NonReliable;
        let opened = open(stand, volatile, load, subscriptions, u32::MAX);
        let (publisher, takers) = stand.wait(opened);
        FanningOut { stand, publisher, takers }
    }
}

impl Round for FanningOut<'_> {
    fn prepare(&mut self) {
        self.stand.wait(self.publisher.prepare());
    }

    fn run(&mut self) {
        self.stand.wait(async {
            while self.publisher.publish().await {
                for taker in &mut self.takers {
                    taker.take(self.publisher.load.batch).await;
                }
            }
        });
    }
}

async fn open(
    stand: &Stand,
    delivery: proto::Delivery,
    load: &Load,
    subscriptions: u32,
    credit: u32,
) -> (Publisher, Vec<Taker>) {
    let topic = stand.topic();
    let publisher = Publisher::open(stand, &topic, delivery, load).await;
    let mut takers = Vec::new();
    for number in 0..subscriptions {
        takers.push(Taker::open(stand, &topic, format!("s{number}"), credit).await);
    }
    (publisher, takers)
}
