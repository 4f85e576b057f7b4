//! What a subscription wants done: the outputs of [`Subscription::step`](super::Subscription::step).
//!
//! The driver performs them in order. It keeps the body of every message that it fetched until
//! the matching [`Effect::Release`] or [`Effect::Park`].

use super::progress::Step;
use crate::ids::{ConsumerId, Offset};

/// Something for the driver to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Read the log and answer with `Fetched` or `FetchFailed`. At most one is outstanding.
    Fetch {
        /// First offset wanted.
        from: Offset,
        /// Most messages wanted.
        max: u32,
    },
    /// Put a message into a consumer's stream queue. Uses one room, given back by `Drained`.
    Deliver {
        /// To whom.
        consumer: ConsumerId,
        /// Which message.
        offset: Offset,
        /// Which delivery of it this is; the first is 1.
        attempt: u32,
        /// Names this entry of the queue; never given again by this engine.
        ticket: u64,
    },
    /// An entry of a consumer's stream queue is void: it was settled by somebody else, or a seek
    /// passed over it. It must not be sent if the connection has not taken it yet, but it keeps
    /// its room: skipping it counts as `Drained`, in its turn.
    Void {
        /// Whose queue.
        consumer: ConsumerId,
        /// Which entry.
        ticket: u64,
    },
    /// The engine holds this message no more: the body may be dropped. A stream's queue may
    /// still have it (acked by somebody else, or a seek), so the queue keeps its own handle.
    Release {
        /// Which message.
        offset: Offset,
    },
    /// The body of this message is not needed for now and must be dropped; the engine keeps its
    /// place. A stream's queue may still have it.
    Park {
        /// Which message.
        offset: Offset,
    },
    /// Read parked messages again and answer with `Refetched` or `RefetchFailed`. Several may be
    /// outstanding.
    Refetch {
        /// First offset wanted.
        from: Offset,
        /// How many offsets, each of them parked when this was asked.
        max: u32,
    },
    /// Journal a step.
    Record(Step),
    /// Copy a message to the dead-letter topic, then answer with `DeadLettered` or
    /// `DeadLetterFailed`.
    DeadLetter {
        /// Which message.
        offset: Offset,
        /// Deliveries made.
        attempt: u32,
        /// Why the last one failed, if anybody said so.
        reason: Option<String>,
    },
    /// Something to count.
    Note(Note),
}

/// Something worth counting or logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// A client refused this message.
    Nack(Offset),
    /// Nobody settled this message within the policy's `ack_timeout_ms`.
    AckTimeout(Offset),
    /// The consumer of this message went away without settling it.
    ConsumerGone(Offset),
    /// A connection took this message for the second time or later.
    Redelivery(Offset),
    /// This message has no re-delivery left.
    RetryExhausted(Offset),
    /// This message was dead-lettered and is finished.
    DeadLetter(Offset),
    /// The dead-letter copy of this message failed and will be tried again.
    DeadLetterFailed(Offset),
    /// This message blocks: the subscription, or in KeyShared its key, waits for somebody.
    Blocked(Offset),
    /// The policy dropped this message.
    Dropped(Offset),
    /// No attached consumer wants this message's key; it was skipped.
    Unmatched(Offset),
    /// Offsets that the log does not have were skipped.
    Gap {
        /// First skipped offset.
        first: Offset,
        /// One past the last skipped offset.
        end: Offset,
    },
}
