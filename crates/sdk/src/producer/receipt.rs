//! Receipts: the promise of a message's id, one shared state for all messages of a batch.
//!
//! Law: a batch's state is told about each message once, and every receipt of it then answers.

use crate::error::Error;
use crate::message::{MessageId, Place};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What became of messages that follow one another.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// They are stored, the first of them at this offset.
    Stored(Arc<Place>, u64),
    /// They are not, or nobody knows.
    Failed(Error),
}

/// What is known of the messages of one batch.
#[derive(Debug, Default)]
pub(super) struct BatchState(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Nearly always there is one outcome for the whole batch.
    first: Option<(Range<u32>, Outcome)>,
    others: Vec<(Range<u32>, Outcome)>,
    known: u32,
    /// How many messages there are, once the batch is full.
    count: Option<u32>,
    wakers: Vec<Waker>,
}

impl Known {
    fn outcomes(&self) -> impl Iterator<Item = &(Range<u32>, Outcome)> {
        self.first.iter().chain(&self.others)
    }

    fn of(&self, index: u32) -> Option<Result<MessageId, Error>> {
        let (range, outcome) = self.outcomes().find(|(range, _)| range.contains(&index))?;
        Some(match outcome {
            Outcome::Failed(error) => Err(error.clone()),
            Outcome::Stored(place, first) => Ok(MessageId {
                place: Arc::clone(place),
                offset: first + u64::from(index - range.start),
            }),
        })
    }

    /// Keeps the waker in the place that `slot` names, or in a new one.
    fn wait(&mut self, slot: &mut usize, waker: &Waker) {
        match self.wakers.get_mut(*slot) {
            Some(own) if own.will_wake(waker) => {}
            _ => {
                *slot = self.wakers.len();
                self.wakers.push(waker.clone());
            }
        }
    }
}

impl BatchState {
    /// No more messages will come.
    pub(super) fn sealed(&self, count: u32) {
        self.0.lock().count = Some(count);
    }

    /// Tells what became of messages of which nothing was known.
    pub(super) fn tell(&self, messages: Range<u32>, outcome: Outcome) {
        let mut known = self.0.lock();
        known.known += messages.end - messages.start;
        match known.first {
            None => known.first = Some((messages, outcome)),
            Some(_) => known.others.push((messages, outcome)),
        }
        let wakers = std::mem::take(&mut known.wakers);
        drop(known);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until all messages are known.
    ///
    /// # Errors
    /// Why one of them failed.
    pub(super) async fn all(&self) -> Result<(), Error> {
        let mut slot = usize::MAX;
        std::future::poll_fn(|context| {
            let mut known = self.0.lock();
            if known.count != Some(known.known) {
                known.wait(&mut slot, context.waker());
                return Poll::Pending;
            }
            let failed = known.outcomes().find_map(|(_, outcome)| match outcome {
                Outcome::Failed(error) => Some(error.clone()),
                Outcome::Stored(..) => None,
            });
            Poll::Ready(failed.map_or(Ok(()), Err))
        })
        .await
    }
}

/// The promise of a message's id: await it to know that the message is as durable as its topic
/// promises. Dropping it changes nothing for the message.
///
/// ```no_run
/// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
/// use danube_sdk::NewMessage;
///
/// let first = producer.enqueue(NewMessage::new("one")).await?;
/// let second = producer.enqueue(NewMessage::new("two")).await?;
/// assert!(first.await?.offset() < second.await?.offset());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a message that is refused is only seen by awaiting its receipt, or by `flush`"]
pub struct Receipt {
    batch: Arc<BatchState>,
    index: u32,
    slot: usize,
}

impl Receipt {
    pub(super) fn new(batch: Arc<BatchState>, index: u32) -> Receipt {
        Receipt { batch, index, slot: usize::MAX }
    }
}

/// The promise of the ids of messages that were published together: await it to know that all of them
/// are as durable as their topic promises. Dropping it changes nothing for them.
///
/// ```no_run
/// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
/// use danube_sdk::NewMessage;
///
/// let receipts = producer.enqueue_all(["one", "two"].map(NewMessage::new)).await?;
/// let ids = receipts.await?;
/// println!("stored {} messages, the last as {}", ids.len(), ids[1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "a message that is refused is only seen by awaiting its receipt, or by `flush`"]
pub struct Receipts {
    /// Messages that follow one another in a batch, those of which nothing is known yet.
    runs: VecDeque<(Arc<BatchState>, Range<u32>)>,
    /// Of those that are stored.
    ids: Vec<MessageId>,
    count: usize,
    slot: usize,
}

impl Receipts {
    /// Adds the receipt of one more message.
    pub(super) fn push(&mut self, receipt: Receipt) {
        let Receipt { batch, index, slot } = receipt;
        (self.count, self.slot) = (self.count + 1, slot);
        match self.runs.back_mut() {
            Some((last, run)) if run.end == index && Arc::ptr_eq(last, &batch) => run.end += 1,
            _ => self.runs.push_back((batch, index..index + 1)),
        }
    }

    /// How many messages it is of.
    ///
    /// ```no_run
    /// # fn example(receipts: danube_sdk::Receipts) {
    /// println!("{} messages were published together", receipts.len());
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it is of none.
    ///
    /// ```no_run
    /// # fn example(receipts: danube_sdk::Receipts) {
    /// assert!(!receipts.is_empty());
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Future for Receipts {
    /// The ids, in the order of the messages; or why the first of those that failed did.
    type Output = Result<Vec<MessageId>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Receipts { runs, ids, slot, .. } = self.get_mut();
        while let Some((batch, run)) = runs.front_mut() {
            let mut known = batch.0.lock();
            while run.start < run.end {
                match known.of(run.start) {
                    Some(Ok(id)) => ids.push(id),
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    None => {
                        known.wait(slot, context.waker());
                        return Poll::Pending;
                    }
                }
                run.start += 1;
            }
            drop(known);
            (*slot, _) = (usize::MAX, runs.pop_front());
        }
        Poll::Ready(Ok(std::mem::take(ids)))
    }
}

impl Future for Receipt {
    type Output = Result<MessageId, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let receipt = self.get_mut();
        let mut known = receipt.batch.0.lock();
        match known.of(receipt.index) {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                known.wait(&mut receipt.slot, context.waker());
                Poll::Pending
            }
        }
    }
}
