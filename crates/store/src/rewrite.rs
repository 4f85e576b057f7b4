//! What was acknowledged and is not durable yet, kept so that it can be written elsewhere.
//!
//! After a failed sync the kernel may have marked pages as written that are not, and may drop them,
//! so that reading them back gives what was there before. So it is memory that they are written
//! from; it holds what the last sync has not covered, at most about two journal files.
//!
//! Law: the copy of a frame differs from it only in the file that its checksum names.

use crate::disk::DiskFile;
use crate::frame::FrameHeader;
use crate::topic::Batch;
use bytes::Bytes;
use danube_core::TopicId;
use std::io::{self, IoSlice};
use std::sync::Arc;

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
    /// What is beside messages, and they.
    Records(Vec<u8>, Arc<Vec<Bytes>>),
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
            Content::Records(extras, records) => {
                bytes.extend(extras);
                for record in records.iter() {
                    // The frame's limit keeps a record far below 4 GiB.
                    bytes.extend((record.len() as u32).to_le_bytes());
                    bytes.extend(record);
                }
            }
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
