//! What was acknowledged and is not durable yet, kept so that it can be written elsewhere.
//!
//! After a failed sync the kernel may have marked pages as written that are not, and may drop them,
//! so that reading them back gives what was there before. So it is memory that they are written
//! from; it holds what no sync has covered yet: what one that runs beside the writing is for, and what
//! came meanwhile.
//!
//! Law: the copy of a frame differs from it only in the file that its checksum names.

use super::active::{Active, END};
use super::next::Blank;
use super::{Journal, Tip};
use crate::batch::RecordBatch;
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::frame::FrameHeader;
use crate::header::{journal_copy_path, journal_new_path};
use crate::shared::Shared;
use crate::topic::Batch;
use danube_core::TopicId;
use std::io::{self, IoSlice};
use std::sync::atomic::Ordering::Release;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// A frame that was acknowledged before a sync.
pub(crate) struct Kept {
    /// Its header.
    pub header: FrameHeader,
    /// What it holds.
    pub content: Content,
    /// Where it is, if it holds messages.
    pub batch: Option<Batch>,
}

/// Payload of a [`Kept`] frame.
pub(crate) enum Content {
    /// Messages.
    Messages(RecordBatch),
    /// Anything else.
    Payload(Vec<u8>),
}

/// A batch of messages that is elsewhere now.
pub(crate) struct Moved {
    /// Whose.
    pub topic: TopicId,
    /// What its index said.
    pub batch: Batch,
    /// Byte in the new file.
    pub to: u64,
}

/// Writes `kept` to byte `at` of `file`, journal file `sequence`. Returns what moved and where the
/// copies end.
pub(crate) fn copy_frames(
    kept: &[Kept],
    file: &dyn DiskFile,
    mut at: u64,
    sequence: u64,
) -> io::Result<(Vec<Moved>, u64)> {
    let mut moved = Vec::new();
    let (mut bytes, mut begin) = (Vec::new(), at);
    for Kept { header, content, batch } in kept {
        bytes.extend(header.encode(sequence));
        match content {
            Content::Payload(payload) => bytes.extend(payload),
            Content::Messages(batch) => bytes.extend(batch.payload()),
        }
        if let Some(batch) = batch {
            moved.push(Moved { topic: TopicId(header.topic), batch: *batch, to: at });
        }
        at += header.frame_len();
        if bytes.len() >= WRITE_BYTES {
            file.write_at(begin, &mut [IoSlice::new(&bytes)])?;
            bytes.clear();
            begin = at;
        }
    }
    if !bytes.is_empty() {
        file.write_at(begin, &mut [IoSlice::new(&bytes)])?;
    }
    Ok((moved, at))
}

impl Journal {
    /// Writes what was acknowledged and is not durable into a new file. Until that has succeeded,
    /// the old files are what a restart reads.
    pub(super) fn rewrite(&mut self, next_lsn: u64) -> Result<(), AppendError> {
        let before = self.kept.first().map_or(Tip::default(), |kept| Tip::before(&kept.header));
        let tip = Tip { lsn: self.durable_lsn, ..before };
        // Nobody else may be at work under the temporary name.
        self.forget_next();
        let bytes = self.kept.iter().map(|kept| kept.header.frame_len()).sum();
        let Shared { disk, options, .. } = &*self.shared;
        // No restart takes it up under this name, whatever it has by then.
        let temporary = journal_copy_path(&options.dir);
        let blank = Blank::make(&self.shared, bytes, &temporary);
        let mut active =
            Active::begin(&self.shared, self.next_sequence, tip, blank, temporary.clone())?;
        let copied = copy_frames(&self.kept, &*active.file, active.len, active.sequence);
        let copied = copied.and_then(|copied| {
            // The end of a group, as a reused file needs it.
            if active.reused {
                active.file.write_at(copied.1, &mut [IoSlice::new(&END)])?;
            }
            active.file.sync_data().map(|()| copied)
        });
        let (moved, len) = copied.map_err(|error| {
            let _ = disk.remove(&temporary);
            AppendError::io("write again what was not synced into", &active.path, &error)
        })?;
        (active.len, active.synced_len) = (len, len);
        active.name(&self.shared)?;
        // What had the same place and no name.
        let _ = disk.remove(&journal_new_path(&options.dir));
        let count = moved.len();
        self.relocate(&moved, active.sequence);
        self.shared.rewrites.fetch_add(1, Release);
        tracing::warn!(path = %active.path.display(), frames = count, "wrote again what a failed sync left unsafe");
        self.all_durable(next_lsn);
        self.install(active);
        Ok(())
    }

    /// Tells the topics where their batches are now.
    fn relocate(&self, moved: &[Moved], file: u64) {
        let topics = self.shared.topics.read();
        for Moved { topic, batch: was, to } in moved {
            let Some(topic) = topics.get(topic) else { continue };
            let mut state = topic.state.lock();
            let at = state.index.partition_point(|batch| batch.first < was.first);
            if let Some(batch) = state.index.get_mut(at).filter(|batch| *batch == was) {
                (batch.file, batch.position) = (file, *to);
            }
        }
    }
}
