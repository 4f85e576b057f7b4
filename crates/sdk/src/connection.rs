//! Connections to brokers: one kind of HTTP/2 connection for everything, and time limits.
//!
//! Windows are large, because a stream of batches must not wait for the peer to say that it has
//! read; how much may be under way is bounded by the windows and credits of the protocol.
//!
//! Law: nothing here waits longer than the limits of [`Options`].

use crate::error::{Error, root_cause};
use std::future::Future;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// Bytes that a broker may send on one stream before this side has read them.
const STREAM_WINDOW_LEN: u32 = 4 * 1024 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW_LEN: u32 = 8 * 1024 * 1024;
/// How long a peer may take to answer a ping before the connection counts as broken.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limits of a client.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Longest wait for a connection.
    pub(crate) connect_timeout: Duration,
    /// Longest wait for an answer.
    pub(crate) call_timeout: Duration,
    /// How often an idle connection is probed.
    pub(crate) keep_alive: Duration,
    /// The pause after the first failure in a row; it doubles with each further one.
    pub(crate) pause_first: Duration,
    /// The longest pause.
    pub(crate) pause_max: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(20),
            pause_first: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
        }
    }
}

impl Options {
    /// How long to wait after failure number `failures` in a row, counted from 1.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.pause_first.saturating_mul(doubled).min(self.pause_max)
    }

    /// Connects to `url`, which may lack `http://`.
    ///
    /// # Errors
    /// [`Error::Address`] and [`Error::Unreachable`].
    pub(crate) async fn connect(&self, url: &str) -> Result<Channel, Error> {
        self.endpoint(url)?
            .connect()
            .await
            .map_err(|error| Error::Unreachable { url: url.to_owned(), why: root_cause(&error) })
    }

    pub(crate) fn endpoint(&self, url: &str) -> Result<Endpoint, Error> {
        let malformed = |why| Error::Address { address: url.escape_debug().to_string(), why };
        if url.starts_with("https://") {
            return Err(malformed("asks for TLS, which this version does not offer"));
        }
        let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let endpoint = Endpoint::from_shared(full).map_err(|_| malformed("is not a URL"))?;
        let has_host = endpoint.uri().host().is_some_and(|host| !host.is_empty());
        if !has_host || endpoint.uri().scheme_str() != Some("http") {
            return Err(malformed("is not a URL"));
        }
        Ok(endpoint
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_LEN)
            .initial_connection_window_size(CONNECTION_WINDOW_LEN)
            .http2_keep_alive_interval(self.keep_alive)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true))
    }

    /// Waits for `call`, but not longer than the limit.
    ///
    /// # Errors
    /// The status of the server, or DEADLINE_EXCEEDED.
    pub(crate) async fn call<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        match tokio::time::timeout(self.call_timeout, call).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => {
                Err(Status::deadline_exceeded(format!("no answer within {:?}", self.call_timeout)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_with_and_without_a_scheme() {
        let options = Options::default();
        for url in ["http://127.0.0.1:6650", "127.0.0.1:6650", "http://broker:6650/", "[::1]:1"] {
            assert!(options.endpoint(url).is_ok(), "{url}");
        }
        for url in ["", "http://", "https://h:1", "ftp://h:1", "h h:1"] {
            assert!(matches!(options.endpoint(url), Err(Error::Address { .. })), "{url}");
        }
    }

    #[test]
    fn pauses_double_and_stop_growing() {
        let options = Options::default();
        let pauses: Vec<u128> = [1, 2, 3, 6, 7, 99].map(|n| options.pause(n).as_millis()).into();
        assert_eq!(pauses, [50, 100, 200, 1_600, 2_000, 2_000]);
    }
}
