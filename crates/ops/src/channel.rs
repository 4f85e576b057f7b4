//! One HTTP/2 connection to a server, and what its failures mean to the user.
//!
//! Law: no call waits for ever; connecting and every unary call have a time limit.

use crate::error::OpError;
use std::error::Error;
use std::future::Future;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the answer of a unary call. A broker answers well within it, also while it
/// loads a topic; the official clients set none.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// How often an idle connection is probed, so that a peer that vanished is noticed.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// Connects to `url`; `http://` may be left out.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a malformed URL,
/// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) when nobody answers.
pub async fn connect(url: &str) -> Result<Channel, OpError> {
    endpoint(url)?.connect().await.map_err(|error| {
        let why = root_cause(&error);
        OpError::unreachable(format!("no broker answers at `{url}`: {why}"))
            .help("check the address, and that `danube start` runs and printed its ready line")
    })
}

fn endpoint(url: &str) -> Result<Endpoint, OpError> {
    let malformed = |why: &str| {
        OpError::usage(format!("address `{}` {why}", url.escape_debug()))
            .help("give a URL such as `http://127.0.0.1:6650`")
    };
    if url.starts_with("https://") {
        return Err(malformed("asks for TLS, which this version does not offer"));
    }
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let endpoint = Endpoint::from_shared(full).map_err(|_| malformed("is not a URL"))?;
    if endpoint.uri().host().is_none_or(str::is_empty)
        || endpoint.uri().scheme_str() != Some("http")
    {
        return Err(malformed("is not a URL"));
    }
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_while_idle(true))
}

/// Waits for a unary call, but not longer than the limit.
///
/// # Errors
/// The status of the server, or DEADLINE_EXCEEDED.
pub async fn call<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
    call_within(CALL_TIMEOUT, call).await
}

/// The same with a limit of its own, for a call that does a lot.
///
/// # Errors
/// As [`call`].
pub async fn call_within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {limit:?}"))),
    }
}

/// Whether the same call may well succeed in a moment.
pub fn is_retryable(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted)
        || is_transport(status)
}

/// Whether the connection broke, rather than the server refused.
fn is_transport(status: &Status) -> bool {
    status.source().is_some()
}

/// `doing` is what failed, such as ``topic `/n/t` cannot be created``.
pub fn error(doing: &str, status: &Status) -> OpError {
    if let Some(cause) = status.source() {
        let why = root_cause(cause);
        return OpError::unreachable(format!("{doing}: the connection broke: {why}"))
            .help("check that the broker runs, then try again");
    }
    let mut error = OpError::refused(format!("{doing}: {}", reason(status)));
    error.not_found = status.code() == Code::NotFound;
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded => error.help("try again in a moment"),
        Code::ResourceExhausted => error.help("the broker is at a limit; try again later"),
        _ => error,
    }
}

/// The server's sentence, or the meaning of its code where it gave none.
fn reason(status: &Status) -> &str {
    if status.message().is_empty() { status.code().description() } else { status.message() }
}

/// The innermost error, which says what the system said.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn urls_are_taken_with_and_without_a_scheme() {
        for url in ["http://127.0.0.1:6650", "127.0.0.1:6650", "http://broker:6650/", "[::1]:1"] {
            assert!(endpoint(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn malformed_urls_are_usage_errors() {
        for url in ["", "http://", "https://h:1", "ftp://h:1", "h h:1"] {
            assert_eq!(endpoint(url).expect_err(url).kind, ErrorKind::Usage, "{url}");
        }
    }

    #[test]
    fn a_refusal_carries_the_sentence_of_the_server() {
        let error = error("topic `/n/t` cannot be created", &Status::already_exists("it is"));
        assert_eq!(error.kind, ErrorKind::Refused);
        assert_eq!(error.message, "topic `/n/t` cannot be created: it is");
    }
}
