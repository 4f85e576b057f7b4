//! The writing half of a `Publish` stream: what is to be told, and to whom it is owed.
//!
//! Answers come from the thread that wrote to the log, from topics and from the reading half, and go out
//! together as soon as the connection takes them. What this leaves to others: what the answers are.
//!
//! Law: every batch that is handed on is answered once, with offsets or a reason, whatever becomes
//! of it; and what waits for a client that does not read is bounded.

use super::refusal::Refused;
use crate::topic::BatchFault;
use danube_store::Appended;
use danube_wire::proto::stream as proto;
use danube_wire::stream::PublishResponse;
use parking_lot::Mutex;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{self, Poll, Waker};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tonic::Status;

/// Answers that may wait for a client that does not read; the stream is not read further meanwhile.
/// The messages of one batch can come on top.
const ANSWERS_MAX: usize = 16_384;

/// What waits to be told to the client: at most [`ANSWERS_MAX`], and what is under way.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    /// Rings when what waited was taken.
    taken: Notify,
}

#[derive(Default)]
struct OutboxState {
    ready: PublishResponse,
    /// Batches handed to a topic and not answered.
    under_way: u64,
    /// Producers that are let go once everything of theirs is answered.
    closing: Vec<(u32, Arc<AtomicU32>)>,
    waker: Option<Waker>,
    end: Option<Result<(), Status>>,
    is_told: bool,
}

impl Outbox {
    fn tell(&self, add: impl FnOnce(&mut OutboxState)) {
        let mut state = self.state.lock();
        add(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Tells of a producer that is attached.
    pub(super) fn opened(&self, opened: proto::ProducerOpened) {
        self.tell(|state| state.ready.opened.push(opened));
    }

    /// Tells that a producer is let go, once nothing of it is `under_way`.
    pub(super) fn close(&self, producer: u32, under_way: Arc<AtomicU32>) {
        self.tell(|state| {
            state.closing.push((producer, under_way));
            state.close_idle();
        });
    }

    /// Waits until a client that does not read leaves room for more answers.
    pub(super) async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.state.lock().answers() < ANSWERS_MAX {
                return;
            }
            taken.await;
        }
    }

    /// Ends the stream once everything under way is answered.
    pub(super) fn end(&self, status: Option<Status>) {
        self.tell(|state| state.end = Some(status.map_or(Ok(()), Err)));
    }

    /// Tells that messages are not stored, or with `count` 0 that a producer is not opened.
    pub(super) fn refuse(&self, producer: u32, first_sequence: u64, count: u32, refused: Refused) {
        self.tell(|state| {
            state.ready.refusals.push(refusal(producer, first_sequence, count, refused));
        });
    }
}

fn refusal(
    producer: u32,
    first_sequence: u64,
    count: u32,
    refused: Refused,
) -> proto::PublishRefusal {
    let Refused { refusal, reason, retry_after_ms } = refused;
    let refusal = refusal.into();
    proto::PublishRefusal { producer, first_sequence, count, refusal, reason, retry_after_ms }
}

impl OutboxState {
    fn answers(&self) -> usize {
        let PublishResponse { opened, acks, refusals, closed } = &self.ready;
        opened.len() + acks.len() + refusals.len() + closed.len()
    }

    /// Tells of the producers that are let go and have nothing under way any more.
    fn close_idle(&mut self) {
        let idle =
            |(_, under_way): &mut (u32, Arc<AtomicU32>)| under_way.load(Ordering::Acquire) == 0;
        let closed = self.closing.extract_if(.., idle);
        self.ready.closed.extend(closed.map(|(producer, _)| proto::ProducerClosed { producer }));
    }

    /// Adds an answer, to the one before where both sequences and offsets go on.
    fn acknowledge(&mut self, producer: u32, first_sequence: u64, appended: Appended) {
        let Appended { first, count } = appended;
        if let Some(last) = self.ready.acks.last_mut()
            && last.producer == producer
            && last.first_sequence + u64::from(last.count) == first_sequence
            && last.first_offset + u64::from(last.count) == first.0
            && let Some(together) = last.count.checked_add(count)
        {
            last.count = together;
            return;
        }
        let first_offset = first.0;
        self.ready.acks.push(proto::PublishAck { producer, first_sequence, first_offset, count });
    }
}

/// The writing half of a stream.
pub(crate) struct Answers {
    outbox: Arc<Outbox>,
    reading: AbortHandle,
    /// It has let others go first since it last told something.
    gave_way: bool,
}

impl Answers {
    /// Of a stream that is read by the task `reading`, which ends with it.
    pub(super) fn new(outbox: Arc<Outbox>, reading: AbortHandle) -> Answers {
        Answers { outbox, reading, gave_way: false }
    }
}

impl futures::Stream for Answers {
    type Item = Result<PublishResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut state = this.outbox.state.lock();
        if state.ready != PublishResponse::default() {
            // Once, those who wait for the messages: a consumer's wait is longer than a producer's, and
            // what is answered meanwhile goes with it.
            this.gave_way = !this.gave_way;
            if this.gave_way {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let ready = mem::take(&mut state.ready);
            this.outbox.taken.notify_one();
            return Poll::Ready(Some(Ok(ready)));
        }
        if state.under_way == 0 && state.end.is_some() {
            let end = state.end.clone().filter(|_| !mem::replace(&mut state.is_told, true));
            return Poll::Ready(end.and_then(Result::err).map(Err));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The answer to one batch. It is given even when the batch gets lost on its way to the log, as
/// when its topic stops with it in the mailbox.
pub(super) struct Answer {
    outbox: Arc<Outbox>,
    /// Batches of its producer that are not answered.
    under_way: Arc<AtomicU32>,
    producer: u32,
    first_sequence: u64,
    count: u32,
    result: Option<Result<Appended, BatchFault>>,
}

impl Answer {
    /// Counts a batch of a producer, from a sequence number on and of so many messages, as under
    /// way.
    pub(super) fn owed(
        outbox: &Arc<Outbox>,
        under_way: &Arc<AtomicU32>,
        (producer, first_sequence, count): (u32, u64, u32),
    ) -> Answer {
        under_way.fetch_add(1, Ordering::AcqRel);
        outbox.state.lock().under_way += 1;
        let (outbox, under_way) = (Arc::clone(outbox), Arc::clone(under_way));
        Answer { outbox, under_way, producer, first_sequence, count, result: None }
    }

    /// Tells what became of it.
    pub(super) fn tell(mut self, result: Result<Appended, BatchFault>) {
        self.result = Some(result);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let moved = || Err(BatchFault::Moved("the topic stopped; open the producer again".into()));
        let result = self.result.take().unwrap_or_else(moved);
        let (producer, first_sequence) = (self.producer, self.first_sequence);
        self.outbox.tell(|state| {
            self.under_way.fetch_sub(1, Ordering::AcqRel);
            state.under_way -= 1;
            match result {
                Ok(appended) => state.acknowledge(producer, first_sequence, appended),
                Err(fault) => {
                    let refused = refusal(producer, first_sequence, self.count, fault.into());
                    state.ready.refusals.push(refused);
                }
            }
            state.close_idle();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::Offset;

    fn waiting(outbox: &Outbox) -> PublishResponse {
        mem::take(&mut outbox.state.lock().ready)
    }

    #[test]
    fn a_batch_that_is_lost_on_its_way_is_answered_all_the_same() {
        let (outbox, under_way) = (Arc::new(Outbox::default()), Arc::default());
        drop(Answer::owed(&outbox, &under_way, (3, 7, 2)));
        let refusals = waiting(&outbox).refusals;
        let told = (refusals[0].producer, refusals[0].first_sequence, refusals[0].count);
        assert_eq!((told, refusals[0].refusal()), ((3, 7, 2), proto::Refusal::Moved));
        assert_eq!((outbox.state.lock().under_way, under_way.load(Ordering::Acquire)), (0, 0));
    }

    #[test]
    fn a_producer_is_let_go_after_what_it_sent_is_answered() {
        let (outbox, under_way) = (Arc::new(Outbox::default()), Arc::default());
        let answer = Answer::owed(&outbox, &under_way, (3, 7, 2));
        outbox.close(3, Arc::clone(&under_way));
        outbox.close(4, Arc::default());
        let closed = |response: PublishResponse| -> Vec<u32> {
            response.closed.iter().map(|closed| closed.producer).collect()
        };
        assert_eq!(closed(waiting(&outbox)), [4]);
        answer.tell(Ok(Appended { first: Offset(9), count: 2 }));
        let response = waiting(&outbox);
        assert_eq!(response.acks.len(), 1);
        assert_eq!(closed(response), [3]);
    }

    #[tokio::test]
    async fn an_answer_lets_others_go_first_once() {
        use futures::{FutureExt, StreamExt};
        let outbox = Arc::new(Outbox::default());
        let reading = tokio::spawn(std::future::pending::<()>());
        let mut answers = Answers::new(Arc::clone(&outbox), reading.abort_handle());
        for producer in [3, 4] {
            outbox.close(producer, Arc::default());
            assert!(answers.next().now_or_never().is_none(), "others first");
            outbox.close(producer + 10, Arc::default());
            let told = answers.next().await.expect("an answer").expect("no status");
            assert_eq!(told.closed.len(), 2, "with what came meanwhile");
        }
        outbox.end(None);
        assert!(answers.next().await.is_none());
    }

    #[tokio::test]
    async fn nothing_is_read_for_a_client_that_does_not_read() {
        let outbox = Outbox::default();
        outbox.room().await;
        for sequence in 1..=ANSWERS_MAX as u64 {
            let refused = Refused::new(proto::Refusal::Invalid, "no");
            outbox.refuse(3, sequence, 1, refused);
        }
        let room = outbox.room();
        assert!(futures::FutureExt::now_or_never(room).is_none());
        waiting(&outbox);
        outbox.taken.notify_one();
        outbox.room().await;
    }
}
