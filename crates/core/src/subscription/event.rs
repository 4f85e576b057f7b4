//! What a subscription is told: the inputs of [`Subscription::step`](super::Subscription::step).
//!
//! Events come from the log, from streams and from clients, in any order and with any numbers in
//! them. What they mean is decided in the `on_*` files.
//!
//! Law: no event makes the engine panic; one that does not fit the state changes nothing.

use crate::ids::{ConsumerId, Offset};
use crate::policy::FailurePolicy;
use std::sync::Arc;

/// Something happened that may move the subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The log's visible end moved.
    Tail {
        /// One past the last message.
        next: Offset,
    },
    /// The answer to [`Effect::Fetch`](super::Effect::Fetch).
    Fetched {
        /// The messages, in offset order. An offset from where the fetch began up to `next` that
        /// is not here is not in the log: it is skipped, recorded and noted as a gap.
        items: Vec<Item>,
        /// Where reading goes on.
        next: Offset,
    },
    /// The log could not be read; the engine asks again after a second.
    FetchFailed,
    /// The answer to [`Effect::Refetch`](super::Effect::Refetch).
    Refetched {
        /// Where the read began.
        from: Offset,
        /// The messages, in offset order. An offset from `from` up to `next` that is not here is
        /// not in the log any more: it is skipped, recorded and noted as a gap.
        items: Vec<Item>,
        /// One past the last offset that was read; what was wanted from there on is asked again.
        next: Offset,
    },
    /// A message could not be read again; the engine asks again after a second.
    RefetchFailed {
        /// Where the read began.
        from: Offset,
    },
    /// A consumer subscribed. The same one again refreshes its filters.
    Attached {
        /// Who.
        consumer: ConsumerId,
        /// Patterns of the keys it wants (KeyShared only); none means everything.
        key_filters: Vec<String>,
    },
    /// A consumer's stream is open. It replaces an earlier stream of this consumer, whose
    /// `Drained` and `Closed` must not be sent any more.
    Opened {
        /// Whose.
        consumer: ConsumerId,
        /// Messages that its queue takes.
        room: u32,
    },
    /// The client of a consumer whose stream is open takes messages ahead of its application and
    /// cannot say which of them the application has: what it took is an attempt, and its time
    /// runs, only when the application can have seen it.
    ReadsAhead {
        /// Whose.
        consumer: ConsumerId,
    },
    /// The connection took messages out of the stream's queue, in delivery order.
    Drained {
        /// Whose stream.
        consumer: ConsumerId,
        /// How many.
        count: u32,
    },
    /// A consumer's stream ended.
    Closed {
        /// Whose.
        consumer: ConsumerId,
        /// Whether it said goodbye: then what it held was not an attempt.
        clean: bool,
    },
    /// A consumer is gone for good, with its stream and its key filters.
    Detached {
        /// Who.
        consumer: ConsumerId,
    },
    /// A client finished with a message.
    Acked {
        /// Which.
        offset: Offset,
        /// For which delivery, where the wire can say so.
        attempt: Option<AttemptId>,
    },
    /// A client failed on a message.
    Nacked {
        /// Which.
        offset: Offset,
        /// For which delivery, where the wire can say so.
        attempt: Option<AttemptId>,
        /// Shortest delay before it comes again, in milliseconds.
        delay_ms: Option<u64>,
        /// The client's own words.
        reason: Option<String>,
    },
    /// A client needs more time for a message that it has, or shows that it is alive.
    Extended {
        /// Which.
        offset: Offset,
        /// For which delivery, where the wire can say so.
        attempt: Option<AttemptId>,
        /// How long from now on it may hold it, in milliseconds; bounded by
        /// [`Config`](super::Config). 0 gives it back at once, and the delivery does not count.
        by_ms: u64,
    },
    /// The dead-letter copy is as durable as its topic promises.
    DeadLettered {
        /// Of which message.
        offset: Offset,
    },
    /// The dead-letter copy could not be written.
    DeadLetterFailed {
        /// Of which message.
        offset: Offset,
        /// Why, for people.
        reason: String,
    },
    /// The failure policy is another one now.
    PolicyChanged(FailurePolicy),
    /// `max_unacked_messages` is another one now; 0 counts as 1. The look-ahead grows with it.
    WindowChanged(u32),
    /// `max_subscription_dispatch_rate` is another one now; 0 is no limit.
    RateChanged(u32),
    /// Somebody put the cursor by hand.
    Seek {
        /// The first message to deliver.
        to: Offset,
    },
    /// The moment of [`next_deadline`](super::Subscription::next_deadline) has come.
    Deadline,
}

/// What the engine needs to know of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Where it is in the log.
    pub offset: Offset,
    /// Its routing key, else its producer's name.
    pub key: Arc<str>,
    /// Bytes of its body.
    pub len: u32,
}

/// Which delivery of a message somebody speaks of. Only the native wire can say.
///
/// The number alone would not do: a delivery that was given back uncounted has the number of the
/// next one, and a seek starts the numbers anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptId {
    /// The attempt's number, as delivered.
    pub number: u32,
    /// Who speaks.
    pub consumer: ConsumerId,
    /// [`Subscription::epoch`](super::Subscription::epoch) at the time of the delivery.
    pub epoch: u32,
}

/// What became of an event. Only acks, nacks and extensions have more than one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It took effect.
    Taken,
    /// There was nothing to do: an ack or nack without an attempt, for a message that is settled,
    /// unknown or not out. The compatible wire says OK to it.
    Unchanged,
    /// The speaker holds this delivery no more, and nothing changed: lost is lost.
    Stale,
    /// The speaker holds the message for so long from now on.
    Extended {
        /// What was granted, in milliseconds; less than asked when a bound was reached.
        for_ms: u64,
    },
}
