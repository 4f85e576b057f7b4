//! Writes that have become frames, and what comes of them.
//!
//! Law: what is taken back has consumed no offset that anybody was promised.

use super::numbered::origin_of;
use super::{Writer, frame_len};
use crate::error::AppendError;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind};
use crate::journal::Tip;
use crate::journal::{Content, Kept};
use crate::shared::{Also, Work, Write, answer};
use crate::topic::{Batch, Topic};
use crate::topic_log::Appended;
use danube_core::{Epoch, Offset, TopicId, WalSyncMode};
use std::sync::Arc;

/// A write with its place in the journal.
pub(super) struct Framed {
    pub topic: Arc<Topic>,
    pub work: Work,
    pub batch: Batch,
    pub header: FrameHeader,
}

impl Writer {
    /// Header of the next frame; payload length and checksum are still to come.
    fn header(&mut self, topic: TopicId, epoch: Epoch, kind: FrameKind) -> FrameHeader {
        let header = FrameHeader {
            payload_crc: 0,
            payload_len: 0,
            lsn: self.tip.lsn,
            first: 0,
            topic: topic.0,
            epoch: epoch.0,
            count: 0,
            previous: self.tip.topic,
            kind,
            jump: false,
            synced_mode: false,
            extras: false,
            previous_extras: self.tip.extras,
            unsynced: u32::try_from(self.tip.lsn - self.journal.durable_lsn()).unwrap_or(u32::MAX),
            time: self.now,
        };
        self.tip = Tip { lsn: self.tip.lsn.saturating_add(1), topic: topic.0, extras: false };
        header
    }

    /// Frames that `topic` is forgotten.
    pub(super) fn frame_forgotten(&mut self, topic: &Topic, file: u64) -> Kept {
        let epoch = topic.state.lock().epoch;
        let header = self.header(topic.id, Epoch(epoch), FrameKind::TopicForgotten);
        let header = self.group.payload(header, &[], file);
        Kept { header, content: Content::Payload(Vec::new()), batch: None }
    }

    /// Gives `write` its offsets and its place. `async` appends are answered here.
    pub(super) fn frame(&mut self, write: Write, file: u64, start: u64) -> Framed {
        let Write { topic, epoch, sync, mut work } = write;
        let position = start + self.group.len();
        let payload_len = (frame_len(&work) - FRAME_HEADER_LEN) as u32;
        let synced_mode = sync == WalSyncMode::FsyncBatch;
        let mut batch = Batch { first: 0, file, position, time: self.now, count: 0, payload_len };
        let header = match &mut work {
            Work::Append { batch: laid, done, .. } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Messages);
                // The queue's limits keep the count far below 2^32.
                header.count = laid.len() as u32;
                let mut state = topic.state.lock();
                header.first = state.next_free(synced_mode);
                header.jump = header.first > state.framed;
                if header.jump {
                    (state.floor, state.tail_lost) = (header.first, false);
                }
                header.synced_mode = synced_mode;
                header.extras = laid.has_extras();
                self.tip.extras = header.extras;
                header.time = self.now.max(state.time);
                batch.time = header.time;
                (batch.first, batch.count) = (header.first, header.count);
                state.framed = batch.end();
                drop(state);
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(appended(&batch)));
                }
                self.group.messages(header, laid, file)
            }
            Work::Record { records, payload, done } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Progress);
                header.count = records.len() as u32;
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(()));
                }
                self.group.payload(header, payload, file)
            }
        };
        Framed { topic, work, batch, header }
    }
}

/// Makes progress visible that was written with messages of another topic.
pub(super) fn record_also(also: Vec<Also>) {
    for (topic, _, records) in also {
        let mut state = topic.state.lock();
        if !state.forgotten {
            state.recorded = true;
            records.iter().for_each(|record| state.apply(record));
        }
    }
}

/// Undoes the framing of writes that failed, and tells their callers.
pub(super) fn take_back(framed: Vec<Framed>, error: &AppendError) {
    for Framed { topic, .. } in &framed {
        let mut state = topic.state.lock();
        state.framed = state.next;
        state.sequences.take_back();
    }
    for Framed { topic, work, batch, .. } in framed {
        if let Work::Append { done: None, .. } = &work {
            // An `async` append was answered; its offsets are lost but must not mean another
            // message.
            let mut state = topic.state.lock();
            state.floor = state.floor.max(batch.end());
            if let Some(origin) = origin_of(&work) {
                state.sequences.stored(&origin, batch.count, Offset(batch.first));
            }
        }
        work.refuse(error.clone());
    }
}

/// What its caller is told.
pub(super) fn appended(batch: &Batch) -> Appended {
    Appended { first: Offset(batch.first), count: batch.count }
}
