//! What a topic's actor can be asked: a closed list.
//!
//! Law: a message is small, for a mailbox has room for some before any is sent, and there are
//! thousands of mailboxes; what is large is boxed.

use super::claim::{Claim, Outcome};
use super::describe::TopicDescription;
use super::stream::{QueueReader, Wire};
use bytes::Bytes;
use danube_core::catalog;
use danube_core::name::{ConsumerName, ProducerName};
use danube_core::sequence::{Opened, SequenceRefusal};
use danube_core::{
    ConsumerId, FailurePolicy, Fault, FaultKind, Offset, ProducerId, SubscriptionName,
    SubscriptionType,
};
use danube_store::{Appended, RecordBatch};
use danube_wire::delivery::Envelope;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Fault>>;

/// How many producers a topic admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// Any number.
    Shared,
    /// This one alone.
    Exclusive,
}

/// One publish on its way to the log.
pub(crate) struct Publish {
    pub(crate) producer: ProducerId,
    pub(crate) producer_name: ProducerName,
    /// The record as the log keeps it.
    pub(crate) record: Bytes,
    /// When it arrived, on the broker's clock.
    pub(crate) arrived: Duration,
    /// The memory it holds until it is answered.
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) reply: Reply<Offset>,
}

/// A numbered batch on its way to the log.
pub(crate) struct PublishBatch {
    pub(crate) producer: ProducerId,
    pub(crate) producer_name: ProducerName,
    /// Its records, which say who numbered them.
    pub(crate) batch: RecordBatch,
    /// When it arrived, on the broker's clock.
    pub(crate) arrived: Duration,
    /// The memory it holds until it is answered.
    pub(crate) permit: OwnedSemaphorePermit,
    /// Called once with what became of it, from whatever thread knows.
    pub(crate) done: Box<dyn FnOnce(Result<Appended, BatchFault>) + Send>,
}

/// Why a numbered batch was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchFault {
    /// It is not the one that comes next.
    Sequence(SequenceRefusal),
    /// The topic is not served by this actor any more.
    Moved(String),
    /// Anything else.
    Fault(Fault),
}

impl BatchFault {
    /// What its producer should do.
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            BatchFault::Sequence(_) => FaultKind::Precondition,
            BatchFault::Moved(_) => FaultKind::Retry,
            BatchFault::Fault(fault) => fault.kind,
        }
    }
}

/// A producer that numbers its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenedProducer {
    pub(crate) id: ProducerId,
    pub(crate) opened: Opened,
}

/// A consumer's queue, just opened.
pub(crate) struct OpenedStream {
    pub(crate) reader: QueueReader,
    /// For deliveries on the compatible wire.
    pub(crate) envelope: Arc<Envelope>,
    /// Where the subscription stands.
    pub(crate) cursor: Offset,
}

/// A wish to consume.
#[derive(Debug, Clone)]
pub(crate) struct Subscribe {
    pub(crate) subscription: SubscriptionName,
    pub(crate) kind: SubscriptionType,
    pub(crate) consumer: ConsumerName,
    pub(crate) key_filters: Vec<String>,
}

/// Why an actor stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The topic was deleted.
    Deleted,
    /// An administrator unloads it; the next request loads it again.
    Unloaded,
    /// The broker stops.
    Shutdown,
}

/// What was attached to a topic when it stopped.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    pub(crate) consumers: Vec<ConsumerId>,
    pub(crate) producers: Vec<ProducerId>,
}

/// What a topic's actor can be asked.
pub(crate) enum Message {
    CreateProducer {
        name: ProducerName,
        mode: AccessMode,
        reply: Reply<ProducerId>,
    },
    Publish(Box<Publish>),
    /// Attach a producer that numbers its messages, and fence its earlier streams.
    OpenProducer {
        name: ProducerName,
        mode: AccessMode,
        reply: Reply<OpenedProducer>,
    },
    PublishBatch(Box<PublishBatch>),
    /// May this consumer attach, and where would a new subscription start?
    Admit {
        wish: Box<Subscribe>,
        reply: Reply<Offset>,
    },
    /// Attach it, now that the catalog knows `record`.
    Attach {
        wish: Box<Subscribe>,
        record: Box<catalog::Subscription>,
        reply: Reply<ConsumerId>,
    },
    /// Open the stream of an attached consumer.
    Open {
        consumer: ConsumerId,
        wire: Wire,
        reply: Reply<OpenedStream>,
    },
    /// A client says what has become of messages; the reply comes when that is journaled.
    Settle {
        subscription: SubscriptionName,
        claims: Vec<Claim>,
        reply: Reply<Vec<Outcome>>,
    },
    /// Does the topic know this consumer? Refused with `NotFound` if not.
    ConsumerHealth {
        consumer: ConsumerId,
        reply: Reply<()>,
    },
    /// Does the topic know this producer? Refused with `NotFound` if not.
    ProducerHealth {
        producer: ProducerId,
        reply: Reply<()>,
    },
    /// The catalog has a new failure policy for this subscription.
    PolicyChanged {
        subscription: SubscriptionName,
        policy: Box<FailurePolicy>,
    },
    /// The catalog has another window for this subscription.
    WindowChanged {
        subscription: SubscriptionName,
        max_unacked_messages: u32,
    },
    /// The topic's settings are others now.
    SettingsChanged,
    /// The catalog has a subscription that nobody has attached to yet.
    SubscriptionCreated {
        name: SubscriptionName,
        record: Box<catalog::Subscription>,
    },
    /// Put the cursor. `before` hears where it was; the reply comes when that is journaled.
    Seek {
        subscription: SubscriptionName,
        to: Offset,
        before: oneshot::Sender<Offset>,
        reply: Reply<()>,
    },
    /// The catalog no longer has this subscription.
    Unsubscribed {
        subscription: SubscriptionName,
    },
    /// Somebody else has appended to the topic's log; the turn itself looks.
    LogGrew,
    Describe {
        reply: Reply<TopicDescription>,
    },
    Stop {
        reason: StopReason,
        reply: oneshot::Sender<Stopped>,
    },
}

// Room for 32 messages is made with each mailbox.
const _: () = assert!(size_of::<Message>() <= 64);
