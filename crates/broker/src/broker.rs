//! A broker from start to stop.
//!
//! Order of start: listeners are bound (so that a busy port is told before anything is touched),
//! the catalog opens and grants this start its incarnation, the log is recovered, then everything
//! serves. Order of stop: topics end their streams and take nothing new, connections drain, the
//! log is synced, the catalog closes.
//!
//! Law: whatever was acknowledged before a stop is there after it, and a stop ends within
//! five seconds.

use crate::admin::Admin;
use crate::clock::Clock;
use crate::context::Context;
use crate::http;
use crate::options::BrokerOptions;
use crate::rpc::Rpc;
use crate::schema::{self, NativeSchemas, Registry};
use crate::stream;
use danube_core::change::{
    Change, CreateNamespace, Outcome, StartIncarnation, UNACKED_MESSAGES_MAX,
};
use danube_core::{Fault, FaultKind, Incarnation, NamespaceName};
use danube_meta::{Meta, MetaError, MetaOptions};
use danube_store::{CloseError, OpenError, RecoveryProgress, Store, StoreOptions};
use danube_wire::limit::REQUEST_LEN_MAX;
use danube_wire::proto::control::control_server::ControlServer;
use danube_wire::proto::danube::consumer_service_server::ConsumerServiceServer;
use danube_wire::proto::danube::discovery_server::DiscoveryServer;
use danube_wire::proto::danube::health_check_server::HealthCheckServer;
use danube_wire::proto::danube::producer_service_server::ProducerServiceServer;
use danube_wire::proto::danube::storage_service_server::StorageServiceServer;
use danube_wire::proto::danube_admin::broker_admin_server::BrokerAdminServer;
use danube_wire::proto::danube_admin::cluster_admin_server::ClusterAdminServer;
use danube_wire::proto::danube_admin::namespace_admin_server::NamespaceAdminServer;
use danube_wire::proto::danube_admin::topic_admin_server::TopicAdminServer;
use danube_wire::proto::danube_schema::schema_registry_server::SchemaRegistryServer;
use danube_wire::proto::stream::schemas_server::SchemasServer;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};

/// Pause between the end of all streams and the end of the connections. An official consumer opens
/// its stream again at once; met by the end of the connection, it would get CANCELLED from its own
/// library and give up for good, while it outlasts the "unavailable" that it gets in this time.
const REOPEN_PAUSE: Duration = Duration::from_millis(250);
/// How long connections may take to drain when the broker stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a stop may take in all.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between pings to a silent peer, and how long it may take to answer: together the time
/// after which a frozen peer counts as gone.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a peer may send ahead on one stream and on one connection: enough for the batches of
/// a native client to flow without a pause for window updates.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Largest HTTP/2 frame taken: batches come in few pieces.
const FRAME_LEN_MAX: u32 = 256 << 10;
/// Bytes of a write to the log that is done by whoever brings it, where the log's writer has nothing
/// to do: as quickly done as another thread is woken.
const INLINE_BYTES_MAX: usize = 16 << 10;
/// Streams on one connection. An official client holds one per consumer, all on one connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 100_000;

/// Where a broker listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// For clients (gRPC).
    pub broker: SocketAddr,
    /// For administrators (gRPC).
    pub admin: SocketAddr,
    /// For people and Prometheus (HTTP).
    pub http: SocketAddr,
}

/// Why a broker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port is taken or not allowed.
    #[error(
        "cannot listen on {address} (the {what} address): {error}; stop what uses it, or choose another with --{what}-addr (port 0 takes a free one)"
    )]
    Listen {
        /// Which of the addresses: `broker`, `admin` or `http`.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// The data directory cannot be made or written.
    #[error("cannot use the data directory {}: {error}; choose one that this user can write with --data-dir", path.display())]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The catalog cannot be opened.
    #[error("cannot open the catalog: {0}")]
    Catalog(#[from] MetaError),
    /// The catalog refused what every start needs of it.
    #[error("the catalog refused to start this broker: {0}")]
    Refused(#[from] Fault),
    /// The log cannot be opened.
    #[error("cannot open the log: {0}")]
    Log(#[from] OpenError),
    /// A setting is out of range.
    #[error("{0}")]
    Options(String),
}

/// Why a broker did not come to its proper end. What was acknowledged is safe all the same, as far
/// as its topic's durability promises.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Something took too long.
    #[error("the broker did not drain within {} s", STOP_TIMEOUT.as_secs())]
    Timeout,
    /// The last sync of the log failed.
    #[error("the log did not close cleanly: {0}")]
    Log(CloseError),
    /// A defect of ours.
    #[error("closing the log failed: {0}")]
    Panic(String),
}

/// A running broker.
pub struct Broker {
    context: Arc<Context>,
    servers: JoinSet<()>,
    stop: CancellationToken,
}

impl Broker {
    /// Starts a broker; it serves when this returns. `progress` hears of long work in words.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running.
    pub async fn start(
        options: BrokerOptions,
        progress: impl FnMut(String) + Send,
    ) -> Result<Broker, StartError> {
        Broker::start_with_pages(options, |_, _| axum::Router::new(), progress).await
    }

    /// As [`start`](Broker::start); `pages`, made once it is known where the broker listens, are
    /// served at the HTTP address beside its own. The token that they get is cancelled when the
    /// broker begins to stop: answers without an end must end then.
    ///
    /// # Errors
    /// As [`start`](Broker::start).
    pub async fn start_with_pages(
        options: BrokerOptions,
        pages: impl FnOnce(Addresses, CancellationToken) -> axum::Router + Send,
        mut progress: impl FnMut(String) + Send,
    ) -> Result<Broker, StartError> {
        check(&options)?;
        let listeners = Listeners::bind(&options).await?;
        make_dir(&options.data_dir)?;
        let meta = Meta::open(MetaOptions::new(options.data_dir.join("raft"))).await?;
        let incarnation = start_incarnation(&meta).await?;
        for namespace in &options.bootstrap_namespaces {
            create_namespace(&meta, namespace).await?;
        }
        let store = open_store(&options, incarnation, &mut progress)?;
        let view = meta.view();
        store.retain(&|topic| view.topic_by_id(topic).is_some());
        store.adopt(view.topics().map(|(_, topic)| topic.id));

        let context = Arc::new(Context::new(options, meta, store, incarnation));
        let addresses = listeners.addresses;
        context.set_addresses(addresses, broker_url(&context.options, addresses.broker));
        let mut broker =
            Broker { context, servers: JoinSet::new(), stop: CancellationToken::new() };
        let stopping = broker.context.stopping.clone();
        broker.serve(listeners, pages(addresses, stopping));
        Ok(broker)
    }

    fn serve(&mut self, listeners: Listeners, pages: axum::Router) {
        self.servers.spawn({
            let follows = schema::follow(Arc::clone(&self.context));
            let stop = self.stop.clone().cancelled_owned();
            async move {
                tokio::select! {
                    () = follows => {}
                    () = stop => {}
                }
            }
        });
        let context = Arc::clone(&self.context);
        self.servers.spawn(async move { context.topics.load_waiting(&context).await });
        let registry = SchemaRegistryServer::new(Registry::new(Arc::clone(&self.context)));
        let rpc = Rpc::new(Arc::clone(&self.context));
        let clients = server()
            .add_service(
                ProducerServiceServer::new(rpc.clone()).max_decoding_message_size(REQUEST_LEN_MAX),
            )
            .add_service(ConsumerServiceServer::new(rpc.clone()))
            .add_service(DiscoveryServer::new(rpc.clone()))
            .add_service(HealthCheckServer::new(rpc.clone()))
            .add_service(StorageServiceServer::new(rpc))
            .add_service(stream::server(Arc::clone(&self.context)))
            .add_service(SchemasServer::new(NativeSchemas::new(Arc::clone(&self.context))))
            .add_service(registry.clone());
        self.serve_grpc(clients, listeners.broker);

        let admin = Admin::new(Arc::clone(&self.context));
        let admins = server()
            .add_service(BrokerAdminServer::new(admin.clone()))
            .add_service(ClusterAdminServer::new(admin.clone()))
            .add_service(NamespaceAdminServer::new(admin.clone()))
            .add_service(TopicAdminServer::new(admin.clone()))
            .add_service(ControlServer::new(admin))
            .add_service(registry);
        self.serve_grpc(admins, listeners.admin);

        let router = http::router(Arc::clone(&self.context)).merge(pages);
        let stop = self.stop.clone().cancelled_owned();
        self.servers.spawn(async move {
            let served = axum::serve(listeners.http, router).with_graceful_shutdown(stop).await;
            if let Err(error) = served {
                tracing::error!(%error, "HTTP stopped");
            }
        });
    }

    fn serve_grpc(&mut self, router: Router, listener: TcpListener) {
        let incoming = TcpIncoming::from(listener)
            .with_nodelay(Some(true))
            .with_keepalive(Some(KEEPALIVE_INTERVAL));
        let stop = self.stop.clone().cancelled_owned();
        self.servers.spawn(async move {
            if let Err(error) = router.serve_with_incoming_shutdown(incoming, stop).await {
                tracing::error!(%error, "gRPC stopped");
            }
        });
    }

    /// What its parts share, for tests and benches that ask without a network.
    pub(crate) fn context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }

    /// Where this broker listens.
    pub fn addresses(&self) -> Addresses {
        self.context.addresses()
    }

    /// Stops within five seconds; what was acknowledged is kept.
    ///
    /// # Errors
    /// [`StopError`] when something did not come to its proper end.
    pub async fn stop(self) -> Result<(), StopError> {
        let stopped = tokio::time::timeout(STOP_TIMEOUT, self.wind_down()).await;
        stopped.unwrap_or(Err(StopError::Timeout))
    }

    async fn wind_down(mut self) -> Result<(), StopError> {
        self.context.stopping.cancel();
        // Streams end first, so that the connections have nothing left to wait for.
        self.context.topics.stop_all().await;
        tokio::time::sleep(REOPEN_PAUSE).await;
        self.stop.cancel();
        let drained = async { while self.servers.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("some connections did not drain; they are cut");
            self.servers.shutdown().await;
        }
        let context = Arc::clone(&self.context);
        let closed = tokio::task::spawn_blocking(move || context.store.close()).await;
        self.context.meta.close().await;
        closed.map_err(|error| StopError::Panic(error.to_string()))?.map_err(StopError::Log)
    }
}

/// A server with what both ports have in common.
fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_LEN_MAX)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
}

struct Listeners {
    broker: TcpListener,
    admin: TcpListener,
    http: TcpListener,
    addresses: Addresses,
}

impl Listeners {
    async fn bind(options: &BrokerOptions) -> Result<Listeners, StartError> {
        let (broker, broker_addr) = bind("broker", options.broker_addr).await?;
        let (admin, admin_addr) = bind("admin", options.admin_addr).await?;
        let (http, http_addr) = bind("http", options.http_addr).await?;
        let addresses = Addresses { broker: broker_addr, admin: admin_addr, http: http_addr };
        Ok(Listeners { broker, admin, http, addresses })
    }
}

async fn bind(
    what: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |error| StartError::Listen { what, address, error };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    Ok((listener, bound))
}

fn check(options: &BrokerOptions) -> Result<(), StartError> {
    let window = options.dispatch.max_unacked_messages;
    if !(1..=UNACKED_MESSAGES_MAX).contains(&window) {
        return Err(StartError::Options(format!(
            "dispatch.max_unacked_messages is {window}; it can be 1 to {UNACKED_MESSAGES_MAX}"
        )));
    }
    if options.policies.max_message_size == 0 {
        return Err(StartError::Options(
            "policies.max_message_size is 0, so no message could be published; give bytes".into(),
        ));
    }
    Ok(())
}

fn make_dir(path: &Path) -> Result<(), StartError> {
    std::fs::create_dir_all(path)
        .map_err(|error| StartError::DataDir { path: path.to_owned(), error })
}

/// The address that clients are told.
fn broker_url(options: &BrokerOptions, bound: SocketAddr) -> String {
    match &options.advertised_addr {
        Some(advertised) => {
            let bare = advertised.trim_end_matches('/');
            if bare.contains("://") { bare.to_owned() } else { format!("http://{bare}") }
        }
        None => {
            if bound.ip().is_unspecified() {
                tracing::warn!(%bound, "clients are told the address they must reach this broker at; set --advertised-addr, since {bound} means any address");
            }
            format!("http://{bound}")
        }
    }
}

async fn start_incarnation(meta: &Meta) -> Result<Incarnation, StartError> {
    let change = Change::StartIncarnation(StartIncarnation {});
    match meta.propose(change, Clock::wall()).await? {
        Outcome::IncarnationStarted { incarnation } => Ok(incarnation),
        other => Err(StartError::Refused(Fault::internal(format!(
            "asked for an incarnation, got {other:?}"
        )))),
    }
}

async fn create_namespace(meta: &Meta, name: &str) -> Result<(), StartError> {
    let name = NamespaceName::parse(name)?;
    let change = Change::CreateNamespace(CreateNamespace { name });
    match meta.propose(change, Clock::wall()).await {
        Err(fault) if fault.kind != FaultKind::AlreadyExists => Err(fault.into()),
        _ => Ok(()),
    }
}

fn open_store(
    options: &BrokerOptions,
    incarnation: Incarnation,
    progress: &mut (impl FnMut(String) + Send),
) -> Result<Store, StartError> {
    let dir = options.wal_dir.clone().unwrap_or_else(|| options.data_dir.join("wal"));
    let mut store = StoreOptions::new(dir, incarnation);
    store.file_bytes_max = options.storage.journal_file_bytes;
    store.flush_interval_ms = options.storage.flush_interval_ms;
    store.sync_interval_ms = options.storage.sync_interval_ms;
    store.flush_max_batch_bytes = bytes(options.storage.flush_max_batch_bytes);
    store.cache_bytes_max = bytes(options.storage.cache_bytes);
    store.inline_bytes_max = INLINE_BYTES_MAX;
    store.clock = Arc::new(Clock::start());
    let mut tell = |at: RecoveryProgress| {
        progress(format!(
            "recovering the log: file {} of {}, {} of {} MiB",
            at.files,
            at.files_total,
            at.bytes >> 20,
            at.bytes_total >> 20
        ));
    };
    Ok(Store::open(store, &mut tell)?)
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
