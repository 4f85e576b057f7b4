//! What holds of a segment in which damage was found: every block or frame of it that does.
//!
//! The checkpoint says which segment it is, how far it reaches and how many messages it has, so
//! nothing that its file says of itself has to hold. Blocks follow one another; behind a block
//! whose header does not hold, the next one is searched for byte by byte, as an index knows only
//! some of them. Frames are where the index says, or where a search finds them. What becomes of it
//! is for the doctor.
//!
//! Law: what is handed on is whole, in order, and the segment's own; what is lost is named once,
//! and what the disk refuses to read is an error and never a loss.

use super::blocks::{Blocks, CHUNK_NEXT};
use super::read::damaged;
use super::taken::Taken;
use super::{Block, BlockHeader, HEADER_LEN, OpenSegment, SegmentFault, SegmentId, SegmentRef};
use crate::disk::Disk;
use crate::header::FILE_HEADER_LEN;
use crate::runs::{RUN_MAX, frame_len};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Something that does not hold.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// Where, and what is wrong there; always damage.
    pub fault: SegmentFault,
    /// Offsets lost by it. None if it only leads to messages, which are there.
    pub lost: Range<u64>,
}

/// Hands all that holds of `segment` to `take`, until it wants no more, and tells what does not.
///
/// # Errors
/// [`SegmentFault::Io`] when the disk refuses to read.
pub(crate) fn salvage(
    disk: &dyn Disk,
    dir: &Path,
    id: SegmentId,
    segment: &SegmentRef,
    take: &mut dyn FnMut(Block) -> bool,
) -> Result<Vec<Flaw>, SegmentFault> {
    let (flaws, gap) = (Vec::new(), None);
    let mut walk = Walk { segment, take, flaws, next: segment.base, records: 0, gap };
    let walked = match OpenSegment::open(disk, dir, id, segment) {
        Ok(OpenSegment::Blocks(mut blocks)) => walk.blocks(&mut blocks),
        Ok(OpenSegment::Taken(mut taken)) => walk.frames(&mut taken, false),
        Err(fault) => {
            let fault = as_damage(fault)?;
            walk.without_index(disk, dir, id, fault)
        }
    };
    walked.map(|()| walk.end())
}

/// A file that is missing is damage; what the disk refuses is not.
fn as_damage(fault: SegmentFault) -> Result<SegmentFault, SegmentFault> {
    match fault {
        SegmentFault::Io { journal, error } if error.kind() == ErrorKind::NotFound => {
            let what = match journal {
                Some(_) => "the journal file that has the segment's messages is missing",
                None => "the segment is missing",
            };
            Ok(SegmentFault::Damaged { journal, position: 0, what })
        }
        SegmentFault::Io { .. } => Err(fault),
        damage @ SegmentFault::Damaged { .. } => Ok(damage),
    }
}

struct Walk<'a> {
    segment: &'a SegmentRef,
    take: &'a mut dyn FnMut(Block) -> bool,
    flaws: Vec<Flaw>,
    /// One past the last offset that is accounted for.
    next: u64,
    /// Messages that hold.
    records: u64,
    /// Something that does not hold and of which nobody knows how far it reaches, until the next
    /// offset is known.
    gap: Option<SegmentFault>,
}

impl Walk<'_> {
    /// Goes on where header, footer or index do not hold, as `fault` says.
    fn without_index(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        id: SegmentId,
        fault: SegmentFault,
    ) -> Result<(), SegmentFault> {
        let found = match self.segment.journal {
            None => {
                let file = disk.open(&id.path(dir)).map_err(SegmentFault::from);
                let blocks = file.and_then(|file| Blocks::bare(file, id, self.segment));
                blocks.map(OpenSegment::Blocks)
            }
            Some(sequence) => {
                Taken::searched(disk, dir, id, self.segment, sequence).map(OpenSegment::Taken)
            }
        };
        match found {
            Ok(open) => {
                self.flaws.push(Flaw { fault, lost: self.next..self.next });
                match open {
                    OpenSegment::Blocks(mut blocks) => self.blocks(&mut blocks),
                    OpenSegment::Taken(mut taken) => self.frames(&mut taken, true),
                }
            }
            Err(missing) => {
                self.gap = Some(as_damage(missing)?);
                Ok(())
            }
        }
    }

    fn blocks(&mut self, blocks: &mut Blocks) -> Result<(), SegmentFault> {
        let mut position = HEADER_LEN as u64;
        while position < blocks.end() {
            let header = match self.header(blocks, position) {
                Ok(header) => header,
                Err(fault) => {
                    self.gap.get_or_insert(as_damage(fault)?);
                    let rest = self.next..self.segment.end;
                    let Some(next) = blocks.next_header(position + 1, &rest)? else { break };
                    position = next;
                    continue;
                }
            };
            match blocks.batch(position, &header) {
                Ok(batch) => {
                    if !self.holds(Block { header, batch }) {
                        break;
                    }
                }
                Err(fault) => self.lose(as_damage(fault)?, header.first, header.count),
            }
            position += header.block_len();
        }
        Ok(())
    }

    /// The header of the block at `position`, if one that may come next begins there.
    fn header(&self, blocks: &mut Blocks, position: u64) -> Result<BlockHeader, SegmentFault> {
        let header = blocks.header(position, CHUNK_NEXT)?;
        let end = header.first + u64::from(header.count);
        let is_next = self.next <= header.first && end <= self.segment.end;
        is_next.then_some(header).ok_or_else(|| damaged(position, "a block of other offsets"))
    }

    /// With `searched`, offsets between its frames are those of frames that were not found.
    fn frames(&mut self, taken: &mut Taken, searched: bool) -> Result<(), SegmentFault> {
        let what = "frames cannot be found without the segment's index";
        let mut behind = FILE_HEADER_LEN as u64;
        for at in 0..taken.batches().len() {
            let batch = taken.batches()[at];
            if searched && self.next < batch.first {
                self.gap.get_or_insert(damaged(behind, what).within(batch.file));
            }
            match taken.block(at, RUN_MAX) {
                Ok(block) => {
                    if !self.holds(block) {
                        return Ok(());
                    }
                }
                Err(fault) => self.lose(as_damage(fault)?, batch.first, batch.count),
            }
            behind = batch.position + frame_len(&batch);
        }
        if let Some(sequence) = self.segment.journal.filter(|_| searched) {
            self.gap.get_or_insert(damaged(behind, what).within(sequence));
        }
        Ok(())
    }

    /// Hands `block` on; whether more is wanted.
    fn holds(&mut self, block: Block) -> bool {
        let BlockHeader { first, count, .. } = block.header;
        self.known(first);
        self.next = first + u64::from(count);
        self.records = self.records.saturating_add(count.into());
        (self.take)(block)
    }

    /// Of `count` messages from offset `first` on it is known that they are lost.
    fn lose(&mut self, fault: SegmentFault, first: u64, count: u32) {
        self.known(first);
        self.next = first + u64::from(count);
        self.flaw(fault, first..self.next);
    }

    /// What comes next begins at offset `first`.
    fn known(&mut self, first: u64) {
        if let Some(fault) = self.gap.take() {
            self.flaw(fault, self.next..first);
        }
    }

    fn flaw(&mut self, fault: SegmentFault, lost: Range<u64>) {
        if lost.is_empty() && !self.flaws.is_empty() {
            // Behind the last block may be what is left of an index that was named already.
            return;
        }
        let last = self.flaws.last_mut().filter(|last| !last.lost.is_empty());
        match last.filter(|last| last.lost.end == lost.start) {
            Some(last) => last.lost.end = lost.end,
            None => self.flaws.push(Flaw { fault, lost }),
        }
    }

    fn end(mut self) -> Vec<Flaw> {
        self.known(self.segment.end);
        if self.records == self.segment.records {
            // All of them are there: offsets that are not had no message.
            self.flaws.iter_mut().for_each(|flaw| flaw.lost.end = flaw.lost.start);
        }
        self.flaws
    }
}
