//! `danube mcp`: the operations as tools for AI agents and assistants, by the Model Context
//! Protocol, over stdio or over HTTP.
//!
//! Law: no tool is known here by name; all of them come from [`danube_ops::tools`], and what a
//! caller may do is told at the handshake and decided there.

mod audit;
mod prompts;
mod resources;
mod server;

use crate::ctl;
use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;
use audit::Audit;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use danube_ops::tools::Level;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use server::Server;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Flags of `danube mcp`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The broker's admin address [default: that of the context, else http://127.0.0.1:50051]
    #[arg(long, value_name = "URL", env = "DANUBE_ADMIN_ENDPOINT")]
    endpoint: Option<String>,
    /// Offer no tool that changes anything
    #[arg(long, conflicts_with = "allow_destructive")]
    read_only: bool,
    /// Offer tools that destroy or move data too; each call of one must be confirmed
    #[arg(long)]
    allow_destructive: bool,
    /// Serve HTTP at this address, under /mcp, instead of stdio; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// What HTTP callers must send as their bearer token
    #[arg(long, value_name = "TOKEN", env = "DANUBE_MCP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Append a line for each call to this file instead of stderr
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

impl Arguments {
    fn level(&self) -> Level {
        match (self.read_only, self.allow_destructive) {
            (true, _) => Level::ReadOnly,
            (false, true) => Level::Destructive,
            (false, false) => Level::Default,
        }
    }
}

/// Serves until the client goes away (stdio) or a signal comes.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage) for flags that do not go together,
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the address or the audit log cannot be used.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let level = arguments.level();
    let audit = Arc::new(Audit::open(arguments.audit_log.as_deref())?);
    let endpoint = ctl::endpoint(arguments.endpoint.clone())?;
    let server = move || Server::new(endpoint.clone(), level, Arc::clone(&audit));
    match arguments.http {
        None => stdio(server()).await,
        Some(address) => http(server, address, arguments.token).await,
    }
}

async fn stdio(server: Server) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let served = async {
        let running = server.serve(rmcp::transport::stdio()).await;
        match running {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    tokio::select! {
        ended = served => {
            ended.map_err(|why| Failure::refused(format!("the conversation broke off: {why}")))
        }
        _ = signals.next() => Ok(()),
    }
}

async fn http(
    server: impl Fn() -> Server + Send + Sync + 'static,
    address: SocketAddr,
    token: Option<String>,
) -> Result<(), Failure> {
    if token.is_none() && !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{address} can be reached from other machines, and anybody there could operate the \
             broker"
        ))
        .help("give a token with --token or DANUBE_MCP_TOKEN, or listen on 127.0.0.1"));
    }
    let refused = |error: std::io::Error| {
        Failure::refused(format!("cannot listen on {address}: {error}"))
            .help("stop what uses it, or choose another with --http (port 0 takes a free one)")
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    let config = StreamableHttpServerConfig::default();
    let stop = config.cancellation_token.clone();
    // Pages of strangers must not talk to it through a browser that resolves their name to here.
    let config = match address.ip().is_unspecified() {
        true => config.disable_allowed_hosts(),
        false => config.with_allowed_hosts([
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
            bound.ip().to_string(),
        ]),
    };
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server()), sessions, config);
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(token.map(Arc::<str>::from), authorised));
    let mut signals = Signals::listen()?;
    output::line(format!("danube mcp ready http=http://{bound}/mcp"))?;
    let ending = async move {
        signals.next().await;
        stop.cancel();
    };
    let served = axum::serve(listener, router).with_graceful_shutdown(ending).await;
    served.map_err(|error| Failure::refused(format!("HTTP stopped: {error}")))
}

/// Lets nobody in without the token, where there is one.
async fn authorised(
    State(token): State<Option<Arc<str>>>,
    request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    let is_in = token.as_deref().is_none_or(|token| given.is_some_and(|given| same(given, token)));
    match is_in {
        true => next.run(request).await,
        false => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer")],
            "the bearer token is missing or wrong\n",
        )
            .into_response(),
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(given: &str, wanted: &str) -> bool {
    let differing = given.bytes().zip(wanted.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == wanted.len() && differing == 0
}
