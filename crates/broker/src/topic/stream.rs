//! One consumer's queue between its topic's actor and its connection.
//!
//! The actor pushes deliveries; the connection takes them when HTTP/2 flow control lets it. What
//! has not been taken has not been delivered: no timer runs for it, and it burns no attempt. So
//! the connection's end tells the actor how many it took ([`Signals`]), and when it went away.
//!
//! Law: nothing here waits. The queue's bound is kept by who pushes: the subscription engine never
//! hands out more than [`Wire::queue_len_max`], and the fan-out drops the oldest.

use danube_core::{ConsumerId, Fault, SubscriptionId};
use danube_wire::delivery::{Delivery, Envelope};
use danube_wire::status::to_status;
use danube_wire::stream::Delivered;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tonic::Status;

/// What kind of client reads a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// An official client: it has a buffer of its own, and its acks name no delivery.
    Compatible,
    /// A client of `danube.stream.v1`, which says how much it takes and which delivery it means.
    Native,
}

impl Wire {
    /// Deliveries of a reliable subscription that may wait in one consumer's queue.
    pub(super) fn queue_len_max(self) -> u32 {
        match self {
            Wire::Compatible => 32,
            Wire::Native => 1024,
        }
    }
}

/// On what terms a queue's deliveries go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// Which life of the subscription they belong to; raised by each seek.
    pub(crate) epoch: u32,
    /// How long a consumer may hold one, in milliseconds; 0 where nothing is acknowledged.
    pub(crate) lease_ms: u64,
}

/// Deliveries of a `NonReliable` topic that may wait in one consumer's queue.
pub(super) const FANOUT_LEN_MAX: usize = 16_384;
/// Bytes of a `NonReliable` topic that may wait in one consumer's queue.
pub(super) const FANOUT_BYTES_MAX: usize = 8 << 20;

/// Deliveries for which room is kept between steps.
const ASIDE_KEEP: usize = 32;

/// Why a stream is ended by the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Another stream of the same consumer is in its place: coming back would end that one.
    Replaced(Fault),
    /// The topic stops here; the consumer can come back.
    Stopped(Fault),
}

impl Ended {
    /// What the client is told in words.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Ended::Replaced(fault) | Ended::Stopped(fault) => fault,
        }
    }
}

/// Which stream of which consumer; a stream that was replaced has an older generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKey {
    pub(super) subscription: SubscriptionId,
    pub(super) consumer: ConsumerId,
    pub(super) generation: u64,
}

/// What the streams of one topic tell its actor. Each list holds a stream at most once, so both
/// are bounded by the number of streams.
#[derive(Debug, Default)]
pub(super) struct Signals {
    wake: Notify,
    /// Whether anybody wants to know that the log grew.
    listens: AtomicBool,
    drained: Mutex<Vec<StreamKey>>,
    closed: Mutex<Vec<StreamKey>>,
}

impl Signals {
    /// Wakes the actor; many wake-ups before it runs are one.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Says whether there is a subscription that is to hear of each new message.
    pub(super) fn listen(&self, listens: bool) {
        self.listens.store(listens, Ordering::SeqCst);
    }

    /// Wakes the actor because the log has more, if there is somebody to whom that matters.
    pub(super) fn log_grew(&self) {
        if self.listens.load(Ordering::SeqCst) {
            self.wake();
        }
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
    /// The client said goodbye.
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
    items: VecDeque<(u64, Option<Delivered>)>,
    bytes: usize,
    terms: Terms,
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
    Pending(Ended),
    Told,
}

/// The actor's end of a consumer's queue.
pub(super) struct ConsumerQueue {
    shared: Arc<Shared>,
    /// Deliveries that one step makes, to be added together.
    aside: Vec<(u64, Delivered)>,
}

/// The connection's end of a consumer's queue.
pub(crate) struct QueueReader {
    shared: Arc<Shared>,
}

/// A stream of deliveries for an official client; it ends with a status.
pub struct ConsumerStream {
    reader: QueueReader,
    envelope: Arc<Envelope>,
}

impl ConsumerStream {
    pub(crate) fn new(reader: QueueReader, envelope: Arc<Envelope>) -> ConsumerStream {
        ConsumerStream { reader, envelope }
    }
}

/// Bytes that a delivery counts for in a queue.
pub(super) fn queued_len(delivery: &Delivered) -> usize {
    delivery.record.bytes().len()
}

impl ConsumerQueue {
    pub(super) fn new(key: StreamKey, signals: Arc<Signals>) -> ConsumerQueue {
        let queue = Mutex::new(Queue::default());
        let drained = AtomicU32::new(0);
        let is_clean = AtomicBool::new(false);
        let shared = Arc::new(Shared { key, signals, queue, drained, is_clean });
        ConsumerQueue { shared, aside: Vec::new() }
    }

    pub(super) fn generation(&self) -> u64 {
        self.shared.key.generation
    }

    /// The connection's end. Handed out once: dropping it tells the actor that the stream closed.
    pub(super) fn reader(&self) -> QueueReader {
        QueueReader { shared: Arc::clone(&self.shared) }
    }

    /// Sets the terms of what is pushed from now on. What is in the queue must be void already,
    /// if they are not the same.
    pub(super) fn set_terms(&self, terms: Terms) {
        self.shared.queue.lock().terms = terms;
    }

    /// Whether the client said goodbye before it closed.
    pub(super) fn is_clean(&self) -> bool {
        self.shared.is_clean.load(Ordering::Acquire)
    }

    /// Puts a delivery with the engine's ticket aside; whether it is the first since the last
    /// [`push_filled`](Self::push_filled).
    pub(super) fn fill(&mut self, ticket: u64, delivery: Delivered) -> bool {
        self.aside.push((ticket, delivery));
        self.aside.len() == 1
    }

    /// Adds what was put aside; answers how many deliveries those are, and their bytes.
    pub(super) fn push_filled(&mut self) -> (usize, usize) {
        let mut queue = self.shared.queue.lock();
        let before = queue.bytes;
        let count = self.aside.len();
        for (ticket, delivery) in self.aside.drain(..) {
            queue.bytes += queued_len(&delivery);
            queue.items.push_back((ticket, Some(delivery)));
        }
        self.aside.shrink_to(ASIDE_KEEP);
        let bytes = queue.bytes - before;
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        (count, bytes)
    }

    /// A delivery is void: if the connection has not taken it, it never does.
    pub(super) fn void(&self, ticket: u64) {
        let mut queue = self.shared.queue.lock();
        if let Some(entry) = queue.items.iter_mut().find(|entry| entry.0 == ticket)
            && let Some(void) = entry.1.take()
        {
            queue.bytes -= queued_len(&void);
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

    /// Adds deliveries of the fan-out, and drops the oldest ones where there is no room; answers how
    /// many those were.
    pub(super) fn push_newest(&self, batch: &[Delivered]) -> u64 {
        let mut queue = self.shared.queue.lock();
        let mut dropped = 0;
        for delivery in batch {
            let len = queued_len(delivery);
            while queue.items.len() >= FANOUT_LEN_MAX
                || (!queue.items.is_empty() && queue.bytes + len > FANOUT_BYTES_MAX)
            {
                if let Some((_, Some(oldest))) = queue.items.pop_front() {
                    queue.bytes -= queued_len(&oldest);
                    dropped += 1;
                }
            }
            queue.bytes += len;
            queue.items.push_back((0, Some(delivery.clone())));
        }
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        dropped
    }

    /// How many deliveries the connection took since the last call.
    pub(super) fn take_drained(&self) -> u32 {
        self.shared.drained.swap(0, Ordering::AcqRel)
    }

    /// Ends the stream: what waits in the queue is given up, then the client is told why.
    pub(super) fn end(&self, ended: Ended) {
        let mut queue = self.shared.queue.lock();
        queue.items.clear();
        queue.bytes = 0;
        queue.end = End::Pending(ended);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl QueueReader {
    /// Hands deliveries to `take`, each with how many are behind it, until `fits` says no to the
    /// next one, on terms that hold for all of them. Ready with `None` when there is nothing more
    /// to come.
    pub(crate) fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        mut fits: impl FnMut(&Delivered) -> bool,
        mut take: impl FnMut(Delivered, usize),
    ) -> Poll<Option<Result<Terms, Ended>>> {
        let shared = &self.shared;
        let mut queue = shared.queue.lock();
        let mut drained = queue.skip_void();
        let mut took = false;
        while let Some((_, Some(next))) = queue.items.front()
            && fits(next)
            && let Some((_, Some(delivery))) = queue.items.pop_front()
        {
            queue.bytes -= queued_len(&delivery);
            drained += 1 + queue.skip_void();
            took = true;
            take(delivery, queue.items.len());
        }
        shared.count_drained(drained);
        if took {
            return Poll::Ready(Some(Ok(queue.terms)));
        }
        match std::mem::replace(&mut queue.end, End::Told) {
            End::Open => {
                queue.end = End::Open;
                if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    queue.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            End::Pending(ended) => Poll::Ready(Some(Err(ended))),
            End::Told => Poll::Ready(None),
        }
    }

    /// Says goodbye: what the consumer holds goes back and is not counted as an attempt.
    pub(crate) fn close(self) {
        self.shared.is_clean.store(true, Ordering::Release);
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        self.shared.signals.closed.lock().push(self.shared.key);
        self.shared.signals.wake();
    }
}

impl futures::Stream for ConsumerStream {
    type Item = Result<Delivery, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let (mut one, mut room) = (None, true);
        let fits = |_: &Delivered| std::mem::replace(&mut room, false);
        let taken = self.reader.poll_take(cx, fits, |delivery, _| one = Some(delivery));
        taken.map(|next| {
            let ended = next?.map_err(|ended| to_status(&ended.into_fault()));
            let Some(Delivered { offset, record, .. }) = one else {
                return ended.err().map(Err);
            };
            Some(Ok(Delivery::new(record, offset, Arc::clone(&self.envelope))))
        })
    }
}
