//! Finding a segment's frames in the journal file that it took over, where its index does not say.
//!
//! A failed write may have left frames in the file that were never acknowledged. They stand behind
//! those that count, so their offsets are not the segment's or were seen before. Only where the
//! frame that counts is damaged too may one stand in for it: what its publisher was told failed.
//! What a found frame holds is checked by whoever reads it.
//!
//! Law: what is found is in order, of the topic and within the segment, and has a whole header.

use super::SegmentRef;
use crate::disk::DiskFile;
use crate::frame::{FrameHeader, FrameKind};
use crate::header::FILE_HEADER_LEN;
use crate::scan::Scan;
use crate::topic::Batch;
use danube_core::TopicId;
use std::io;
use std::sync::Arc;

/// The frames of `segment` of `topic` in `file`, which is journal file `sequence`.
pub(super) fn search(
    file: Arc<dyn DiskFile>,
    topic: TopicId,
    segment: &SegmentRef,
    sequence: u64,
) -> io::Result<Vec<Batch>> {
    let mut scan = Scan::new(file, sequence)?;
    let (mut next, mut position) = (segment.base, FILE_HEADER_LEN as u64);
    let mut batches = Vec::new();
    while let Some(at) = scan.next_frame(position)? {
        let Some(header) = scan.header(at)? else { break };
        position = at + header.frame_len();
        // Numbers rise from frame to frame, and those that a failed write left are given again.
        scan.accept(header.lsn..u64::MAX);
        let FrameHeader { first, time, count, payload_len, .. } = header;
        let end = first.checked_add(count.into());
        let is_ours = header.kind == FrameKind::Messages
            && header.topic == topic.0
            && first >= next
            && count > 0
            && end.is_some_and(|end| end <= segment.end);
        if is_ours {
            let batch = Batch { first, file: sequence, position: at, time, count, payload_len };
            next = batch.end();
            batches.push(batch);
        }
    }
    Ok(batches)
}
