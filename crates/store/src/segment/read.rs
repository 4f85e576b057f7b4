//! Reading a segment of either kind: from an offset on, or the first offset at a time.
//!
//! Law: what leaves here has its checksums checked, and belongs to the segment that was asked for.

use super::blocks::Blocks;
use super::taken::{Taken, frames_path, read_index};
use super::{
    BLOCKS_VERSION, BlockHeader, FOOTER_LEN, Footer, HEADER_LEN, SegmentId, SegmentRef,
    TAKEN_VERSION,
};
use crate::batch::RecordBatch;
use crate::disk::{Disk, DiskFile, read_available};
use std::io;
use std::path::{Path, PathBuf};

/// Why a segment could not be read; if it has a `journal`, in which journal file that it has taken
/// over.
#[derive(Debug)]
pub(crate) enum SegmentFault {
    /// The disk refused.
    Io {
        /// Sequence of the journal file.
        journal: Option<u64>,
        /// What it said.
        error: io::Error,
    },
    /// The bytes are not those that were written.
    Damaged {
        /// Sequence of the journal file.
        journal: Option<u64>,
        /// Byte of the file.
        position: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

impl From<io::Error> for SegmentFault {
    fn from(error: io::Error) -> SegmentFault {
        SegmentFault::Io { journal: None, error }
    }
}

impl SegmentFault {
    /// The same in journal file `sequence`.
    pub(super) fn within(self, sequence: u64) -> SegmentFault {
        let journal = Some(sequence);
        match self {
            SegmentFault::Io { error, .. } => SegmentFault::Io { journal, error },
            SegmentFault::Damaged { position, what, .. } => {
                SegmentFault::Damaged { journal, position, what }
            }
        }
    }

    /// Which file it is about, if segment `id` of data directory `dir` has it.
    pub(crate) fn path(&self, dir: &Path, id: &SegmentId) -> PathBuf {
        let (SegmentFault::Io { journal, .. } | SegmentFault::Damaged { journal, .. }) = self;
        match journal {
            // Its name from the next checkpoint on, if not now.
            Some(sequence) => frames_path(dir, *sequence),
            None => id.path(dir),
        }
    }
}

pub(super) fn damaged(position: u64, what: &'static str) -> SegmentFault {
    SegmentFault::Damaged { journal: None, position, what }
}

/// A block as read, or a frame.
pub(crate) struct Block {
    /// Its header.
    pub header: BlockHeader,
    /// Its records.
    pub batch: RecordBatch,
}

/// An open segment with its index, and the bytes read ahead.
pub(crate) enum OpenSegment {
    /// With its messages in blocks.
    Blocks(Blocks),
    /// With its messages in a journal file.
    Taken(Taken),
}

impl OpenSegment {
    /// Opens `segment` of the topic that `id` names.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        id: SegmentId,
        segment: &SegmentRef,
    ) -> Result<OpenSegment, SegmentFault> {
        let file = disk.open(&id.path(dir))?;
        match (read_kind(&*file, &id)?, segment.journal) {
            (None, None) => Blocks::open(file, id, segment).map(OpenSegment::Blocks),
            (Some(said), Some(sequence)) if said == sequence => {
                Taken::open(disk, dir, &*file, id, segment, sequence).map(OpenSegment::Taken)
            }
            _ => Err(damaged(0, "it is another segment")),
        }
    }

    /// Hands the blocks from the one on that may hold `from` to `take`, until it wants no more.
    pub(crate) fn read(
        &mut self,
        from: u64,
        take: &mut dyn FnMut(Block) -> bool,
    ) -> Result<(), SegmentFault> {
        match self {
            OpenSegment::Blocks(blocks) => blocks.read(from, take),
            OpenSegment::Taken(taken) => taken.read(from, take),
        }
    }

    /// The first offset with a time of `at` or later, if there is one.
    pub(crate) fn offset_at(&mut self, at: u64) -> Result<Option<u64>, SegmentFault> {
        match self {
            OpenSegment::Blocks(blocks) => blocks.offset_at(at),
            OpenSegment::Taken(taken) => Ok(taken.offset_at(at)),
        }
    }
}

/// What the file of segment `id` says that it is, where no checkpoint says so.
pub(crate) fn survey(
    disk: &dyn Disk,
    dir: &Path,
    id: SegmentId,
) -> Result<SegmentRef, SegmentFault> {
    let file = disk.open(&id.path(dir))?;
    if let Some(sequence) = read_kind(&*file, &id)? {
        return Ok(read_index(&*file, &id, sequence)?.0);
    }
    let bytes = file.len()?;
    let footer = read_footer(&*file, &id, bytes.saturating_sub(FOOTER_LEN as u64))?;
    Ok(SegmentRef {
        base: id.base,
        end: footer.end,
        generation: id.generation,
        bytes,
        records: footer.records,
        first_time: footer.first_time,
        last_time: footer.last_time,
        journal: None,
    })
}

/// Which journal file `file`, which is to be segment `id`, has taken over, if one.
fn read_kind(file: &dyn DiskFile, id: &SegmentId) -> Result<Option<u64>, SegmentFault> {
    let mut header = [0; HEADER_LEN];
    let filled = read_available(file, 0, &mut header)?;
    match SegmentId::decode_header(&header).filter(|_| filled == HEADER_LEN) {
        Some((BLOCKS_VERSION, said, _)) if said == *id => Ok(None),
        Some((TAKEN_VERSION, said, journal)) if said == *id => Ok(Some(journal)),
        Some((BLOCKS_VERSION | TAKEN_VERSION, ..)) => Err(damaged(0, "it is another segment")),
        Some(_) => Err(damaged(0, "its format is that of another version")),
        None => Err(damaged(0, "its header does not hold")),
    }
}

/// The footer of segment `id` at byte `at`.
pub(super) fn read_footer(
    file: &dyn DiskFile,
    id: &SegmentId,
    at: u64,
) -> Result<Footer, SegmentFault> {
    let mut footer = [0; FOOTER_LEN];
    let filled = read_available(file, at, &mut footer)?;
    let footer = Footer::decode(&footer, id).filter(|_| filled == FOOTER_LEN);
    footer.ok_or_else(|| damaged(at, "its footer does not hold"))
}
