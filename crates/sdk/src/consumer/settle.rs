//! Answers to acks, nacks and extensions: one shared state per request, futures for each caller.
//!
//! Law: every answer that is waited for comes, if only as the error that the stream ended.

use super::partition::Partition;
use super::ranges::{Ranges, first_common};
use crate::error::Error;
use danube_wire::proto::stream::Settled;
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What became of one request.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// The broker's answer.
    Settled(Arc<Settled>),
    /// The stream ended before it came, and the deliveries with it.
    Lost(&'static str),
}

/// The answer to one request, shared by all who asked for something in it.
#[derive(Debug)]
pub(super) struct Answer {
    waiting: Mutex<Waiting>,
    /// Whoever sends the request.
    partition: Weak<Partition>,
}

#[derive(Debug, Default)]
struct Waiting {
    outcome: Option<Outcome>,
    wakers: Vec<Waker>,
    /// Somebody awaits it, and the partition knows.
    is_awaited: bool,
}

impl Answer {
    pub(super) fn new(partition: Weak<Partition>) -> Answer {
        Answer { waiting: Mutex::default(), partition }
    }

    pub(super) fn tell(&self, outcome: Outcome) {
        let mut waiting = self.waiting.lock();
        waiting.outcome.get_or_insert(outcome);
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, slot: &mut usize, context: &Context<'_>) -> Poll<Outcome> {
        let mut waiting = self.waiting.lock();
        if let Some(outcome) = &waiting.outcome {
            return Poll::Ready(outcome.clone());
        }
        match waiting.wakers.get(*slot) {
            Some(own) if own.will_wake(context.waker()) => {}
            _ => {
                *slot = waiting.wakers.len();
                waiting.wakers.push(context.waker().clone());
            }
        }
        let is_awaited = std::mem::replace(&mut waiting.is_awaited, true);
        drop(waiting);
        if !is_awaited && let Some(partition) = self.partition.upgrade() {
            partition.hurry();
        }
        Poll::Pending
    }
}

/// Deliveries of one topic partition and the answer about them.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) topic: Arc<str>,
    pub(super) deliveries: Ranges,
    pub(super) answer: Answering,
    slot: usize,
}

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum Answering {
    /// From the broker.
    Asked(Arc<Answer>),
    /// From here: there is nothing to ask.
    Known(Result<(), &'static str>),
}

impl Ticket {
    pub(super) fn new(topic: Arc<str>, deliveries: Ranges, answer: Answering) -> Ticket {
        Ticket { topic, deliveries, answer, slot: usize::MAX }
    }

    fn lost(&self, offset: Option<u64>, why: &'static str) -> Error {
        let first = self.deliveries.iter().map(|range| range.first).min();
        let offset = offset.or(first).unwrap_or_default();
        Error::LeaseLost { topic: self.topic.to_string(), offset, why }
    }

    /// The broker's answer, when it is about these deliveries and not a refusal of them.
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Option<Arc<Settled>>, Error>> {
        let outcome = match &self.answer {
            Answering::Known(Ok(())) => return Poll::Ready(Ok(None)),
            Answering::Known(Err(why)) => return Poll::Ready(Err(self.lost(None, why))),
            Answering::Asked(answer) => match answer.poll(&mut self.slot, context) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(match outcome {
            Outcome::Lost(why) => Err(self.lost(None, why)),
            Outcome::Settled(settled) if !settled.failure.is_empty() => Err(Error::NotSettled {
                topic: self.topic.to_string(),
                reason: settled.failure.clone(),
            }),
            Outcome::Settled(settled) => {
                let mut stale = settled.stale.iter().filter_map(|stale| {
                    self.deliveries.iter().find_map(|d| first_common(d, stale))
                });
                match stale.next() {
                    None => Ok(Some(settled)),
                    Some(offset) => Err(self.lost(
                        Some(offset),
                        "its lease ran out, it was settled before, or the subscription was moved",
                    )),
                }
            }
        })
    }
}

/// An ack or nack on its way. It is sent without being awaited, an ack together with those of the next
/// few milliseconds ([`ack_linger`](crate::ConsumerBuilder::ack_linger)). Await it to have it sent at
/// once, and to know that the broker has it, as durable as a publish of the topic.
///
/// ```no_run
/// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
/// let message = consumer.next().await?;
/// drop(consumer.ack(&message)); // Sent, and nobody waits.
/// let message = consumer.next().await?;
/// consumer.ack(&message).await?; // The broker has it.
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ack {
    pub(super) first: Option<Ticket>,
    pub(super) others: Vec<Ticket>,
}

impl Future for Ack {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ack = self.get_mut();
        while let Some(ticket) = &mut ack.first {
            match ticket.poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(_)) => ack.first = ack.others.pop(),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A lease extension on its way. It is sent without being awaited; its output is how long the
/// broker granted, from the moment of its answer; `None` where nothing is acknowledged.
///
/// ```no_run
/// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
/// use std::time::Duration;
///
/// let message = consumer.next().await?;
/// let granted = consumer.extend(&message, Duration::from_secs(120)).await?;
/// # let _ = granted;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Extension(pub(super) Ticket);

impl Future for Extension {
    type Output = Result<Option<Duration>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = &mut self.get_mut().0;
        ticket.poll(context).map(|answer| {
            let settled = answer?;
            let granted = settled.iter().flat_map(|settled| &settled.extended).find(|extended| {
                let range = extended.range.as_ref();
                range
                    .is_some_and(|r| ticket.deliveries.iter().any(|d| first_common(d, r).is_some()))
            });
            Ok(granted.map(|extended| Duration::from_millis(extended.by_ms)))
        })
    }
}
