//! A consumer on one topic partition: what it has to say to the broker; its streams are in `stream`.
//!
//! The sending half is pulled, as with publishing: whenever the connection takes more, [`Outbox`]
//! gathers all acks, nacks, extensions and credit that wait into one request. Only so many
//! requests with acks are unanswered at a time, so what comes meanwhile is gathered.
//!
//! Law: a delivery belongs to the stream that it came over; on another one it means nothing.

mod stream;

use super::inbox::Room;
use super::ranges::{Range, Ranges};
use super::settle::{Answer, Answering, Outcome, Ticket};
use danube_wire::proto::stream::{Credit, Extension, Nack, Subscribe};
use danube_wire::stream::ConsumeRequest;
use futures::Stream;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Requests with acks, nacks or extensions that may be unanswered at a time.
const UNANSWERED_MAX: usize = 2;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Partition {
    subscribe: Subscribe,
    topic: Arc<str>,
    who: String,
    credit: Credit,
    outgoing: Mutex<Outgoing>,
    closing: Notify,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// The stream there is; 0 for none. Each has a number of its own.
    session: u64,
    sessions: u64,
    is_subscribed: bool,
    room: Room,
    waiting: Request,
    unanswered: VecDeque<Unanswered>,
    last_id: u64,
    close: Close,
    waker: Option<Waker>,
}

/// What goes into the next request.
#[derive(Debug, Default)]
struct Request {
    acks: Ranges,
    nacks: Vec<Nack>,
    extensions: Vec<Extension>,
    answer: Option<Arc<Answer>>,
}

#[derive(Debug)]
struct Unanswered {
    id: u64,
    answer: Arc<Answer>,
    deadline: Instant,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Close {
    #[default]
    No,
    Wanted,
    Sent,
}

impl Partition {
    pub(super) fn new(subscribe: Subscribe) -> Arc<Partition> {
        let who = format!(
            "consumer `{}` of subscription `{}` on topic `{}`",
            subscribe.consumer_name, subscribe.subscription, subscribe.topic
        );
        Arc::new(Partition {
            topic: subscribe.topic.as_str().into(),
            who,
            credit: subscribe.credit.unwrap_or_default(),
            subscribe,
            outgoing: Mutex::default(),
            closing: Notify::new(),
        })
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether this much room should be told to the broker.
    pub(super) fn is_worth_telling(&self, room: Room) -> bool {
        room.messages >= self.credit.messages.div_ceil(4) || room.bytes >= self.credit.bytes / 4
    }

    /// The application made room on the stream of `session`.
    pub(super) fn give_back(&self, session: u64, room: Room) {
        let mut outgoing = self.outgoing.lock();
        if outgoing.session != session {
            return;
        }
        outgoing.room.messages += room.messages;
        outgoing.room.bytes += room.bytes;
        let waker = match self.is_worth_telling(outgoing.room) {
            true => outgoing.waker.take(),
            false => None,
        };
        drop(outgoing);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Adds to the next request, when the deliveries are of the stream there is.
    fn ask(
        &self,
        session: u64,
        deliveries: Ranges,
        add: impl FnOnce(&mut Request, &Ranges),
    ) -> Ticket {
        let mut outgoing = self.outgoing.lock();
        if outgoing.session != session || outgoing.close == Close::Sent {
            drop(outgoing);
            let known = Answering::Known(Err("the stream it came over has ended"));
            return Ticket::new(Arc::clone(&self.topic), deliveries, known);
        }
        add(&mut outgoing.waiting, &deliveries);
        let answer = Arc::clone(outgoing.waiting.answer.get_or_insert_default());
        let waker = match outgoing.unanswered.len() < UNANSWERED_MAX {
            true => outgoing.waker.take(),
            false => None,
        };
        drop(outgoing);
        waker.into_iter().for_each(Waker::wake);
        Ticket::new(Arc::clone(&self.topic), deliveries, Answering::Asked(answer))
    }

    pub(super) fn ack(&self, session: u64, deliveries: Ranges) -> Ticket {
        self.ask(session, deliveries, |request, deliveries| {
            deliveries.iter().for_each(|range| request.acks.push(*range));
        })
    }

    pub(super) fn nack(
        &self,
        session: u64,
        range: Range,
        delay: Duration,
        reason: String,
    ) -> Ticket {
        let nack = Nack { range: Some(range), delay_ms: millis(delay), reason };
        self.ask(session, Ranges::one(range), |request, _| request.nacks.push(nack))
    }

    pub(super) fn extend(&self, session: u64, range: Range, by: Duration) -> Ticket {
        let extension = Extension { range: Some(range), by_ms: millis(by) };
        self.ask(session, Ranges::one(range), |request, _| request.extensions.push(extension))
    }

    /// The application is done: what it holds goes back.
    pub(super) fn close(&self) {
        let mut outgoing = self.outgoing.lock();
        if outgoing.close == Close::No {
            outgoing.close = Close::Wanted;
        }
        let waker = outgoing.waker.take();
        drop(outgoing);
        self.closing.notify_one();
        waker.into_iter().for_each(Waker::wake);
    }

    fn is_closing(&self) -> bool {
        self.outgoing.lock().close != Close::No
    }

    pub(super) fn begin_session(&self) -> u64 {
        let mut outgoing = self.outgoing.lock();
        outgoing.sessions += 1;
        outgoing.session = outgoing.sessions;
        outgoing.is_subscribed = false;
        outgoing.room = Room::default();
        outgoing.session
    }

    fn end_session(&self) {
        let mut outgoing = self.outgoing.lock();
        outgoing.session = 0;
        let waiting = std::mem::take(&mut outgoing.waiting);
        let unanswered = std::mem::take(&mut outgoing.unanswered);
        let waker = outgoing.waker.take();
        drop(outgoing);
        let answers = unanswered.into_iter().map(|first| first.answer).chain(waiting.answer);
        let lost = Outcome::Lost("the stream it came over ended before the broker answered");
        answers.for_each(|answer| answer.tell(lost.clone()));
        waker.into_iter().for_each(Waker::wake);
    }

    /// What the stream of `session` has to send now.
    pub(super) fn next_request(
        &self,
        session: u64,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Poll<Option<ConsumeRequest>> {
        let mut outgoing = self.outgoing.lock();
        if outgoing.session != session || outgoing.close == Close::Sent {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut outgoing.is_subscribed, true) {
            let subscribe = Some(self.subscribe.clone());
            return Poll::Ready(Some(ConsumeRequest { subscribe, ..ConsumeRequest::default() }));
        }
        let mut request = ConsumeRequest::default();
        if self.is_worth_telling(outgoing.room) {
            let room = std::mem::take(&mut outgoing.room);
            request.credit = Some(Credit { messages: room.messages, bytes: room.bytes });
        }
        let closes = outgoing.close == Close::Wanted;
        let may_ask = outgoing.unanswered.len() < UNANSWERED_MAX || closes;
        if may_ask && let Some(answer) = outgoing.waiting.answer.take() {
            let Request { acks, nacks, extensions, .. } = std::mem::take(&mut outgoing.waiting);
            outgoing.last_id += 1;
            let (id, deadline) = (outgoing.last_id, Instant::now() + timeout);
            outgoing.unanswered.push_back(Unanswered { id, answer, deadline });
            (request.id, request.acks) = (id, acks.into_sorted());
            (request.nacks, request.extensions) = (nacks, extensions);
        }
        if closes {
            outgoing.close = Close::Sent;
            request.close = true;
        }
        if request == ConsumeRequest::default() {
            outgoing.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Some(request))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The requests of one stream, gathered when they are asked for.
struct Outbox {
    partition: Arc<Partition>,
    session: u64,
    timeout: Duration,
}

impl Stream for Outbox {
    type Item = ConsumeRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ConsumeRequest>> {
        self.partition.next_request(self.session, self.timeout, context)
    }
}
