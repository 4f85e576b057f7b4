//! From the bytes of a crashed process back to the state of every topic.
//!
//! It begins with the last checkpoint, and reads the journal files after it.
//!
//! Two kinds of damage are kept apart. What is torn at the end was never promised to survive
//! ([`torn`](crate::torn)): it is left out, with one warning, and void from then on. Damage
//! anywhere else hit what was promised: the topics it may have hit are stopped, and named.
//!
//! Whose frame was damaged is known when its header holds; else from the frame after it, which
//! names the topic before, when exactly one is missing. When more are missing, every topic known
//! so far is suspect until its next messages follow on exactly from those before.
//!
//! Law: no bytes make it panic, and nothing readable of a topic that is not stopped is lost.

use crate::checkpoint::{self, Loaded};
use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::header::{FileHeader, journal_new_path};
use crate::journal::Tip;
use crate::listing::{Found, find};
use crate::options::RecoveryProgress;
use crate::restore::{self, Restored};
use crate::secure::{Unsecured, mark};
use crate::segment::SegmentId;
use crate::tend::Taken;
use crate::topic::TopicState;
use danube_core::{Incarnation, TopicId};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

mod files;
mod foreign;
mod frames;

use foreign::{check_catalog, check_checkpoint};

/// What recovery found.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// State of each topic that the log has anything of.
    pub topics: HashMap<TopicId, TopicState>,
    /// Journal files, each with its first log sequence number.
    pub files: BTreeMap<u64, u64>,
    /// Files that wait to be journal files again.
    pub spares: Vec<PathBuf>,
    /// Files that nothing needs any more.
    pub leavings: Vec<PathBuf>,
    /// Journal files that segments have taken over.
    pub taken: Taken,
    /// Sequence of the next file.
    pub next_sequence: u64,
    /// Where the next frame goes.
    pub tip: Tip,
    /// Number of the checkpoint that both copies are at least; 0 if there is none.
    pub checkpoint: u64,
    /// The highest generation of any segment that may exist.
    pub generation: u64,
    /// A power loss may have taken topics of which nothing is left.
    pub tail_lost: bool,
    /// Where frames are missing of topics that are not all known.
    pub unknown: Option<Damage>,
    /// Where progress may be missing of topics that are not stopped.
    pub lost_progress: Option<Damage>,
    /// The newest journal files, if only the kernel may have some of them.
    pub unsecured: Vec<Unsecured>,
}

/// Reads the log in `dir`.
pub(crate) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    ours: Incarnation,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Recovered, OpenError> {
    let listing = find(disk, dir)?;
    let mut files = listing.journal;
    check_catalog(&files, ours)?;
    let Loaded { newest: checkpoint, safe_id } = checkpoint::load(disk, dir, &files)?;
    check_checkpoint(checkpoint.as_ref(), ours, dir)?;
    let from = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.journal_from);
    let restored = restore::topics(disk, dir, checkpoint.as_ref(), &files)?;
    let Restored { topics, mut leavings, taken } = restored;
    let released = files.extract_if(.., |file| file.sequence < from);
    let needless = released.filter(|file| !taken.unmoved.contains(&file.sequence));
    leavings.extend(needless.map(|file| file.path));
    let newest = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.id);
    let left = leavings.iter().filter_map(|path| SegmentId::parse(&path.with_extension("seg")));
    let generation = left.fold(newest, |highest, id| highest.max(id.generation));
    let mut mended = true;
    if let Some(checkpoint) = &checkpoint
        && safe_id < checkpoint.id
        && let Err(error) = checkpoint::store(disk, dir, checkpoint)
    {
        // The other copy, if it comes to that, needs what this one does not.
        tracing::warn!(%error, "cannot write the second copy of the checkpoint");
        leavings.clear();
        mended = false;
    }
    let start_lsn = checkpoint.as_ref().map(|checkpoint| checkpoint.journal_lsn);
    let bytes_total = files.iter().map(|file| file.len).sum();
    let mut recovery = Recovery {
        disk,
        dir,
        boot: disk.boot_id(),
        expected: start_lsn,
        bounded: true,
        hole: None,
        marked: false,
        end: 0,
        ends: Vec::new(),
        wide: None,
        suspects: BTreeMap::new(),
        found: Recovered {
            topics,
            spares: listing.spares,
            leavings,
            taken,
            next_sequence: from,
            checkpoint: if mended { newest } else { safe_id },
            generation,
            ..Recovered::default()
        },
        seen: RecoveryProgress { files: 0, files_total: files.len() as u64, bytes: 0, bytes_total },
        progress,
    };
    if let Some(first) = files.first()
        && first.sequence != from
    {
        recovery.missing(from);
    }
    for at in 0..files.len() {
        recovery.file(&files, at)?;
    }
    Ok(recovery.finish(files))
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// This running of the machine.
    boot: Option<[u8; 16]>,
    /// Log sequence number of the next frame; unknown before the first header that holds.
    expected: Option<u64>,
    /// Whether this file's header says which log sequence numbers it may have.
    bounded: bool,
    /// Where something unreadable began that is not yet explained.
    hole: Option<Place>,
    /// Whether the last frame is the mark of a clean close.
    marked: bool,
    /// Byte of the last file where what counts of it ends.
    end: u64,
    /// The same of all files, and whether something is missing there.
    ends: Vec<(u64, bool)>,
    /// The first hole of which nobody knows whose frames it took.
    wide: Option<Place>,
    /// Topics that a hole may have hit.
    suspects: BTreeMap<TopicId, Place>,
    found: Recovered,
    seen: RecoveryProgress,
    progress: &'a mut dyn FnMut(RecoveryProgress),
}

/// A byte of a journal file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Sequence of the file.
    pub file: u64,
    /// Byte in it.
    pub position: u64,
}

impl Recovery<'_> {
    /// Journal file `sequence`, and maybe later ones, should be there.
    fn missing(&mut self, sequence: u64) {
        self.hole.get_or_insert(Place { file: sequence, position: 0 });
    }

    /// Enters a file.
    fn begin(&mut self, files: &[Found], at: usize) {
        let Found { sequence, path, header, .. } = &files[at];
        let before = at.checked_sub(1).map(|at| &files[at]);
        self.bounded = header.is_some();
        let start_lsn = header.map_or(0, |header| header.start_lsn);
        self.found.files.insert(*sequence, start_lsn);
        let counts = files[at..].iter().filter_map(|file| file.header).map(|it| it.start_lsn).min();
        if let Some(before) = before {
            self.pass_over(before.header, header.map(|header| (header.incarnation, header.boot)));
            if before.sequence.saturating_add(1) != *sequence {
                self.missing(before.sequence.saturating_add(1));
            }
        }
        if header.is_none() {
            tracing::warn!(path = %path.display(), "a journal file's header is damaged");
        } else if self.expected.is_none() && self.hole.is_none() {
            self.expected = Some(start_lsn);
        } else if let (Some(header), Some(expected)) = (header, self.expected)
            && counts == Some(start_lsn)
            && expected < start_lsn
        {
            // Everything before it was durable when it was begun.
            let hole = self.hole.take().unwrap_or(Place { file: *sequence, position: 0 });
            self.lack(start_lsn - expected, header.previous, header.previous_extras, hole);
            self.expected = Some(start_lsn);
        }
    }

    /// Goes from a file to a later one, or to this start of the process: power may have been
    /// lost between them.
    fn pass_over(&mut self, from: Option<FileHeader>, to: Option<(u32, [u8; 16])>) {
        let (Some(from), Some((incarnation, boot))) = (from, to) else { return };
        let same_boot = from.boot == boot && boot != [0; 16];
        if from.incarnation != incarnation && !same_boot && !self.marked {
            self.lose_tail();
        }
    }

    fn lose_tail(&mut self) {
        self.found.tail_lost = true;
        self.found.topics.values_mut().for_each(|state| state.tail_lost = true);
    }

    fn report(&mut self, bytes: u64) -> Result<(), OpenError> {
        self.ends.push((self.end, self.hole.is_some()));
        self.seen.files += 1;
        self.seen.bytes += bytes;
        (self.progress)(self.seen);
        Ok(())
    }

    fn finish(mut self, mut files: Vec<Found>) -> Recovered {
        for (topic, place) in std::mem::take(&mut self.suspects) {
            self.stop(topic, place, "frames are missing that may have been its last");
        }
        if let Some(last) = files.pop() {
            let boot = self.boot.unwrap_or_default();
            self.pass_over(last.header, Some((u32::MAX, boot)));
            self.found.next_sequence = last.sequence.saturating_add(1);
            let whole = last.header.is_some() && self.hole.is_none();
            let tip = self.expected.filter(|_| whole).map(|lsn| Tip { lsn, ..self.found.tip });
            let mark = tip.map(|tip| mark(tip, self.found.tail_lost));
            let unnamed = last.path == journal_new_path(self.dir);
            let before = files.pop().filter(|_| unnamed).zip(self.ends.iter().nth_back(1));
            if let Some((file, (end, damaged))) = before {
                let (end, stays) = (*end, *damaged);
                self.found.unsecured.push(Unsecured { file, end, stays, mark: None });
            }
            let stays = mark.is_none() || (self.marked && !unnamed);
            self.found.unsecured.push(Unsecured { file: last, end: self.end, stays, mark });
        }
        for state in self.found.topics.values_mut() {
            state.framed = state.next;
            state.raise_floor();
        }
        self.found.tip.lsn = self.expected.unwrap_or(0);
        self.found
    }
}
