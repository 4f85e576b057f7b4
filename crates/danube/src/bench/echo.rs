//! `danube bench echo`: what bare gRPC costs on this machine, by unary calls or by a stream.
//!
//! The server is a process of its own, as a broker is, so that both share the machine with the
//! client in the same way. It takes the broker's messages and answers as a broker does, but keeps
//! nothing.

use super::drive::drive;
use super::lane::Lane;
use super::load::{Extent, Load, Pace};
use super::outlet::Outlet;
use super::process::Watch;
use super::report::{Progress, Report};
use super::stream_echo;
use crate::channel;
use crate::failure::Failure;
use crate::output;
use crate::produce::plural;
use crate::wire::Wire;
use danube_wire::proto::danube as proto;
use proto::producer_service_server::{ProducerService, ProducerServiceServer};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Measure a bare gRPC echo with the same messages, for comparison
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    load: Load,
    /// A bidirectional stream of batches (100 messages, or as --batch says) with an ack for each,
    /// instead of a call for each message
    #[arg(long)]
    stream: bool,
}

/// Runs it and prints the report.
///
/// # Errors
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the server process cannot be started.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { extent, load, stream } = arguments;
    let wire = if stream { Wire::Native } else { Wire::Compatible };
    yardstick(wire, extent, &load).await?.print(load.output)
}

/// What `wire` has to be held against.
///
/// # Errors
/// As [`run`].
pub async fn yardstick(wire: Wire, extent: Extent, load: &Load) -> Result<Report, Failure> {
    match wire {
        Wire::Native => stream_echo::measure(extent, load).await,
        Wire::Compatible => measure(extent, load).await,
    }
}

/// Starts the server, drives it, and ends it.
///
/// # Errors
/// As [`run`].
async fn measure(extent: Extent, load: &Load) -> Result<Report, Failure> {
    let server = ServerProcess::start()?;
    let mut lanes = Vec::new();
    for index in 0..load.connections {
        let channel = channel::connect(&server.url).await?;
        lanes.push(Arc::new(Outlet::Compatible(Box::new(Lane::bare(channel, load, index)))));
    }
    let progress = Progress::new("warming up");
    drive(&lanes, load, Pace::of_count(load.warm_up), &progress).await?;
    progress.finish();

    let progress = Progress::new("echoing");
    let watch = Watch::start(server.process())?;
    let measured = drive(&lanes, load, Pace::starting_now(extent), &progress).await?;
    let usage = watch.and_then(Watch::end);
    progress.finish();
    Ok(Report {
        setting: setting(load),
        size: load.size,
        messages: measured.latencies.count(),
        latencies: measured.latencies,
        latency_of: "call to answer",
        elapsed: measured.elapsed,
        usage,
        ..Report::new("echo")
    })
}

/// `128 in flight on 1 connection`.
pub fn setting(load: &Load) -> String {
    format!("{} in flight on {}", load.in_flight, plural(load.connections.into(), "connection"))
}

/// The server in a process of its own; it ends when this value does.
pub(super) struct ServerProcess {
    child: Child,
    /// Where it serves.
    pub(super) url: String,
}

impl ServerProcess {
    /// Its process id, where there is something to be read about it.
    pub(super) fn process(&self) -> Option<u32> {
        cfg!(target_os = "linux").then(|| self.child.id())
    }

    /// Starts it and waits until it serves.
    ///
    /// # Errors
    /// [`Exit::Refused`](crate::failure::Exit::Refused) when it cannot be started.
    pub(super) fn start() -> Result<ServerProcess, Failure> {
        let refuse = |error: std::io::Error| {
            Failure::refused(format!("the echo server cannot be started: {error}"))
        };
        let binary = std::env::current_exe().map_err(refuse)?;
        let mut child = Command::new(binary)
            .args(["bench", "echo-server"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(refuse)?;
        let mut url = String::new();
        let stdout = child.stdout.take().expect("piped");
        let read = BufReader::new(stdout).read_line(&mut url);
        // Built before the check, so that the process ends whatever was read.
        let server = ServerProcess { child, url: url.trim_end().to_owned() };
        match read {
            Ok(_) if server.url.starts_with("http://") => Ok(server),
            Ok(_) => Err(Failure::refused("the echo server ended before it served")),
            Err(error) => Err(refuse(error)),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server: prints its URL, and serves until its stdin is closed, which happens at the latest
/// when the process that started it ends.
///
/// # Errors
/// [`Exit::Refused`](crate::failure::Exit::Refused) when it cannot listen.
pub async fn serve() -> Result<(), Failure> {
    let refuse =
        |error: std::io::Error| Failure::refused(format!("the echo server cannot listen: {error}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(refuse)?;
    output::line(format!("http://{}", listener.local_addr().map_err(refuse)?))?;
    let parent_gone = tokio::task::spawn_blocking(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
    });
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = Server::builder()
        .initial_stream_window_size(stream_echo::STREAM_WINDOW_LEN)
        .initial_connection_window_size(stream_echo::CONNECTION_WINDOW_LEN)
        .max_frame_size(stream_echo::FRAME_LEN_MAX)
        .add_service(ProducerServiceServer::new(Echo))
        .add_service(stream_echo::service())
        .serve_with_incoming(incoming);
    tokio::select! {
        served = serving => served.map_err(|error| {
            Failure::refused(format!("the echo server failed: {error}"))
        }),
        _ = parent_gone => Ok(()),
    }
}

struct Echo;

#[tonic::async_trait]
impl ProducerService for Echo {
    async fn create_producer(
        &self,
        _: Request<proto::ProducerRequest>,
    ) -> Result<Response<proto::ProducerResponse>, Status> {
        Err(Status::unimplemented("the echo server knows no producers"))
    }

    async fn send_message(
        &self,
        request: Request<proto::StreamMessage>,
    ) -> Result<Response<proto::MessageResponse>, Status> {
        let request_id = request.into_inner().request_id;
        Ok(Response::new(proto::MessageResponse { request_id }))
    }
}
