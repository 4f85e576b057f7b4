//! A consumer on one topic partition: what it has to say to the broker, and its stream.
//!
//! The sending half is pulled, as with publishing: whenever the connection takes more, [`Outbox`]
//! gathers all acks, nacks, extensions and credit that wait into one request. Only so many
//! requests with acks are unanswered at a time, so what comes meanwhile is gathered.
//!
//! Law: a delivery belongs to the stream that it came over; on another one it means nothing.

use super::inbox::{Chunk, Inbox, Room};
use super::ranges::{Range, Ranges};
use super::settle::{Answer, Answering, Outcome, Ticket};
use crate::cluster::{Cluster, Purpose};
use crate::error::{Error, Trouble};
use danube_wire::proto::stream::{Credit, Extension, Nack, Settled, Subscribe};
use danube_wire::stream::client::StreamClient;
use danube_wire::stream::{ConsumeRequest, ConsumeResponse};
use futures::Stream;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// Requests with acks, nacks or extensions that may be unanswered at a time.
const UNANSWERED_MAX: usize = 2;
/// Largest response that is taken, in bytes.
const RESPONSE_LEN_MAX: usize = 64 * 1024 * 1024;

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

/// How a stream ended, when not in trouble.
struct Closed;

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

    /// Keeps a stream open until the consumer is closed or over. `subscribed` learns how the
    /// first subscribe went.
    pub(super) async fn run(
        self: Arc<Partition>,
        cluster: Arc<Cluster>,
        inbox: Arc<Inbox>,
        subscribed: oneshot::Sender<Result<(), Error>>,
    ) {
        let mut subscribed = Some(subscribed);
        let options = &cluster.options;
        let give_up_at = Instant::now() + options.call_timeout;
        let mut failures = 0;
        let error = loop {
            let began = Instant::now();
            let ended = self.serve(&cluster, &inbox, &mut subscribed).await;
            // A stream that ends soon, again and again, is a failure too: two of one name, say.
            if began.elapsed() > options.pause_max {
                failures = 0;
            }
            self.end_session();
            inbox.forget(&self);
            let trouble = match ended {
                Ok(Closed) => break None,
                Err(_) if self.is_closing() => break None,
                Err(trouble) => trouble,
            };
            let Trouble::Passing { why, after } = trouble else {
                break Some(trouble.why().clone());
            };
            failures += 1;
            let pause = after.max(options.pause(failures));
            if subscribed.is_some() && Instant::now() + pause > give_up_at {
                break Some(why);
            }
            tracing::warn!(error = %why, ?pause, "{} subscribes again", self.who);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.notified() => break None,
            }
        };
        if let Some(error) = &error {
            tracing::warn!(%error, "{} is over", self.who);
        }
        match subscribed {
            // Whoever subscribed may have gone away meanwhile.
            Some(subscribed) => {
                let closed = Error::Closed { who: self.who.clone() };
                let _ = subscribed.send(Err(error.unwrap_or(closed)));
                inbox.over(None);
            }
            None => inbox.over(error),
        }
    }

    /// One stream, from its beginning to its end.
    async fn serve(
        self: &Arc<Partition>,
        cluster: &Arc<Cluster>,
        inbox: &Inbox,
        subscribed: &mut Option<oneshot::Sender<Result<(), Error>>>,
    ) -> Result<Closed, Trouble> {
        let limit = cluster.options.call_timeout;
        let route = cluster.route(&self.topic).await.map_err(Trouble::from_error)?;
        let url = &route.connect_url;
        let channel = cluster.channel(url, Purpose::Consume).await.map_err(Trouble::from_error)?;
        let failed = |status| Trouble::from_error(Error::from_status(url, &self.who, &status));
        let mut client = StreamClient::new(channel).max_decoding_message_size(RESPONSE_LEN_MAX);
        let session = self.begin_session();
        let outbox = Outbox { partition: Arc::clone(self), session, timeout: limit };
        let call = client.consume(route.request(outbox));
        let mut answers = cluster.options.call(call).await.map_err(failed)?;

        // Until the first answer, the time limit of a call; then that of leases and of requests.
        let mut timer_at = Instant::now() + limit;
        let (mut is_answered, mut close_until) = (false, None);
        loop {
            tokio::select! {
                answer = answers.message() => {
                    let Some(answer) = answer.map_err(failed)? else {
                        return self.stream_ended(url);
                    };
                    if answer.rest.subscribed.is_some() {
                        is_answered = true;
                        if let Some(subscribed) = subscribed.take() {
                            let _ = subscribed.send(Ok(()));
                        }
                    }
                    if let Some(extend_at) = self.take(answer, session, inbox)? {
                        timer_at = timer_at.min(extend_at);
                    }
                }
                () = tokio::time::sleep_until(timer_at.into()) => {
                    if close_until.is_some_and(|until| until <= Instant::now()) {
                        // A broker that does not answer is left; it sees the stream end.
                        return Ok(Closed);
                    }
                    if !is_answered || self.is_overdue(Instant::now()) {
                        let doing = format!("an answer to {}", self.who);
                        let why = Error::Timeout { doing, after: limit };
                        return Err(Trouble::Passing { why, after: Duration::ZERO });
                    }
                    timer_at = self.keep_leases(inbox, session, limit);
                }
                () = self.closing.notified() => {
                    close_until = Some(Instant::now() + limit);
                    timer_at = timer_at.min(Instant::now() + limit);
                }
            }
        }
    }

    fn stream_ended(&self, url: &str) -> Result<Closed, Trouble> {
        match self.outgoing.lock().close {
            Close::Sent => Ok(Closed),
            _ => {
                let why = "the broker ended the stream".to_owned();
                let why = Error::Unreachable { url: url.to_owned(), why };
                Err(Trouble::Passing { why, after: Duration::ZERO })
            }
        }
    }

    /// Asks for more time for what waits in the inbox. Returns when to do so again.
    fn keep_leases(&self, inbox: &Inbox, session: u64, limit: Duration) -> Instant {
        let now = Instant::now();
        let (extensions, next) = inbox.due(self, now);
        if !extensions.is_empty() {
            self.ask(session, Ranges::default(), |request, _| {
                request.extensions.extend(extensions);
            });
        }
        let deadline = self.outgoing.lock().unanswered.front().map(|first| first.deadline);
        [next, deadline].into_iter().flatten().fold(now + limit, Instant::min)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.outgoing.lock().unanswered.front().is_some_and(|first| first.deadline <= now)
    }

    /// Returns when the leases of what came have to be extended.
    fn take(
        self: &Arc<Partition>,
        answer: ConsumeResponse,
        session: u64,
        inbox: &Inbox,
    ) -> Result<Option<Instant>, Trouble> {
        let ConsumeResponse { deliveries, rest } = answer;
        for settled in rest.settled {
            self.settled(settled, session, inbox);
        }
        let mut extend_at = None;
        if !deliveries.is_empty() && !self.is_closing() {
            let lease = Duration::from_millis(rest.lease_ms);
            let chunk = Chunk::new(Arc::clone(self), session, rest.epoch, lease, deliveries);
            extend_at = (!lease.is_zero()).then_some(chunk.extend_at);
            inbox.push(chunk);
        }
        match rest.ended {
            Some(ended) => {
                let (why, ms) = (ended.why(), ended.retry_after_ms);
                Err(Trouble::from_refusal(&self.who, why, ended.reason, ms))
            }
            None => Ok(extend_at),
        }
    }

    pub(super) fn settled(&self, settled: Settled, session: u64, inbox: &Inbox) {
        if !settled.failure.is_empty() {
            tracing::warn!(reason = settled.failure, "acks of {} were not taken", self.who);
        }
        if !settled.stale.is_empty() {
            let room = inbox.forget_stale(self, &settled.stale);
            self.give_back(session, room);
        }
        let mut outgoing = self.outgoing.lock();
        let id = settled.id;
        let answered = outgoing.unanswered.iter().take_while(|first| first.id <= id).count();
        let answered: Vec<_> = outgoing.unanswered.drain(..answered).collect();
        let waker = outgoing.waker.take();
        drop(outgoing);
        let settled = Arc::new(settled);
        for Unanswered { answer, .. } in answered {
            answer.tell(Outcome::Settled(Arc::clone(&settled)));
        }
        waker.into_iter().for_each(Waker::wake);
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
