//! A consumer on one topic partition: what it has to say to the broker; its streams are in `stream`.
//!
//! The sending half is pulled, as with publishing: whenever the connection takes more, [`Outbox`]
//! gathers all acks, nacks, extensions and credit that wait into one request. Only so many
//! requests with acks are unanswered at a time, so what comes meanwhile is gathered. Acks that nobody
//! awaits linger, so that one request carries those of several messages.
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
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep_until};

/// Requests with acks, nacks or extensions that may be unanswered at a time.
const UNANSWERED_MAX: usize = 2;
/// Messages whose acks do not linger any longer.
const LINGERING_MAX: u64 = 100;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Partition {
    subscribe: Subscribe,
    topic: Arc<str>,
    who: String,
    credit: Credit,
    /// How long acks wait for others.
    ack_linger: Duration,
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
    /// Until when it may wait for more; `None` once it may not.
    lingers: Option<Instant>,
    /// Messages that its acks are of.
    acked: u64,
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
    pub(super) fn new(subscribe: Subscribe, ack_linger: Duration) -> Arc<Partition> {
        let who = format!(
            "consumer `{}` of subscription `{}` on topic `{}`",
            subscribe.consumer_name, subscribe.subscription, subscribe.topic
        );
        Arc::new(Partition {
            topic: subscribe.topic.as_str().into(),
            who,
            credit: subscribe.credit.unwrap_or_default(),
            ack_linger,
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

    /// Adds to the next request, when the deliveries are of the stream there is. It is sent after
    /// `linger`, or earlier if something else needs to be.
    fn ask(
        self: &Arc<Partition>,
        session: u64,
        deliveries: Ranges,
        linger: Duration,
        add: impl FnOnce(&mut Request, &Ranges),
    ) -> Ticket {
        let mut outgoing = self.outgoing.lock();
        if outgoing.session != session || outgoing.close == Close::Sent {
            drop(outgoing);
            let known = Answering::Known(Err("the stream it came over has ended"));
            return Ticket::new(Arc::clone(&self.topic), deliveries, known);
        }
        let waiting = &mut outgoing.waiting;
        let is_first = waiting.answer.is_none();
        add(waiting, &deliveries);
        if linger.is_zero() || waiting.acked >= LINGERING_MAX {
            waiting.lingers = None;
        } else if is_first {
            waiting.lingers = Some(Instant::now() + linger);
        }
        let is_news = is_first || waiting.lingers.is_none();
        let new = || Arc::new(Answer::new(Arc::downgrade(self)));
        let answer = Arc::clone(waiting.answer.get_or_insert_with(new));
        let waker = match is_news && outgoing.unanswered.len() < UNANSWERED_MAX {
            true => outgoing.waker.take(),
            false => None,
        };
        drop(outgoing);
        waker.into_iter().for_each(Waker::wake);
        Ticket::new(Arc::clone(&self.topic), deliveries, Answering::Asked(answer))
    }

    /// Somebody awaits the answer to what waits.
    pub(super) fn hurry(&self) {
        let mut outgoing = self.outgoing.lock();
        if outgoing.waiting.lingers.take().is_none() || outgoing.waiting.answer.is_none() {
            return;
        }
        let waker = match outgoing.unanswered.len() < UNANSWERED_MAX {
            true => outgoing.waker.take(),
            false => None,
        };
        drop(outgoing);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn ack(self: &Arc<Partition>, session: u64, deliveries: Ranges) -> Ticket {
        self.ask(session, deliveries, self.ack_linger, |request, deliveries| {
            for range in deliveries.iter() {
                request.acked += u64::from(range.count);
                request.acks.push(*range);
            }
        })
    }

    pub(super) fn nack(
        self: &Arc<Partition>,
        session: u64,
        range: Range,
        delay: Duration,
        reason: String,
    ) -> Ticket {
        let nack = Nack { range: Some(range), delay_ms: millis(delay), reason };
        self.ask(session, Ranges::one(range), Duration::ZERO, |request, _| request.nacks.push(nack))
    }

    pub(super) fn extend(
        self: &Arc<Partition>,
        session: u64,
        range: Range,
        by: Duration,
    ) -> Ticket {
        let extension = Extension { range: Some(range), by_ms: millis(by) };
        self.ask(session, Ranges::one(range), Duration::ZERO, |request, _| {
            request.extensions.push(extension);
        })
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

    /// What the stream of `session` has to send now; or, if there is something that lingers, until
    /// when that may be.
    pub(super) fn next_request(
        &self,
        session: u64,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<Option<ConsumeRequest>, Option<Instant>> {
        let mut outgoing = self.outgoing.lock();
        if outgoing.session != session || outgoing.close == Close::Sent {
            return Ok(None);
        }
        if !std::mem::replace(&mut outgoing.is_subscribed, true) {
            let subscribe = Some(self.subscribe.clone());
            return Ok(Some(ConsumeRequest { subscribe, ..ConsumeRequest::default() }));
        }
        let mut request = ConsumeRequest::default();
        if self.is_worth_telling(outgoing.room) {
            let room = std::mem::take(&mut outgoing.room);
            request.credit = Some(Credit { messages: room.messages, bytes: room.bytes });
        }
        let closes = outgoing.close == Close::Wanted;
        let may_ask = outgoing.unanswered.len() < UNANSWERED_MAX || closes;
        // What is sent anyway takes along what lingers.
        let lingers = outgoing.waiting.lingers.filter(|until| {
            may_ask && !closes && request.credit.is_none() && *until > Instant::now()
        });
        if may_ask
            && lingers.is_none()
            && let Some(answer) = outgoing.waiting.answer.take()
        {
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
            return Err(lingers);
        }
        Ok(Some(request))
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
    /// Ends when what lingers may linger no more.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Stream for Outbox {
    type Item = ConsumeRequest;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ConsumeRequest>> {
        loop {
            let next = self.partition.next_request(self.session, self.timeout, context);
            let until = match next {
                Ok(request) => return Poll::Ready(request),
                Err(None) => return Poll::Pending,
                Err(Some(until)) => until,
            };
            let lingering =
                self.lingering.get_or_insert_with(|| Box::pin(sleep_until(until.into())));
            if lingering.deadline() != until.into() {
                lingering.as_mut().reset(until.into());
            }
            ready!(lingering.as_mut().poll(context));
        }
    }
}
