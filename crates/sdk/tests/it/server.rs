//! A broker without a mind of its own: it hands every stream to the test.
//!
//! Law: whatever a test waits for comes, or the test fails and says what it waited for.

use compatible::discovery_server::{Discovery, DiscoveryServer};
use danube_sdk::{Client, ClientBuilder};
use danube_wire::proto::danube as compatible;
use danube_wire::proto::stream as proto;
use danube_wire::record::Record;
use danube_wire::stream::server::{Stream as Service, StreamServer};
use danube_wire::stream::{
    Batch, ConsumeRequest, ConsumeResponse, Delivered, PublishRequest, PublishResponse,
};
use prost::Message as _;
use proto::schemas_server::{Schemas, SchemasServer};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// Streams and responses that wait for a test.
const WAITING_MAX: usize = 64;
/// Nothing in these tests takes this long, unless it never comes.
const NEVER: Duration = Duration::from_secs(20);

/// Waits for what must come.
pub async fn comes<T>(what: &str, future: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(NEVER, future).await;
    came.unwrap_or_else(|_| panic!("{what} never came"))
}

/// A running server; dropping it cuts all connections.
pub struct Server {
    pub url: String,
    pub topology: Topology,
    publishes: mpsc::Receiver<PublishStream>,
    consumes: mpsc::Receiver<ConsumeStream>,
    runtime: Option<Runtime>,
}

/// A schema's id and version.
type Asked = (u64, Option<u32>);

/// What discovery says.
#[derive(Clone, Default)]
pub struct Topology {
    /// Where topics are, if not here.
    pub elsewhere: Arc<Mutex<HashMap<String, String>>>,
    /// Topics with partitions.
    pub partitions: Arc<Mutex<HashMap<String, Vec<String>>>>,
    /// What the schema registry was asked for.
    pub schemas_asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub async fn start() -> Server {
        Server::start_at(&format!("{}:0", own_loopback_address())).await
    }

    /// Takes the address of one that is gone.
    pub async fn start_at(address: &str) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (publish, publishes) = mpsc::channel(WAITING_MAX);
        let (consume, consumes) = mpsc::channel(WAITING_MAX);
        let address = address.to_owned();
        let bound = runtime.spawn(async move {
            loop {
                // One that is just gone may hold it for another moment.
                match TcpListener::bind(&address).await {
                    Ok(listener) => return listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        let listener = comes("a free address", bound).await.expect("no panic");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let topology = Topology::default();
        let discovery = Lookup { url: url.clone(), topology: topology.clone() };
        let serving = tonic::transport::Server::builder()
            .add_service(StreamServer::new(Handler { publish, consume }))
            .add_service(SchemasServer::new(Registry(topology.clone())))
            .add_service(DiscoveryServer::new(discovery))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(serving);
        Server { url, topology, publishes, consumes, runtime: Some(runtime) }
    }

    /// The address without `http://`.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// A client with short pauses, as befits a test.
    pub fn client(&self) -> Client {
        self.builder().build().expect("a URL")
    }

    pub fn builder(&self) -> ClientBuilder {
        let (first, max) = (Duration::from_millis(1), Duration::from_millis(20));
        Client::builder(&self.url).retry_pauses(first, max)
    }

    pub async fn publish(&mut self) -> PublishStream {
        comes("a publish stream", self.publishes.recv()).await.expect("the server runs")
    }

    pub async fn consume(&mut self) -> ConsumeStream {
        comes("a consume stream", self.consumes.recv()).await.expect("the server runs")
    }
}

/// Each server has a loopback address of its own, so that nobody takes its port while it is down.
/// All of 127.0.0.0/8 is loopback on Linux; elsewhere it is not.
fn own_loopback_address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    if !cfg!(target_os = "linux") {
        return "127.0.0.1".into();
    }
    let process = std::process::id();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{}.{}", 1 + (process >> 8) % 250, process & 0xff, 1 + count % 250)
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Handler {
    publish: mpsc::Sender<PublishStream>,
    consume: mpsc::Sender<ConsumeStream>,
}

#[tonic::async_trait]
impl Service for Handler {
    type PublishStream = ReceiverStream<Result<PublishResponse, Status>>;
    type ConsumeStream = ReceiverStream<Result<ConsumeResponse, Status>>;

    async fn publish(
        &self,
        request: Request<Streaming<PublishRequest>>,
    ) -> Result<Response<Self::PublishStream>, Status> {
        let (answers, outgoing) = mpsc::channel(WAITING_MAX);
        let requests = request.into_inner();
        let stream = PublishStream { requests, answers, batches: VecDeque::new() };
        self.publish.send(stream).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }

    async fn consume(
        &self,
        request: Request<Streaming<ConsumeRequest>>,
    ) -> Result<Response<Self::ConsumeStream>, Status> {
        let (answers, outgoing) = mpsc::channel(WAITING_MAX);
        let stream = ConsumeStream { requests: request.into_inner(), answers };
        self.consume.send(stream).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}

struct Lookup {
    url: String,
    topology: Topology,
}

#[tonic::async_trait]
impl Discovery for Lookup {
    async fn topic_lookup(
        &self,
        request: Request<compatible::TopicLookupRequest>,
    ) -> Result<Response<compatible::TopicLookupResponse>, Status> {
        let topic = request.into_inner().topic;
        let elsewhere = self.topology.elsewhere.lock().expect("no panic").get(&topic).cloned();
        let url = elsewhere.unwrap_or_else(|| self.url.clone());
        Ok(Response::new(compatible::TopicLookupResponse {
            response_type: compatible::topic_lookup_response::LookupType::Connect.into(),
            connect_url: url.clone(),
            broker_url: url,
            ..Default::default()
        }))
    }

    async fn topic_partitions(
        &self,
        request: Request<compatible::TopicLookupRequest>,
    ) -> Result<Response<compatible::TopicPartitionsResponse>, Status> {
        let topic = request.into_inner().topic;
        let partitions = self.topology.partitions.lock().expect("no panic").get(&topic).cloned();
        let partitions = partitions.unwrap_or_else(|| vec![topic]);
        Ok(Response::new(compatible::TopicPartitionsResponse { request_id: 0, partitions }))
    }
}

/// Schemas of which numbers 3 and 8 are of JSON and all others of Avro, for numbers.
struct Registry(Topology);

#[tonic::async_trait]
impl Schemas for Registry {
    async fn get_schema(
        &self,
        request: Request<proto::GetSchemaRequest>,
    ) -> Result<Response<proto::GetSchemaResponse>, Status> {
        let proto::GetSchemaRequest { which, version } = request.into_inner();
        let Some(proto::get_schema_request::Which::SchemaId(schema_id)) = which else {
            return Err(Status::invalid_argument("these tests ask by id"));
        };
        self.0.schemas_asked.lock().expect("no panic").push((schema_id, version));
        let (schema_type, definition) = match schema_id {
            3 | 8 => ("json_schema", "{}"),
            _ => ("avro", r#""long""#),
        };
        Ok(Response::new(proto::GetSchemaResponse {
            schema_id,
            version: version.unwrap_or(1),
            subject: "orders".into(),
            schema_type: schema_type.into(),
            definition: definition.into(),
            ..Default::default()
        }))
    }
}

/// One Publish stream in the test's hands; dropping it ends the stream.
pub struct PublishStream {
    requests: Streaming<PublishRequest>,
    answers: mpsc::Sender<Result<PublishResponse, Status>>,
    batches: VecDeque<Batch>,
}

impl PublishStream {
    /// The next request, or `None` when the client ended the stream.
    pub async fn request(&mut self) -> Option<PublishRequest> {
        comes("a publish request", self.requests.message()).await.ok().flatten()
    }

    /// The next batch, whatever request it is in.
    pub async fn batch(&mut self) -> Batch {
        while self.batches.is_empty() {
            let request = self.request().await.expect("the client has more to say");
            self.batches.extend(request.batches);
        }
        self.batches.pop_front().expect("just looked")
    }

    pub async fn answer(&self, answer: PublishResponse) {
        self.answers.send(Ok(answer)).await.expect("the client listens");
    }

    /// Takes the next open and answers it with ordinary windows.
    pub async fn open(&mut self, last_sequence: u64) -> proto::OpenProducer {
        self.open_with(proto::ProducerOpened { last_sequence, ..opened() }).await
    }

    pub async fn open_with(&mut self, opened: proto::ProducerOpened) -> proto::OpenProducer {
        let request = self.request().await.expect("the client opens a producer");
        self.batches.extend(request.batches);
        let [open] = request.open.try_into().expect("one producer");
        let opened = proto::ProducerOpened { producer: open.producer, ..opened };
        self.answer(PublishResponse { opened: vec![opened], ..Default::default() }).await;
        open
    }

    pub async fn ack(&self, batch: &Batch, first_offset: u64) {
        let ack = proto::PublishAck {
            producer: batch.producer,
            first_sequence: batch.first_sequence,
            first_offset,
            count: batch.messages.count(),
        };
        self.answer(PublishResponse { acks: vec![ack], ..Default::default() }).await;
    }

    /// Refuses `count` messages from `first_sequence` on.
    pub async fn refuse(
        &self,
        producer: u32,
        (first_sequence, count): (u64, u32),
        refusal: proto::Refusal,
        reason: &str,
    ) {
        let refusal = proto::PublishRefusal {
            producer,
            first_sequence,
            count,
            refusal: refusal.into(),
            reason: reason.to_owned(),
            retry_after_ms: 1,
        };
        self.answer(PublishResponse { refusals: vec![refusal], ..Default::default() }).await;
    }
}

/// What a broker usually lets a producer do.
pub fn opened() -> proto::ProducerOpened {
    proto::ProducerOpened {
        producer_id: 77,
        window_batches: 16,
        window_bytes: 1 << 20,
        message_bytes_max: 1 << 16,
        ..Default::default()
    }
}

/// The messages of a batch, decoded.
pub fn messages(batch: &Batch) -> Vec<proto::Message> {
    let bytes = batch.messages.bytes();
    let decode = |range| proto::Message::decode(bytes.slice(range)).expect("well formed");
    batch.messages.ranges().map(decode).collect()
}

/// The payloads of a batch, as text.
pub fn payloads(batch: &Batch) -> Vec<String> {
    let text = |message: proto::Message| String::from_utf8(message.payload.into()).expect("text");
    messages(batch).into_iter().map(text).collect()
}

/// One Consume stream in the test's hands; dropping it ends the stream.
pub struct ConsumeStream {
    requests: Streaming<ConsumeRequest>,
    answers: mpsc::Sender<Result<ConsumeResponse, Status>>,
}

impl ConsumeStream {
    /// The next request, or `None` when the client ended the stream.
    pub async fn request(&mut self) -> Option<ConsumeRequest> {
        comes("a consume request", self.requests.message()).await.ok().flatten()
    }

    /// The next request that settles or extends something.
    pub async fn settling(&mut self) -> ConsumeRequest {
        loop {
            let request = self.request().await.expect("the client has more to say");
            if request.id > 0 {
                return request;
            }
        }
    }

    pub async fn answer(&self, rest: proto::ConsumeResponse) {
        self.deliver(Vec::new(), rest).await;
    }

    /// Takes the subscribe and answers it.
    pub async fn subscribe(&mut self) -> proto::Subscribe {
        let request = self.request().await.expect("the client subscribes");
        let subscribed = proto::Subscribed { consumer_id: 5, cursor: 0 };
        self.answer(proto::ConsumeResponse { subscribed: Some(subscribed), ..Default::default() })
            .await;
        request.subscribe.expect("the first request subscribes")
    }

    pub async fn deliver(&self, deliveries: Vec<Delivered>, rest: proto::ConsumeResponse) {
        let response = ConsumeResponse { deliveries, rest };
        self.answers.send(Ok(response)).await.expect("the client listens");
    }

    /// Delivers first attempts at these offsets, under a lease.
    pub async fn deliver_all(&self, offsets: std::ops::Range<u64>, lease_ms: u64) {
        let deliveries = offsets.map(|offset| delivered(offset, 1)).collect();
        let rest = proto::ConsumeResponse { epoch: 1, lease_ms, ..Default::default() };
        self.deliver(deliveries, rest).await;
    }

    pub async fn settled(&self, settled: proto::Settled) {
        let settled = vec![settled];
        self.answer(proto::ConsumeResponse { settled, ..Default::default() }).await;
    }

    pub async fn end(&self, why: proto::Refusal, reason: &str) {
        let reason = reason.to_owned();
        let ended = Some(proto::Ended { why: why.into(), reason, retry_after_ms: 1 });
        self.answer(proto::ConsumeResponse { ended, ..Default::default() }).await;
    }
}

/// A delivery whose payload tells its offset.
pub fn delivered(offset: u64, attempt: u32) -> Delivered {
    delivered_of(offset, attempt, (3, 4), &format!("m{offset}"))
}

/// A delivery of a payload with a schema.
pub fn delivered_of(offset: u64, attempt: u32, schema: (u64, u32), payload: &str) -> Delivered {
    let message = proto::Message {
        payload: payload.to_owned().into(),
        publish_time: 1_700_000_000_000,
        producer_name: "p".into(),
        attributes: [("a".to_owned(), "1".to_owned())].into(),
        schema_id: Some(schema.0),
        schema_version: Some(schema.1),
        routing_key: Some("k".into()),
    };
    let record = Record::parse_body(message.encode_to_vec().into()).expect("well formed");
    Delivered { offset: danube_core::Offset(offset), attempt, record }
}
