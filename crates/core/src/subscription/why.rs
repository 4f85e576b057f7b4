//! Why a subscription does not move, and its figures.
//!
//! Law: while there is a backlog, after every step there is a reason; [`Why::Stalled`] is never
//! seen. The property tests hold the engine to this.

use super::Subscription;
use super::slot::{Slot, State};
use crate::ids::{ConsumerId, Offset, Tick};
use crate::policy::SubscriptionType;
use std::fmt;
use std::sync::Arc;

/// The first reason why a subscription does not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Everything is finished.
    Drained,
    /// No consumer has an open stream.
    NoConsumer,
    /// Messages are ready; the streams of the consumers that they would go to have no room.
    ConsumersFull,
    /// Messages are ready; `max` others are out unsettled, and more are not allowed.
    WindowFull {
        /// `max_unacked_messages`.
        max: u32,
    },
    /// Messages are ready; no more may go in this second.
    RateLimited {
        /// When the next one may go, in milliseconds from now.
        in_ms: u64,
    },
    /// KeyShared: a poisoned message holds its key.
    KeyBlocked {
        /// The key.
        key: Arc<str>,
        /// The message.
        offset: Offset,
        /// How long it has been blocking, in milliseconds.
        for_ms: u64,
        /// Deliveries made.
        attempts: u32,
        /// Why the last one failed.
        reason: String,
    },
    /// A poisoned message holds everything behind it.
    Blocked {
        /// The message.
        offset: Offset,
        /// How long it has been blocking, in milliseconds.
        for_ms: u64,
        /// Deliveries made.
        attempts: u32,
        /// Why the last one failed.
        reason: String,
    },
    /// The dead-letter copy cannot be written.
    DeadLetterFailing {
        /// The message.
        offset: Offset,
        /// Failed tries.
        tries: u32,
        /// When the next try is due, in milliseconds from now; `None` while one is under way.
        in_ms: Option<u64>,
        /// What the last try said.
        error: String,
    },
    /// The dead-letter copy is being written.
    DeadLettering {
        /// The message.
        offset: Offset,
    },
    /// The first unfinished message waits for its re-delivery.
    AwaitingRetry {
        /// The message.
        offset: Offset,
        /// When it is due, in milliseconds from now.
        in_ms: u64,
    },
    /// The first unfinished message is in a stream's queue; the connection does not take it.
    AwaitingDrain {
        /// The message.
        offset: Offset,
        /// Whose stream.
        consumer: ConsumerId,
    },
    /// The first unfinished message is with a client.
    AwaitingAck {
        /// The message.
        offset: Offset,
        /// Whose client.
        consumer: ConsumerId,
        /// When it comes back if nobody settles it, in milliseconds from now.
        in_ms: u64,
    },
    /// KeyShared: only consumers without a stream want the first unfinished message's key.
    NoConsumerForKey {
        /// The key.
        key: Arc<str>,
        /// The message.
        offset: Offset,
    },
    /// The log cannot be read.
    ReadFailing {
        /// When the next try is due, in milliseconds from now.
        in_ms: u64,
    },
    /// The log is being read.
    Fetching,
    /// The driver owes an answer of the log or a deadline: a defect of the broker.
    Overdue {
        /// What it owes.
        owed: Owed,
        /// Since when, in milliseconds.
        for_ms: u64,
    },
    /// Nothing holds it: a defect of the broker, see [`Subscription::stall`].
    Stalled,
}

impl Why {
    /// The reason as a word for programs, which stays when the sentence is put better.
    pub fn code(&self) -> &'static str {
        match self {
            Why::Drained => "drained",
            Why::NoConsumer => "no_consumer",
            Why::ConsumersFull => "consumers_full",
            Why::WindowFull { .. } => "window_full",
            Why::RateLimited { .. } => "rate_limited",
            Why::KeyBlocked { .. } => "key_blocked",
            Why::Blocked { .. } => "blocked",
            Why::DeadLetterFailing { .. } => "dead_letter_failing",
            Why::DeadLettering { .. } => "dead_lettering",
            Why::AwaitingRetry { .. } => "awaiting_retry",
            Why::AwaitingDrain { .. } => "awaiting_drain",
            Why::AwaitingAck { .. } => "awaiting_ack",
            Why::NoConsumerForKey { .. } => "no_consumer_for_key",
            Why::ReadFailing { .. } => "read_failing",
            Why::Fetching => "fetching",
            Why::Overdue { .. } | Why::Stalled => "stalled",
        }
    }
}

/// What the driver may owe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed {
    /// The answer to a read of the log.
    Read {
        /// Where the read began.
        from: Offset,
    },
    /// The event that a deadline has passed.
    Deadline,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Drained => f.write_str("drained: every message is finished"),
            Why::NoConsumer => f.write_str("no consumer has an open stream"),
            Why::ConsumersFull => {
                f.write_str("consumers have no room: they do not read fast enough")
            }
            Why::WindowFull { max } => {
                write!(f, "window full: {max} messages are out unacknowledged")
            }
            Why::RateLimited { in_ms } => {
                write!(
                    f,
                    "max_subscription_dispatch_rate is reached: the next message goes in {}",
                    Span(*in_ms)
                )
            }
            Why::KeyBlocked { key, offset, for_ms, attempts, reason } => write!(
                f,
                "key `{}` is blocked by offset {offset} for {} at attempt {attempts}{}",
                key.escape_debug(),
                Span(*for_ms),
                Because(reason)
            ),
            Why::Blocked { offset, for_ms, attempts, reason } => write!(
                f,
                "blocked by offset {offset} for {} at attempt {attempts}{}",
                Span(*for_ms),
                Because(reason)
            ),
            Why::DeadLetterFailing { offset, tries, in_ms, error } => {
                write!(f, "dead-letter copy of offset {offset} failed at try {tries}")?;
                if let Some(in_ms) = in_ms {
                    write!(f, ", next try in {}", Span(*in_ms))?;
                }
                write!(f, "{}", Because(error))
            }
            Why::DeadLettering { offset } => {
                write!(f, "dead-letter copy of offset {offset} is being written")
            }
            Why::AwaitingRetry { offset, in_ms } => {
                write!(f, "offset {offset} waits for its re-delivery in {}", Span(*in_ms))
            }
            Why::AwaitingDrain { offset, consumer } => write!(
                f,
                "offset {offset} is queued for consumer `{consumer}`, whose connection takes nothing"
            ),
            Why::AwaitingAck { offset, consumer, in_ms } => write!(
                f,
                "offset {offset} is with consumer `{consumer}`, not acknowledged; \
                 it comes back in {}",
                Span(*in_ms)
            ),
            Why::NoConsumerForKey { key, offset } => write!(
                f,
                "offset {offset} has key `{}`, which only consumers without a stream want",
                key.escape_debug()
            ),
            Why::ReadFailing { in_ms } => {
                write!(f, "the log cannot be read, next try in {}", Span(*in_ms))
            }
            Why::Fetching => f.write_str("reading the log"),
            Why::Overdue { owed, for_ms } => {
                f.write_str("stalled: ")?;
                match owed {
                    Owed::Read { from } => write!(f, "the read of the log from offset {from}")?,
                    Owed::Deadline => f.write_str("a timer")?,
                }
                let span = Span(*for_ms);
                write!(f, " is overdue for {span}, which is a defect of the broker")
            }
            Why::Stalled => {
                f.write_str("stalled: nothing holds it, which is a defect of the broker")
            }
        }
    }
}

/// Milliseconds as seconds.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} s", self.0 / 1_000, self.0 % 1_000 / 100)
    }
}

/// `: reason`, or nothing.
struct Because<'a>(&'a str);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// Figures of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Messages that are not finished.
    pub backlog: u64,
    /// Fetched messages that may go, or wait for their key.
    pub ready: u64,
    /// In streams' queues.
    pub queued: u64,
    /// With clients.
    pub in_flight: u64,
    /// Waiting for their re-delivery.
    pub waiting_redelivery: u64,
    /// Blocking, whether or not they were read since a restart.
    pub blocked: u64,
    /// Being copied to the dead-letter topic.
    pub dead_lettering: u64,
    /// Consumers with an open stream.
    pub consumers: u64,
    /// Consumers that have just subscribed and may open a stream.
    pub expected: u64,
    /// Attached consumers, also those without a stream.
    pub attached: u64,
}

impl Subscription {
    /// Figures; costs as much as there are failures, holes and consumers.
    pub fn stats(&self, now: Tick) -> Stats {
        let counts = self.slots.counts();
        let consumers = self.streams.len();
        Stats {
            backlog: self.progress.backlog(self.tail),
            ready: counts.ready.into(),
            queued: counts.queued.into(),
            in_flight: counts.in_flight.into(),
            waiting_redelivery: counts.waiting.into(),
            blocked: count(self.progress.failures().filter(|(_, a)| a.blocked).count()),
            dead_lettering: counts.dead_lettering.into(),
            consumers: count(consumers),
            expected: count(self.members.live(now).saturating_sub(consumers)),
            attached: count(self.members.len()),
        }
    }

    /// How many messages `consumer` holds, in its stream's queue and in its hands.
    pub fn held_by(&self, consumer: ConsumerId) -> u64 {
        self.streams.of(consumer).map_or(0, |stream| stream.held())
    }

    /// The first reason why it does not move.
    pub fn why(&self, now: Tick) -> Why {
        if self.progress.backlog(self.tail) == 0 {
            return Why::Drained;
        }
        if !self.members.any_open() {
            return Why::NoConsumer;
        }
        if let Some(until) = self.paused_until {
            return Why::RateLimited { in_ms: span(now, until) };
        }
        let counts = self.slots.counts();
        let has_sendable = self.gate.has_sendable(&self.slots);
        let max = self.config.window_max.max(1);
        if has_sendable && counts.window_used() < max && !self.bodies.are_coming() {
            return match self.gate.has_taker(&self.slots, &self.members, &self.streams) {
                true => Why::Stalled,
                false => self.bodies.retry().map_or(Why::ConsumersFull, |retry| Why::ReadFailing {
                    in_ms: span(now, retry),
                }),
            };
        }
        // A window full of what nobody can settle has a better explanation, below.
        if has_sendable && counts.queued + counts.in_flight > 0 && counts.window_used() >= max {
            return Why::WindowFull { max };
        }
        self.why_not_first(now, has_sendable)
    }

    fn why_not_first(&self, now: Tick, has_sendable: bool) -> Why {
        let counts = self.slots.counts();
        let first = |wanted: &dyn Fn(&Slot) -> bool| {
            self.slots.iter().map(|(_, slot)| slot).find(|slot| wanted(slot))
        };
        let is_blocked = |slot: &Slot| matches!(slot.state(), State::Blocked { .. });
        let is_failing = |slot: &Slot| {
            matches!(slot.state(), State::DeadLettering { .. })
                && self.failed_copies.contains_key(&slot.offset)
        };
        let blocked = if counts.blocked > 0 { first(&is_blocked) } else { None };
        let failing = if self.failed_copies.is_empty() { None } else { first(&is_failing) };
        let holding = || {
            // A ready message that waits for others of its key, or to be read, holds nothing up.
            let is_idle = |id, slot: &Slot| {
                has_sendable || slot.is_wanted || self.gate.is_behind(&self.slots, id)
            };
            let mut held = self.slots.iter();
            held.find(|(id, slot)| !slot.is_ready() || !is_idle(*id, slot)).map(|(_, slot)| slot)
        };
        if let Some(slot) = blocked.or(failing).or_else(holding) {
            return self.why_not(now, slot);
        }
        match [self.reader.retry(), self.bodies.retry()].into_iter().flatten().min() {
            Some(retry) => Why::ReadFailing { in_ms: span(now, retry) },
            None if self.reader.is_fetching() || self.bodies.are_coming() => Why::Fetching,
            None => Why::Stalled,
        }
    }

    fn why_not(&self, now: Tick, slot: &Slot) -> Why {
        let offset = slot.offset;
        let consumer = |stream| self.streams.get(stream).map_or(ConsumerId(0), |s| s.consumer);
        match slot.state() {
            State::Ready if self.config.kind == SubscriptionType::KeyShared => {
                Why::NoConsumerForKey { key: self.gate.key(slot.key), offset }
            }
            State::Ready => Why::Stalled,
            State::Queued { stream, .. } => {
                Why::AwaitingDrain { offset, consumer: consumer(stream) }
            }
            State::InFlight { stream, until } => {
                let in_ms = span(now, until);
                Why::AwaitingAck { offset, consumer: consumer(stream), in_ms }
            }
            State::Waiting { until } => Why::AwaitingRetry { offset, in_ms: span(now, until) },
            State::Blocked { since } => {
                let (for_ms, attempts) = (span(since, now), slot.attempts);
                let reason = self.progress.attempts(offset).map(|a| a.reason.clone());
                let reason = reason.unwrap_or_default();
                if self.config.kind == SubscriptionType::KeyShared {
                    let key = self.gate.key(slot.key);
                    Why::KeyBlocked { key, offset, for_ms, attempts, reason }
                } else {
                    Why::Blocked { offset, for_ms, attempts, reason }
                }
            }
            State::DeadLettering { retry } => match self.failed_copies.get(&offset) {
                None => Why::DeadLettering { offset },
                Some(failed) => Why::DeadLetterFailing {
                    offset,
                    tries: failed.tries,
                    in_ms: retry.map(|retry| span(now, retry)),
                    error: failed.error.clone(),
                },
            },
        }
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Milliseconds from one moment to another; 0 if it has passed.
fn span(from: Tick, to: Tick) -> u64 {
    to.0.saturating_sub(from.0)
}
