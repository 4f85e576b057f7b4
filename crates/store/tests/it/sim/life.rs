//! One burst of work, sent to the store so that it is grouped the same way each time.
//!
//! The first append of a burst carries a mark; the disk holds the write that contains it, and
//! the rest of the burst is sent while the writer waits there. So the writer finds all of it in
//! its queue at once, whatever the threads' timing.

use super::disk::SimDisk;
use super::lies::Lie;
use bytes::Bytes;
use danube_core::sequence::Origin;
use danube_core::subscription::progress::{ProgressRecord, Step};
use danube_core::{SubscriptionId, WalSyncMode};
use danube_store::{AppendError, ReadError, ReadLimit, RecordBatchBuilder, TopicLog};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Longer than any step takes; reached only when the store hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something asked of the store.
#[derive(Debug, Clone)]
pub enum Request {
    /// An append.
    Append(Vec<Bytes>),
    /// An append of a producer.
    From(Vec<Bytes>, Origin),
    /// An append, and a step of another topic's subscription in the same write.
    Both(Vec<Bytes>, TopicLog, Step),
    /// A step of a subscription.
    Record(u32, Step),
}

/// A request, and of which topic.
#[derive(Clone)]
pub struct Work {
    /// Place of the topic in the history's list.
    pub topic: usize,
    /// Its log.
    pub log: TopicLog,
    /// How it is to be acknowledged.
    pub mode: WalSyncMode,
    /// What is asked.
    pub request: Request,
}

/// The answer to a request: the first offset of an append.
pub type Answer = Result<u64, AppendError>;

/// Sends `work`, its first append held by its `mark` until the rest is sent, and waits for all
/// answers. `None` stands for one that never comes. `while_held` is called while the writer waits.
pub fn burst(
    disk: &SimDisk,
    lie: Option<Lie>,
    mark: &[u8],
    work: &[Work],
    while_held: impl FnOnce(),
) -> Vec<Option<Answer>> {
    let Some((first, rest)) = work.split_first() else { return Vec::new() };
    disk.hold(mark);
    // By a thread of its own, since it may be the one that writes.
    let (sent, gate) = (first.clone(), disk.clone());
    let sender = thread::spawn(move || send(&sent, lie, Some(gate)));
    let held = || sender.join().expect("sending does not panic");
    if disk.wait_for_held() {
        while_held();
        let answers: Vec<_> = rest.iter().map(|work| send(work, lie, None)).collect();
        disk.release();
        return [held()].iter().chain(&answers).map(wait).collect();
    }
    // Refused before it was written; so one by one.
    disk.release();
    let mut answers = vec![wait(&held())];
    answers.extend(rest.iter().map(|work| wait(&send(work, lie, None))));
    answers
}

/// Sends `work` and waits for its answer; `None` stands for one that never comes.
pub fn alone(lie: Option<Lie>, work: &Work) -> Option<Answer> {
    wait(&send(work, lie, None))
}

fn wait(answer: &Receiver<Answer>) -> Option<Answer> {
    answer.recv_timeout(PATIENCE).ok()
}

fn send(work: &Work, lie: Option<Lie>, gate: Option<SimDisk>) -> Receiver<Answer> {
    let (tell, answer) = mpsc::sync_channel(1);
    let tell = move |outcome: Answer| {
        if let Some(disk) = &gate {
            disk.miss();
        }
        let _ = tell.send(outcome);
    };
    match &work.request {
        Request::Append(records) => {
            let mode = Lie::mode(lie, work.mode, false);
            work.log.append(records.clone(), mode, move |outcome| {
                tell(outcome.map(|appended| appended.first.0));
            });
        }
        Request::From(records, origin) => {
            let mode = Lie::mode(lie, work.mode, false);
            let mut batch = RecordBatchBuilder::numbered(*origin, 0, 0);
            records.iter().for_each(|record| batch.push(|out| out.extend_from_slice(record)));
            let batch = batch.build().expect("a request has records");
            work.log.append_batch(batch, mode, move |outcome| {
                tell(outcome.map(|appended| appended.first.0));
            });
        }
        Request::Both(records, other, step) => {
            let mode = Lie::mode(lie, work.mode, false);
            let step = ProgressRecord { subscription: SubscriptionId::REPLAY, step: step.clone() };
            let also = vec![(other.clone(), vec![step])];
            work.log.append_with(records.clone(), also, mode, move |outcome| {
                tell(outcome.map(|appended| appended.first.0));
            });
        }
        Request::Record(subscription, step) => {
            let subscription = SubscriptionId(*subscription);
            let records = vec![ProgressRecord { subscription, step: step.clone() }];
            let mode = Lie::mode(lie, work.mode, true);
            work.log.record(records, mode, move |outcome| tell(outcome.map(|()| 0)));
        }
    }
    answer
}

/// Everything in a topic, read a little at a time.
pub fn read_all(log: &TopicLog, limit: ReadLimit) -> Result<Vec<(u64, Bytes)>, String> {
    let mut messages = Vec::new();
    let mut from = log.bounds().start;
    loop {
        let (tell, answer) = mpsc::sync_channel(1);
        log.read(from, limit, move |outcome: Result<_, ReadError>| {
            let _ = tell.send(outcome);
        });
        let batch = answer.recv_timeout(PATIENCE).map_err(|_| "a read never answers".to_owned())?;
        let batch = batch.map_err(|error| error.to_string())?;
        if batch.records.is_empty() {
            return Ok(messages);
        }
        messages.extend(batch.records.into_iter().map(|(offset, bytes)| (offset.0, bytes)));
        if batch.next <= from {
            return Err(format!("a read of offset {from:?} goes on at {:?}", batch.next));
        }
        from = batch.next;
    }
}
