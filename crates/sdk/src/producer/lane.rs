//! One producer on one topic partition: its queue, and the session with a broker that it has.
//!
//! What is sent when is the queue's; how a session begins again is in `attach`.
//!
//! Law: locks are taken in the order lane, link, and nobody is woken under one.

mod attach;

use super::batch::Budget;
use super::link::Link;
use super::queue::{Limits, Next, Queue};
use super::receipt::{BatchState, Receipt, Receipts};
use crate::error::{Error, Trouble};
use crate::message::NewMessage;
use danube_wire::proto::stream::{
    CloseProducer, Delivery, OpenProducer, ProducerOpened, PublishAck, PublishRefusal,
    SchemaReference,
};
use danube_wire::stream::{Message, PublishRequest};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a producer wants to be.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) topic: Arc<str>,
    pub(super) name: String,
    pub(super) exclusive: bool,
    pub(super) delivery: Delivery,
    pub(super) schema: Option<SchemaReference>,
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Lane {
    spec: Spec,
    who: String,
    timeout: Duration,
    inner: Mutex<Inner>,
    /// Something was answered.
    room: Notify,
    /// The session changed, or the producer was let go.
    changed: Notify,
    /// There is an earlier deadline.
    sooner: Notify,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    session: Session,
    /// It is in its link's list of those that have something to send.
    is_marked: bool,
    /// The application let it go.
    is_released: bool,
    /// Tasks that wait for room.
    waiting: usize,
}

#[derive(Debug)]
enum Session {
    None,
    Opening { link: Arc<Link>, number: u32, is_sent: bool },
    Attached { link: Arc<Link>, number: u32, is_closing: bool },
    Ended(Trouble),
    Closed,
}

impl Inner {
    fn wants_to_send(&self, now: Instant) -> bool {
        match &self.session {
            Session::Opening { is_sent, .. } => !is_sent,
            Session::Attached { is_closing, .. } => {
                !is_closing
                    && (self.queue.may_send(now) || (self.is_released && self.queue.is_empty()))
            }
            _ => false,
        }
    }

    /// The link to be told, if it has to be.
    fn mark(&mut self, now: Instant) -> Option<Arc<Link>> {
        if self.is_marked || !self.wants_to_send(now) {
            return None;
        }
        self.is_marked = true;
        match &self.session {
            Session::Opening { link, .. } | Session::Attached { link, .. } => Some(link.clone()),
            _ => None,
        }
    }
}

impl Lane {
    pub(super) fn new(spec: Spec, limits: Limits) -> Arc<Lane> {
        let who = format!("producer `{}` on topic `{}`", spec.name, spec.topic);
        let timeout = limits.timeout;
        let queue = Queue::new(who.clone(), Arc::clone(&spec.topic), limits);
        let session = Session::None;
        let inner = Inner { queue, session, is_marked: false, is_released: false, waiting: 0 };
        Arc::new(Lane {
            spec,
            who,
            timeout,
            inner: Mutex::new(inner),
            room: Notify::new(),
            changed: Notify::new(),
            sooner: Notify::new(),
        })
    }

    /// Id and version of the schema that the broker named when the producer was attached last.
    pub(super) fn schema(&self) -> Option<(u64, u32)> {
        self.inner.lock().queue.schema()
    }

    /// The longest that anything takes.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Adds a message, as soon as there is room for it.
    ///
    /// # Errors
    /// The message is too large, the producer is over, or there was no room in time.
    pub(super) async fn put(self: &Arc<Lane>, message: &Message<'_>) -> Result<Receipt, Error> {
        if let Some(receipt) = self.try_put(message)? {
            return Ok(receipt);
        }
        self.inner.lock().waiting += 1;
        let put = tokio::time::timeout(self.timeout, self.put_when_there_is_room(message)).await;
        self.inner.lock().waiting -= 1;
        put.unwrap_or_else(|_| {
            let doing = format!("room for a message of {}", self.who);
            Err(Error::Timeout { doing, after: self.timeout })
        })
    }

    async fn put_when_there_is_room(
        self: &Arc<Lane>,
        message: &Message<'_>,
    ) -> Result<Receipt, Error> {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if let Some(receipt) = self.try_put(message)? {
                return Ok(receipt);
            }
            room.await;
        }
    }

    /// Adds messages one after the other, each as soon as there is room for it.
    ///
    /// # Errors
    /// As [`put`](Self::put); those before the one that is refused are added.
    pub(super) async fn put_all(
        self: &Arc<Lane>,
        mut messages: &[NewMessage],
        now_ms: u64,
        receipts: &mut Receipts,
    ) -> Result<(), Error> {
        while !messages.is_empty() {
            let before = receipts.len();
            self.with_queue(|queue, now| {
                for message in messages {
                    match queue.put(&message.on_wire_at(now_ms), &mut *now)? {
                        Some(receipt) => receipts.push(receipt),
                        None => break,
                    }
                }
                Ok(())
            })?;
            messages = &messages[receipts.len() - before..];
            if let [first, rest @ ..] = messages {
                receipts.push(self.put(&first.on_wire_at(now_ms)).await?);
                messages = rest;
            }
        }
        Ok(())
    }

    fn try_put(self: &Arc<Lane>, message: &Message<'_>) -> Result<Option<Receipt>, Error> {
        self.with_queue(|queue, now| queue.put(message, now))
    }

    /// Adds something to the queue, and wakes whoever has to know of it.
    fn with_queue<T>(
        self: &Arc<Lane>,
        add: impl FnOnce(&mut Queue, &mut dyn FnMut() -> Instant) -> T,
    ) -> T {
        let mut inner = self.inner.lock();
        let mut is_first = false;
        let added = add(&mut inner.queue, &mut || {
            is_first = true;
            Instant::now()
        });
        let link = match inner.is_marked {
            true => None,
            false => inner.mark(Instant::now()),
        };
        let lingers = inner.queue.lingers();
        drop(inner);
        if is_first && lingers {
            self.sooner.notify_one();
        }
        if let Some(link) = link {
            link.mark(self);
        }
        added
    }

    /// All batches that are not answered; what waits is sent without lingering.
    pub(super) fn flush(self: &Arc<Lane>) -> Vec<Arc<BatchState>> {
        let mut inner = self.inner.lock();
        let batches = inner.queue.flush();
        let link = inner.mark(Instant::now());
        drop(inner);
        if let Some(link) = link {
            link.mark(self);
        }
        batches
    }

    /// The application needs it no more: it is closed once everything is answered.
    pub(super) fn release(self: &Arc<Lane>) {
        let mut inner = self.inner.lock();
        inner.is_released = true;
        inner.queue.flush();
        let link = inner.mark(Instant::now());
        drop(inner);
        self.changed.notify_one();
        if let Some(link) = link {
            link.mark(self);
        }
    }

    /// Adds to `request` what it has to send over `link`. Returns whether there is more.
    pub(super) fn collect(
        &self,
        over: &Link,
        request: &mut PublishRequest,
        budget: &mut Budget,
    ) -> bool {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let now = Instant::now();
        match &mut inner.session {
            Session::Opening { link, number, is_sent } if std::ptr::eq(&**link, over) => {
                if !std::mem::replace(is_sent, true) {
                    request.open.push(self.spec.open(*number));
                }
                inner.is_marked = false;
            }
            Session::Attached { link, number, is_closing } if std::ptr::eq(&**link, over) => {
                inner.is_marked = inner.queue.take(*number, now, budget, &mut request.batches);
                if inner.is_released && inner.queue.is_empty() && !*is_closing {
                    *is_closing = true;
                    request.close.push(CloseProducer { producer: *number });
                }
            }
            // It has another link by now, and is marked there.
            _ => return false,
        }
        inner.is_marked
    }

    pub(super) fn opened(self: &Arc<Lane>, opened: &ProducerOpened, broker_url: &str) {
        self.step(|inner| {
            if let Session::Opening { link, number, .. } = &inner.session {
                let (link, number) = (link.clone(), *number);
                inner.session = Session::Attached { link, number, is_closing: false };
                inner.queue.attached(opened, broker_url);
            }
        });
        self.changed.notify_one();
    }

    pub(super) fn acked(self: &Arc<Lane>, ack: &PublishAck) {
        self.step(|inner| inner.queue.acked(ack));
    }

    /// Returns whether the producer's number on the link is free again.
    pub(super) fn refused(self: &Arc<Lane>, refusal: PublishRefusal) -> bool {
        let mut is_over = false;
        self.step(|inner| {
            let ended = match &inner.session {
                // The answer to an `OpenProducer`.
                Session::Opening { .. } => {
                    let ms = refusal.retry_after_ms;
                    let kind = refusal.refusal();
                    Some(Trouble::from_refusal(&self.who, kind, refusal.reason, ms))
                }
                _ => match inner.queue.refused(refusal, Instant::now()) {
                    Next::Go => None,
                    Next::Reopen(trouble) => Some(trouble),
                    Next::Over(error) => Some(Trouble::Final(error)),
                },
            };
            if let Some(trouble) = ended {
                is_over = true;
                inner.end(trouble);
            }
        });
        self.sooner.notify_one();
        if is_over {
            self.changed.notify_one();
        }
        is_over
    }

    /// The broker let the producer go, as was asked.
    pub(super) fn closed(self: &Arc<Lane>) {
        self.inner.lock().session = Session::Closed;
        self.changed.notify_one();
    }

    /// The stream is over.
    pub(super) fn detached(self: &Arc<Lane>, trouble: Trouble) {
        self.inner.lock().end(trouble);
        self.changed.notify_one();
    }

    /// Changes something, then tells whoever waits for what came of it.
    fn step(self: &Arc<Lane>, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        change(&mut inner);
        let resolutions = inner.queue.resolutions();
        let link = inner.mark(Instant::now());
        let is_awaited = inner.waiting > 0;
        drop(inner);
        resolutions.into_iter().for_each(|resolution| resolution.tell());
        if is_awaited {
            self.room.notify_waiters();
        }
        if let Some(link) = link {
            link.mark(self);
        }
    }

    /// Fails everything for good.
    fn over(self: &Arc<Lane>, error: Error) {
        self.step(|inner| inner.queue.fail(error));
    }
}

impl Inner {
    /// Ends the session, and says which number on which link it had.
    fn leave(&mut self, trouble: Trouble) -> Option<(Arc<Link>, u32)> {
        let left = match &self.session {
            Session::Opening { link, number, .. } | Session::Attached { link, number, .. } => {
                Some((link.clone(), *number))
            }
            _ => None,
        };
        self.end(trouble);
        left
    }

    fn end(&mut self, trouble: Trouble) {
        self.queue.detached();
        self.is_marked = false;
        self.session = Session::Ended(trouble);
    }
}

impl Spec {
    fn open(&self, producer: u32) -> OpenProducer {
        OpenProducer {
            producer,
            topic: self.topic.to_string(),
            producer_name: self.name.clone(),
            exclusive: self.exclusive,
            delivery: self.delivery.into(),
            schema: self.schema.clone(),
        }
    }
}
