//! One consumer's queue between its topic's actor and its connection.
//!
//! The actor pushes deliveries; the connection takes them when HTTP/2 flow control lets it. What
//! has not been taken has not been delivered: no timer runs for it, and it burns no attempt. So
//! the connection's end tells the actor how many it took ([`Signals`]), and when it went away.
//!
//! Law: nothing here waits. The queue's bound is kept by who pushes: the subscription engine never
//! hands out more than the stream's [`StreamOptions`] say, and the fan-out drops the oldest.

use danube_core::{ConsumerId, Fault, SubscriptionId};
use danube_wire::delivery::Delivery;
use danube_wire::status::to_status;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tonic::Status;

/// Deliveries of a reliable subscription that may wait in one consumer's queue.
pub(super) const QUEUE_LEN_MAX: u32 = 32;
/// Deliveries of a `NonReliable` topic that may wait in one consumer's queue.
pub(super) const FANOUT_LEN_MAX: usize = 1024;
/// Bytes of a `NonReliable` topic that may wait in one consumer's queue.
pub(super) const FANOUT_BYTES_MAX: usize = 8 << 20;

/// Which stream of which consumer; a stream that was replaced has an older generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKey {
    pub(super) subscription: SubscriptionId,
    pub(super) consumer: ConsumerId,
    pub(super) generation: u64,
}

/// What a stream is like, by the wire that it is for. Only reliable subscriptions ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    /// Deliveries that may wait in its queue.
    pub(crate) room: u32,
    /// Whether its client takes messages ahead of its application and cannot say which of them
    /// the application has.
    pub(crate) reads_ahead: bool,
}

impl StreamOptions {
    /// For the official clients, which have a buffer of their own, and acks that name no delivery.
    pub(crate) const COMPATIBLE: StreamOptions =
        StreamOptions { room: QUEUE_LEN_MAX, reads_ahead: true };
}

/// What the streams of one topic tell its actor. Each list holds a stream at most once, so both
/// are bounded by the number of streams.
#[derive(Debug, Default)]
pub(super) struct Signals {
    wake: Notify,
    drained: Mutex<Vec<StreamKey>>,
    closed: Mutex<Vec<StreamKey>>,
}

impl Signals {
    /// Wakes the actor; many wake-ups before it runs are one.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Resolves at the next wake-up, or at once if there was one since the last call.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn take_drained(&self) -> Vec<StreamKey> {
        std::mem::take(&mut self.drained.lock())
    }

    pub(super) fn take_closed(&self) -> Vec<StreamKey> {
        std::mem::take(&mut self.closed.lock())
    }
}

struct Shared {
    key: StreamKey,
    signals: Arc<Signals>,
    queue: Mutex<Queue>,
    /// Taken by the connection and not yet seen by the actor.
    drained: AtomicU32,
    /// The client said goodbye: what it holds goes back uncounted.
    is_clean: AtomicBool,
}

impl Shared {
    /// Tells the actor that so many entries left the queue.
    fn count_drained(&self, count: u32) {
        if count > 0 && self.drained.fetch_add(count, Ordering::AcqRel) == 0 {
            self.signals.drained.lock().push(self.key);
            self.signals.wake();
        }
    }
}

#[derive(Default)]
struct Queue {
    /// With the engine's tickets; what is void has no delivery any more, but keeps its place.
    items: VecDeque<(u64, Option<Delivery>)>,
    bytes: usize,
    waker: Option<Waker>,
    end: End,
}

impl Queue {
    /// Takes void entries off the front; answers how many.
    fn skip_void(&mut self) -> u32 {
        let mut skipped = 0;
        while matches!(self.items.front(), Some((_, None))) {
            self.items.pop_front();
            skipped += 1;
        }
        skipped
    }
}

#[derive(Default)]
enum End {
    #[default]
    Open,
    /// To be told to the client once the queue is empty.
    Pending(Fault),
    Told,
}

/// The actor's end of a consumer's queue.
pub(super) struct ConsumerQueue {
    shared: Arc<Shared>,
}

/// The connection's end of a consumer's queue: a stream of deliveries that ends with a status.
pub struct ConsumerStream {
    shared: Arc<Shared>,
}

impl ConsumerQueue {
    pub(super) fn new(key: StreamKey, signals: Arc<Signals>) -> ConsumerQueue {
        let queue = Mutex::new(Queue::default());
        ConsumerQueue {
            shared: Arc::new(Shared {
                key,
                signals,
                queue,
                drained: AtomicU32::new(0),
                is_clean: AtomicBool::new(false),
            }),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.shared.key.generation
    }

    /// The connection's end. Handed out once: dropping it tells the actor that the stream closed.
    pub(super) fn stream(&self) -> ConsumerStream {
        ConsumerStream { shared: Arc::clone(&self.shared) }
    }

    pub(super) fn push(&self, ticket: u64, delivery: Delivery) {
        let mut queue = self.shared.queue.lock();
        queue.bytes += delivery.encoded_len();
        queue.items.push_back((ticket, Some(delivery)));
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A delivery is void: if the connection has not taken it, it never does.
    pub(super) fn void(&self, ticket: u64) {
        let mut queue = self.shared.queue.lock();
        if let Some(entry) = queue.items.iter_mut().find(|entry| entry.0 == ticket)
            && let Some(void) = entry.1.take()
        {
            queue.bytes -= void.encoded_len();
        }
        let skipped = queue.skip_void();
        drop(queue);
        self.shared.count_drained(skipped);
    }

    /// Whether one more delivery of `len` bytes fits the bounds of the fan-out.
    pub(super) fn has_fanout_room(&self, len: usize) -> bool {
        let queue = self.shared.queue.lock();
        queue.items.len() < FANOUT_LEN_MAX && queue.bytes + len <= FANOUT_BYTES_MAX
    }

    /// Drops the oldest deliveries until one more of `len` bytes fits; answers how many.
    pub(super) fn make_fanout_room(&self, len: usize) -> u64 {
        let mut queue = self.shared.queue.lock();
        let mut dropped = 0;
        while queue.items.len() >= FANOUT_LEN_MAX
            || (!queue.items.is_empty() && queue.bytes + len > FANOUT_BYTES_MAX)
        {
            if let Some((_, Some(oldest))) = queue.items.pop_front() {
                queue.bytes -= oldest.encoded_len();
                dropped += 1;
            }
        }
        dropped
    }

    /// Whether the client said goodbye before its stream ended.
    pub(super) fn is_clean(&self) -> bool {
        self.shared.is_clean.load(Ordering::Acquire)
    }

    /// How many deliveries the connection took since the last call.
    pub(super) fn take_drained(&self) -> u32 {
        self.shared.drained.swap(0, Ordering::AcqRel)
    }

    /// Ends the stream: what waits in the queue is given up, then the client is told `fault`.
    pub(super) fn end(&self, fault: Fault) {
        let mut queue = self.shared.queue.lock();
        queue.items.clear();
        queue.bytes = 0;
        queue.end = End::Pending(fault);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl ConsumerStream {
    /// Ends the stream for a client that says goodbye: what it holds and has not settled goes to
    /// others at once, and these deliveries do not count as attempts.
    #[cfg_attr(not(test), expect(dead_code, reason = "no wire has a goodbye yet"))]
    pub(crate) fn close(self) {
        self.shared.is_clean.store(true, Ordering::Release);
    }
}

impl futures::Stream for ConsumerStream {
    type Item = Result<Delivery, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let shared = &self.shared;
        let mut queue = shared.queue.lock();
        let mut skipped = queue.skip_void();
        if let Some((_, Some(delivery))) = queue.items.pop_front() {
            queue.bytes -= delivery.encoded_len();
            drop(queue);
            skipped += 1;
            shared.count_drained(skipped);
            return Poll::Ready(Some(Ok(delivery)));
        }
        shared.count_drained(skipped);
        match std::mem::replace(&mut queue.end, End::Told) {
            End::Open => {
                queue.end = End::Open;
                if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    queue.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            End::Pending(fault) => Poll::Ready(Some(Err(to_status(&fault)))),
            End::Told => Poll::Ready(None),
        }
    }
}

impl Drop for ConsumerStream {
    fn drop(&mut self) {
        self.shared.signals.closed.lock().push(self.shared.key);
        self.shared.signals.wake();
    }
}
