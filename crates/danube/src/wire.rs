//! Which of the two wires a command of this binary speaks as a client.

use crate::failure::Failure;
use danube_core::FaultKind;

/// The protocol between this command and the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Wire {
    /// Streams of batches, `danube.stream.v1`
    #[default]
    Native,
    /// One call per message, as the published clients do it
    Compatible,
}

/// What the client library could not do. `doing` is what failed, such as
/// ``no producer on topic `/n/t` ``.
pub fn failure(doing: &str, error: &danube_sdk::Error) -> Failure {
    use danube_sdk::Error;
    match error {
        Error::Address { .. } => Failure::usage(error.to_string()),
        Error::Unreachable { url, why } => {
            Failure::unreachable(format!("no broker answers at `{url}`: {why}"))
                .help("check the address, and that `danube start` runs and printed its ready line")
        }
        Error::Refused { kind: FaultKind::Unsupported, reason, .. } => {
            Failure::refused(format!("{doing}: {reason}")).help("or use --wire compatible")
        }
        Error::Refused { kind: FaultKind::Retry, reason, .. } => {
            Failure::refused(format!("{doing}: {reason}")).help("try again in a moment")
        }
        Error::Refused { kind: FaultKind::Exhausted, reason, .. } => {
            Failure::refused(format!("{doing}: {reason}"))
                .help("the broker is at a limit; try again later")
        }
        Error::Refused { reason, .. } => Failure::refused(format!("{doing}: {reason}")),
        other => Failure::refused(format!("{doing}: {other}")),
    }
}
