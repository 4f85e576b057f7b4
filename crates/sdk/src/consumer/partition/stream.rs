//! The streams of a consumer on one topic partition, one after another: what comes in, the leases of
//! what waits, and beginning again.
//!
//! Law: what came over a stream is forgotten with it; it comes again over the next one.

use super::{Close, Outbox, Partition, Unanswered};
use crate::cluster::{Cluster, Purpose};
use crate::consumer::inbox::{Chunk, Inbox};
use crate::consumer::ranges::Ranges;
use crate::consumer::settle::Outcome;
use crate::error::{Error, Trouble};
use danube_wire::proto::stream::Settled;
use danube_wire::stream::ConsumeResponse;
use danube_wire::stream::client::StreamClient;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Largest response that is taken, in bytes.
const RESPONSE_LEN_MAX: usize = 64 * 1024 * 1024;

/// How a stream ended, when not in trouble.
struct Closed;

impl Partition {
    /// Keeps a stream open until the consumer is closed or over. `subscribed` learns how the
    /// first subscribe went.
    pub(in crate::consumer) async fn run(
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
        let partition = Arc::clone(self);
        let outbox = Outbox { partition, session, timeout: limit, lingering: None };
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
    fn keep_leases(self: &Arc<Partition>, inbox: &Inbox, session: u64, limit: Duration) -> Instant {
        let now = Instant::now();
        let (extensions, next) = inbox.due(self, now);
        if !extensions.is_empty() {
            self.ask(session, Ranges::default(), Duration::ZERO, |request, _| {
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

    pub(in crate::consumer) fn settled(&self, settled: Settled, session: u64, inbox: &Inbox) {
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
}
