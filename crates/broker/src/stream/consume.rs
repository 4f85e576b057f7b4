//! One `Consume` stream: a consumer's deliveries out, its credit, acks and nacks in.
//!
//! Deliveries wait in the consumer's queue until there is credit, so what a client has no room for
//! has not been delivered: no lease runs for it and no attempt is counted. What this leaves to
//! others: who gets what, and what an ack means.
//!
//! Law: never more is sent than the client gave credit for, but for one delivery that begins within
//! it; and what a client settled is answered before its stream ends well.

use super::refusal::Refused;
use crate::context::Context;
use crate::rpc::attach;
use crate::scan;
use crate::topic::{
    Claim, Ended, OpenedStream, Outcome, QueueReader, Subscribe, Terms, TopicHandle, Verdict, Wire,
};
use danube_core::name::ConsumerName;
use danube_core::subscription::AttemptId;
use danube_core::{ConsumerId, Fault, Offset, Position, SubscriptionName, TopicName};
use danube_wire::convert;
use danube_wire::limit::cut_reason;
use danube_wire::proto::stream as proto;
use danube_wire::stream::{ConsumeRequest, ConsumeResponse, Delivered};
use futures::StreamExt;
use futures::stream::FuturesOrdered;
use parking_lot::Mutex;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tonic::{Status, Streaming};

/// Deliveries of one response.
const RESPONSE_LEN_MAX: usize = 512;
/// Bytes after which a response takes no further delivery.
const RESPONSE_BYTES_MAX: usize = 256 << 10;
/// Settlements that may wait for their answer, and as many answers for a client that does not read;
/// the stream is not read further meanwhile.
const SETTLEMENTS_MAX: usize = 256;

/// Starts to serve a stream; the deliveries are its other half.
pub(super) fn serve(context: Arc<Context>, mut incoming: Streaming<ConsumeRequest>) -> Deliveries {
    let link = Arc::new(Link::default());
    let reading = {
        let link = Arc::clone(&link);
        tokio::spawn(async move {
            let stopping = context.stopping.clone();
            let read = async {
                let consumer = subscribe(&context, &link, &mut incoming).await?;
                consumer.run(&mut incoming).await
            };
            let end = tokio::select! {
                end = read => end,
                () = stopping.cancelled() => Err(End::stopping()),
            };
            link.end(end.err());
        })
    };
    Deliveries { link, reading: reading.abort_handle() }
}

/// Why a stream ends, other than because its client closed it.
enum End {
    /// The client is told with a last message.
    Told(Refused),
    /// The client broke the stream, or the contract.
    Status(Status),
}

impl End {
    fn stopping() -> End {
        let reason = "the broker is stopping; connect again";
        End::Told(Refused::new(proto::Refusal::Moved, reason))
    }

    fn breach(what: impl Into<String>) -> End {
        End::Status(Status::invalid_argument(what))
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> End {
        End::Told(fault.into())
    }
}

impl From<Status> for End {
    fn from(status: Status) -> End {
        End::Status(status)
    }
}

/// What the two halves of a stream share.
#[derive(Default)]
struct Link {
    state: Mutex<LinkState>,
    /// Rings when what was ready was taken.
    taken: Notify,
}

#[derive(Default)]
struct LinkState {
    queue: Option<QueueReader>,
    /// What is ready to be told, besides deliveries.
    ready: proto::ConsumeResponse,
    messages: u64,
    bytes: u64,
    is_ended: bool,
    status: Option<Status>,
    waker: Option<Waker>,
}

impl Link {
    fn tell(&self, change: impl FnOnce(&mut LinkState)) {
        let mut state = self.state.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until a client that does not read leaves room for more answers.
    async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.state.lock().ready.settled.len() < SETTLEMENTS_MAX {
                return;
            }
            taken.await;
        }
    }

    /// Ends the stream; without a reason, because the client closed it.
    fn end(&self, why: Option<End>) {
        self.tell(|state| {
            state.is_ended = true;
            match why {
                None => {
                    if let Some(queue) = state.queue.take() {
                        queue.close();
                    }
                }
                Some(End::Told(refused)) => state.tell_end(refused),
                Some(End::Status(status)) => (state.queue, state.status) = (None, Some(status)),
            }
        });
    }
}

impl LinkState {
    fn tell_end(&mut self, refused: Refused) {
        self.is_ended = true;
        self.queue = None;
        let Refused { refusal, reason, retry_after_ms } = refused;
        self.ready.ended = Some(proto::Ended { why: refusal.into(), reason, retry_after_ms });
    }

    fn add_credit(&mut self, credit: proto::Credit) {
        self.messages = self.messages.saturating_add(credit.messages.into());
        self.bytes = self.bytes.saturating_add(credit.bytes);
    }

    /// Takes what there is credit for out of the queue.
    fn take(&mut self, cx: &mut task::Context<'_>) -> Vec<Delivered> {
        let mut out = Vec::new();
        let Some(queue) = &mut self.queue else { return out };
        let credit = usize::try_from(self.messages).unwrap_or(usize::MAX);
        let (mut messages, mut bytes) = (self.messages, self.bytes);
        let (mut len, mut total) = (0, 0);
        let fits = |next: &Delivered| {
            let fits =
                messages > 0 && bytes > 0 && len < RESPONSE_LEN_MAX && total < RESPONSE_BYTES_MAX;
            if fits {
                let size = next.encoded_len();
                (messages, bytes) = (messages - 1, bytes.saturating_sub(size as u64));
                (len, total) = (len + 1, total + size);
            }
            fits
        };
        let polled = queue.poll_take(cx, fits, |delivery, behind| {
            if out.is_empty() {
                // Room for all, if those behind it are as large; it does not grow by and by.
                let alike = 1 + RESPONSE_BYTES_MAX / delivery.encoded_len();
                out.reserve((1 + behind).min(credit).min(RESPONSE_LEN_MAX).min(alike));
            }
            out.push(delivery);
        });
        (self.messages, self.bytes) = (messages, bytes);
        match polled {
            Poll::Ready(Some(Ok(Terms { epoch, lease_ms }))) => {
                (self.ready.epoch, self.ready.lease_ms) = (epoch, lease_ms);
            }
            Poll::Ready(Some(Err(ended))) => {
                let why = match &ended {
                    Ended::Replaced(_) => proto::Refusal::Fenced,
                    Ended::Stopped(_) => proto::Refusal::Moved,
                };
                self.tell_end(Refused::new(why, ended.into_fault().message));
            }
            Poll::Ready(None) => self.is_ended = true,
            Poll::Pending => {}
        }
        out
    }
}

/// The writing half of a stream.
pub(crate) struct Deliveries {
    link: Arc<Link>,
    reading: AbortHandle,
}

impl futures::Stream for Deliveries {
    type Item = Result<ConsumeResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.link.state.lock();
        let deliveries = state.take(cx);
        let rest = mem::take(&mut state.ready);
        self.link.taken.notify_one();
        if !deliveries.is_empty() || rest != proto::ConsumeResponse::default() {
            return Poll::Ready(Some(Ok(ConsumeResponse { deliveries, rest })));
        }
        if state.is_ended {
            return Poll::Ready(state.status.take().map(Err));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.reading.abort();
        // The consumer is gone, also where its requests are still being worked on.
        self.link.state.lock().queue = None;
    }
}

/// The reading half of a stream, once it has subscribed.
struct Consumer<'a> {
    link: &'a Arc<Link>,
    topic: TopicHandle,
    subscription: SubscriptionName,
    id: ConsumerId,
}

/// Takes the first request and opens the consumer's queue.
async fn subscribe<'a>(
    context: &Arc<Context>,
    link: &'a Arc<Link>,
    incoming: &mut Streaming<ConsumeRequest>,
) -> Result<Consumer<'a>, End> {
    let first = incoming.message().await?.unwrap_or_default();
    let request = first
        .subscribe
        .ok_or_else(|| End::breach("the first request of a Consume stream has `subscribe`"))?;
    let name = TopicName::parse(&request.topic)?;
    let wish = Subscribe {
        subscription: SubscriptionName::parse(&request.subscription)?,
        kind: convert::stream_subscription_type(request.r#type)?,
        consumer: ConsumerName::parse(&request.consumer_name)?,
        key_filters: attach::filters(request.key_filters)?,
    };
    let subscription = wish.subscription.clone();
    let start = start(context, &name, convert::stream_position(request.start)).await?;
    let (topic, id) = attach::attach(context, &name, wish, start).await?;
    let OpenedStream { reader, cursor, .. } = topic.open(id, Wire::Native).await?;
    link.tell(|state| {
        state.queue = Some(reader);
        state.add_credit(request.credit.unwrap_or_default());
        let subscribed = proto::Subscribed { consumer_id: id.0, cursor: cursor.0 };
        state.ready.subscribed = Some(subscribed);
    });
    Ok(Consumer { link, topic, subscription, id })
}

/// Where a new subscription begins; `None` for the end of the topic.
async fn start(
    context: &Context,
    name: &TopicName,
    position: Position,
) -> Result<Option<Offset>, Fault> {
    if position == Position::Latest {
        return Ok(None);
    }
    let view = context.meta.view();
    // Without a topic there is nothing to begin with, and attaching says so.
    let Some(topic) = view.topic(name) else { return Ok(None) };
    let log = scan::log_of(context, name, topic)?;
    let bounds = log.bounds();
    let wanted = scan::locate(&log, position).await?;
    Ok(Some(wanted.clamp(bounds.start, bounds.next)))
}

impl Consumer<'_> {
    /// Reads until the client closes.
    async fn run(self, incoming: &mut Streaming<ConsumeRequest>) -> Result<(), End> {
        // Answered in the order in which they were asked.
        let mut settling = FuturesOrdered::new();
        loop {
            tokio::select! {
                Some(settled) = settling.next() => self.tell(settled),
                request = incoming.message(), if settling.len() < SETTLEMENTS_MAX => {
                    // Without a goodbye, what the consumer holds counts as delivered.
                    let request = request?.ok_or_else(|| {
                        End::Status(Status::cancelled("the stream ended without `close`"))
                    })?;
                    if request.subscribe.is_some() {
                        let what = "only the first request of a stream has `subscribe`";
                        return Err(End::breach(what));
                    }
                    if let Some(credit) = request.credit {
                        self.link.tell(|state| state.add_credit(credit));
                    }
                    let is_closing = request.close;
                    settling.push_back(self.settle(request));
                    if is_closing {
                        break;
                    }
                    self.link.room().await;
                }
            }
        }
        while let Some(settled) = settling.next().await {
            self.tell(settled);
        }
        Ok(())
    }

    fn tell(&self, settled: proto::Settled) {
        let proto::Settled { id, stale, extended, failure } = &settled;
        if *id > 0 || !stale.is_empty() || !extended.is_empty() || !failure.is_empty() {
            self.link.tell(|state| state.ready.settled.push(settled));
        }
    }

    async fn settle(&self, request: ConsumeRequest) -> proto::Settled {
        let mut settled = proto::Settled { id: request.id, ..Default::default() };
        let (ranges, claims) = claims(request, self.id);
        if claims.is_empty() {
            return settled;
        }
        match self.topic.settle(self.subscription.clone(), claims).await {
            Ok(outcomes) => {
                for (range, outcome) in ranges.into_iter().zip(outcomes) {
                    add(&mut settled, range, outcome);
                }
            }
            Err(fault) => settled.failure = fault.message,
        }
        settled
    }
}

/// What a request claims, with the range of each claim.
fn claims(request: ConsumeRequest, consumer: ConsumerId) -> (Vec<proto::Range>, Vec<Claim>) {
    let acks = request.acks.into_iter().map(|range| (range, Verdict::Ack));
    let nacks = request.nacks.into_iter().filter_map(|nack| {
        let delay_ms = (nack.delay_ms > 0).then_some(nack.delay_ms);
        let reason = Some(cut_reason(&nack.reason).to_owned()).filter(|text| !text.is_empty());
        Some((nack.range?, Verdict::Nack { delay_ms, reason }))
    });
    let extensions = request.extensions.into_iter().filter_map(|extension| {
        Some((extension.range?, Verdict::Extend { by_ms: extension.by_ms }))
    });
    let claim = |(range, verdict): (proto::Range, Verdict)| {
        let first = Offset(range.first);
        let number = range.attempt;
        let attempt = Some(AttemptId { number, consumer, epoch: range.epoch });
        let end = first.plus(range.count.into());
        (range, Claim { first, end, attempt, verdict })
    };
    acks.chain(nacks).chain(extensions).map(claim).unzip()
}

/// Adds what became of the claim of `range`.
fn add(settled: &mut proto::Settled, range: proto::Range, outcome: Outcome) {
    for offset in outcome.stale {
        match settled.stale.last_mut() {
            Some(last)
                if last.first + u64::from(last.count) == offset.0
                    && (last.attempt, last.epoch) == (range.attempt, range.epoch) =>
            {
                last.count += 1;
            }
            _ => settled.stale.push(proto::Range { first: offset.0, count: 1, ..range }),
        }
    }
    if let Some(by_ms) = outcome.held_ms {
        settled.extended.push(proto::Extension { range: Some(range), by_ms });
    }
}
