//! The signals that ask a command to end: SIGTERM and Ctrl-C.
//!
//! Law: a signal that arrives between two waits is seen by the second.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask for an end.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens from now on; the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// [`Exit::Refused`](crate::failure::Exit::Refused) when the system does not allow it.
    pub fn listen() -> Result<Signals, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::refused(format!("signals cannot be listened for: {error}"))
            })
        };
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for one, and names it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
