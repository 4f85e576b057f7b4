//! A small client of the compatible wire, as far as the commands of this binary need one.
//!
//! It does on the wire what the official clients do: lookup, then attach, then messages, one
//! producer or consumer per partition. It leaves to its callers what a message means.
//!
//! Law: a broker that restarts or moves a topic is not an error. UNAVAILABLE and a broken
//! connection lead to lookup and attach again, with growing pauses, until [`RETRIES_MAX`].

mod consumer;
mod producer;
mod route;

pub use consumer::{Consumer, ConsumerSpec, Received, SubscriptionType};
pub use producer::{Message, Producer, ProducerSpec, SchemaTag, unix_ms};
pub use route::Cluster;

use crate::channel;
use std::future::Future;
use std::time::Duration;
use tonic::Status;

/// How often in a row an operation is tried again; with the pauses below about half a minute,
/// which a broker's restart fits in.
pub const RETRIES_MAX: u32 = 20;
/// The pause after the first failure; it grows by this much with each further one.
const PAUSE_STEP: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long to wait after the failure number `failures`, counted from 1.
fn pause(failures: u32) -> Duration {
    PAUSE_STEP.saturating_mul(failures).min(PAUSE_MAX)
}

/// Tries until it succeeds, is refused for good, or failed [`RETRIES_MAX`] times in a row.
///
/// # Errors
/// The last status.
async fn persist<T, F: Future<Output = Result<T, Status>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, Status> {
    let mut failures = 0;
    loop {
        match attempt().await {
            Err(status) if channel::is_retryable(&status) && failures < RETRIES_MAX => {
                failures += 1;
                tokio::time::sleep(pause(failures)).await;
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn pauses_grow_and_stop_growing() {
        let pauses: Vec<u128> = [1, 2, 9, 10, 11, u32::MAX].map(|n| pause(n).as_millis()).into();
        assert_eq!(pauses, [200, 400, 1_800, 2_000, 2_000, 2_000]);
    }

    #[tokio::test]
    async fn a_refusal_is_not_tried_again() {
        let attempts = Cell::new(0);
        let ended: Result<(), Status> = persist(|| {
            attempts.set(attempts.get() + 1);
            async { Err(Status::invalid_argument("no")) }
        })
        .await;
        assert_eq!((ended.is_err(), attempts.get()), (true, 1));
    }
}
