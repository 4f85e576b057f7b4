//! Connections of this binary's own clients: the operations' way to a broker, with this binary's
//! failures.

use crate::failure::Failure;
use tonic::Status;
use tonic::transport::Channel;

pub use danube_ops::channel::{call, is_retryable};

/// Connects to `url`; `http://` may be left out.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage) for a malformed URL,
/// [`Exit::Unreachable`](crate::failure::Exit::Unreachable) when nobody answers.
pub async fn connect(url: &str) -> Result<Channel, Failure> {
    Ok(danube_ops::channel::connect(url).await?)
}

/// `doing` is what failed, such as ``no producer on topic `/n/t` ``.
pub fn failure(doing: &str, status: &Status) -> Failure {
    danube_ops::channel::error(doing, status).into()
}
