//! What a topic's handle sends to the writer: messages, progress, producers that are opened.
//!
//! Law: what can never be written is refused here, before it takes room in the queue.

use super::{Appended, TopicLog};
use crate::batch::{RecordBatch, RecordBatchBuilder};
use crate::error::AppendError;
use crate::extras::{Also, Extras};
use crate::frame::{FRAME_HEADER_LEN, FRAME_PAYLOAD_MAX, RECORD_LEN_BYTES};
use crate::shared::{Command, Open, Shared, Work, Write, answer};
use crate::step;
use crate::writer::{frame_len, write_here};
use bytes::{BufMut, Bytes};
use danube_core::sequence::Opened;
use danube_core::subscription::progress::ProgressRecord;
use danube_core::{ProducerId, WalSyncMode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl TopicLog {
    /// Appends `records` as one batch: all of them or none. Offsets are given in the order in
    /// which appends come.
    ///
    /// `done` is called once: with the offsets when the log has what `sync` promises, or with an
    /// error when nothing was appended. It runs on the thread that wrote: the writer's own, or the
    /// caller's, when it is refused or written at once. So it must be cheap, must not wait and must
    /// not need a lock that the caller holds: send to a channel and return.
    /// An `async` append is answered before it is written; readers see it after.
    pub fn append(
        &self,
        records: Vec<Bytes>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        match self.lay_out(&Extras::default(), &records) {
            Ok(batch) => self.append_batch(batch, sync, done),
            Err(error) => done(Err(error)),
        }
    }

    /// Appends `batch` as [`append`](Self::append) does. One that its producer numbered is stored
    /// once: if it was stored before, it is answered with the offsets that it has.
    ///
    /// `done` gets [`AppendError::Sequence`] when the batch must not be stored where it comes.
    pub fn append_batch(
        &self,
        batch: RecordBatch,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        let also = Vec::new();
        self.write(Work::Append { batch, also, done: Some(Box::new(done)) }, sync);
    }

    /// Opens `producer` anew: batches of its earlier epochs are refused from then on. It is done
    /// after everything that was asked before, so the last sequence that it answers is final.
    ///
    /// `done` is called as that of [`append`](Self::append).
    pub fn open_producer(
        &self,
        producer: ProducerId,
        done: impl FnOnce(Result<Opened, AppendError>) + Send + 'static,
    ) {
        let open = Open { topic: Arc::clone(&self.topic), producer, done: Box::new(done) };
        if let Err((refused, Command::Open(open))) =
            self.shared.commands.push(Command::Open(open), 0)
        {
            answer(Some(open.done), Err(refused.into()));
        }
    }

    /// As [`append`](Self::append), and records progress of other topics of the same store, or of
    /// this one, with it: all of it or nothing, whatever happens. `sync` is to be the strongest of
    /// what the topics ask for. What would refuse an append or a recording of any of them refuses
    /// it all.
    pub fn append_with(
        &self,
        records: Vec<Bytes>,
        also: Vec<(TopicLog, Vec<ProgressRecord>)>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        if let Some((other, _)) = also.iter().find(|(it, _)| !Arc::ptr_eq(&it.shared, &self.shared))
        {
            return done(Err(AppendError::Elsewhere(other.id())));
        }
        let also: Vec<_> = also.into_iter().filter(|(_, records)| !records.is_empty()).collect();
        let each = also.iter().map(|(log, records)| Also {
            topic: log.id(),
            epoch: log.epoch.0,
            records: records.clone(),
        });
        let extras = Extras { origin: None, also: each.collect() };
        let batch = match self.lay_out(&extras, &records) {
            Ok(batch) => batch,
            Err(error) => return done(Err(error)),
        };
        let also = also.into_iter().map(|(log, records)| (log.topic, log.epoch, records)).collect();
        self.write(Work::Append { batch, also, done: Some(Box::new(done)) }, sync);
    }

    /// Records `progress` of subscriptions of this topic. Nothing to record succeeds at once.
    ///
    /// `done` is called as that of [`append`](Self::append).
    pub fn record(
        &self,
        progress: Vec<ProgressRecord>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<(), AppendError>) + Send + 'static,
    ) {
        if progress.is_empty() {
            return done(Ok(()));
        }
        let payload = step::encode(&progress);
        self.write(Work::Record { records: progress, payload, done: Some(Box::new(done)) }, sync);
    }

    /// `records` as a batch, with `extras` before them.
    fn lay_out(&self, extras: &Extras, records: &[Bytes]) -> Result<RecordBatch, AppendError> {
        let bytes: usize = records.iter().map(Bytes::len).sum();
        let laid = bytes.saturating_add(records.len() * RECORD_LEN_BYTES);
        // Before it is copied; with its extras it is looked at again.
        self.fits(FRAME_HEADER_LEN + laid)?;
        let mut builder = RecordBatchBuilder::begin(extras, records.len(), bytes);
        records.iter().for_each(|record| builder.push(|out| out.put_slice(record)));
        builder.build().ok_or(AppendError::Empty)
    }

    fn fits(&self, bytes: usize) -> Result<(), AppendError> {
        let frame_max = FRAME_HEADER_LEN + FRAME_PAYLOAD_MAX;
        let max = frame_max.min(self.shared.options.queue_bytes_max);
        if bytes > max { Err(AppendError::TooLarge { bytes, max }) } else { Ok(()) }
    }

    fn write(&self, work: Work, sync: WalSyncMode) {
        let bytes = frame_len(&work);
        if let Err(error) = self.fits(bytes) {
            return work.refuse(error);
        }
        let write = Write { topic: Arc::clone(&self.topic), epoch: self.epoch, sync, work };
        let Shared { commands, easy_bytes, easy_sync_bytes, .. } = &*self.shared;
        let waits = sync == WalSyncMode::FsyncBatch;
        let easy = if waits { easy_sync_bytes } else { easy_bytes };
        let easy = bytes as u64 <= easy.load(Relaxed);
        let write = Command::Write(write);
        let pushed = if easy {
            commands.push_or_borrow(write, bytes)
        } else {
            commands.push(write, bytes).map(|()| None)
        };
        match pushed {
            Ok(None) => {}
            Ok(Some(borrowed)) => write_here(&self.shared, borrowed),
            Err((refused, command)) => {
                self.shared.counters.refused.fetch_add(1, Relaxed);
                if let Command::Write(write) = command {
                    write.work.refuse(refused.into());
                }
            }
        }
    }
}
