//! What a client of the native wire is told when something was not done.

use crate::topic::BatchFault;
use danube_core::sequence::SequenceRefusal;
use danube_core::{Fault, FaultKind};
use danube_wire::proto::stream::Refusal;

/// Pause before another try where the cause passes by itself, in milliseconds.
const BUSY_MS: u64 = 100;
/// The same where something has to be mended, or to come back.
const RETRY_MS: u64 = 500;

/// Why, in words, and when to come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) reason: String,
    pub(super) retry_after_ms: u64,
}

impl Refused {
    pub(super) fn new(refusal: Refusal, reason: impl Into<String>) -> Refused {
        let retry_after_ms = match refusal {
            Refusal::Overloaded => BUSY_MS,
            Refusal::Retry => RETRY_MS,
            _ => 0,
        };
        Refused { refusal, reason: reason.into(), retry_after_ms }
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        let refusal = match fault.kind {
            FaultKind::Retry => Refusal::Retry,
            FaultKind::Exhausted => Refusal::Overloaded,
            FaultKind::NotFound => Refusal::NotFound,
            FaultKind::Invalid | FaultKind::Unsupported => Refusal::Invalid,
            FaultKind::AlreadyExists
            | FaultKind::Precondition
            | FaultKind::Unauthenticated
            | FaultKind::Denied
            | FaultKind::Internal => Refusal::Precondition,
        };
        Refused::new(refusal, fault.message)
    }
}

impl From<BatchFault> for Refused {
    fn from(fault: BatchFault) -> Refused {
        match fault {
            BatchFault::Fault(fault) => fault.into(),
            BatchFault::Moved(reason) => Refused::new(Refusal::Moved, reason),
            BatchFault::Sequence(why) => {
                let refusal = match why {
                    SequenceRefusal::Fenced { .. } => Refusal::Fenced,
                    SequenceRefusal::Unknown => Refusal::Moved,
                    SequenceRefusal::OutOfOrder { .. } => Refusal::OutOfOrder,
                    SequenceRefusal::Forgotten { .. } => Refusal::Invalid,
                };
                Refused::new(refusal, why.to_string())
            }
        }
    }
}
