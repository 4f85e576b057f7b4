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

use crate::active::Tip;
use crate::checkpoint::{self, Checkpoint, Loaded};
use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::extras::Also;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, NO_TOPIC};
use crate::header::{FILE_HEADER_LEN, FileHeader, journal_new_path, journal_path};
use crate::listing::{Found, find};
use crate::options::RecoveryProgress;
use crate::replay::{take_messages, take_progress};
use crate::restore::{self, Restored};
use crate::scan::{Scan, Seen};
use crate::secure::{Unsecured, mark};
use crate::segment::SegmentId;
use crate::topic::TopicState;
use crate::torn::Behind;
use danube_core::{Incarnation, TopicId};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

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
    let released: Vec<Found> = files.extract_if(.., |file| file.sequence < from).collect();
    let Restored { topics, mut leavings, .. } = restore::topics(disk, dir, checkpoint.as_ref())?;
    leavings.extend(released.into_iter().map(|file| file.path));
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
        suspects: BTreeMap::new(),
        found: Recovered {
            topics,
            spares: listing.spares,
            leavings,
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

/// A catalog that was lost and begun anew would count starts from 1 again, know no topic, and so
/// have all of them dropped.
fn check_catalog(files: &[Found], ours: Incarnation) -> Result<(), OpenError> {
    let written = files.iter().filter_map(|file| file.header.map(|header| (file, header)));
    match written.max_by_key(|(_, header)| header.incarnation) {
        Some((file, header)) if header.incarnation >= ours.0 => Err(OpenError::OtherCatalog {
            path: file.path.clone(),
            theirs: header.incarnation,
            ours: ours.0,
        }),
        _ => Ok(()),
    }
}

/// The same by the checkpoint, for a directory whose journal is all in segments.
fn check_checkpoint(
    checkpoint: Option<&Checkpoint>,
    ours: Incarnation,
    dir: &Path,
) -> Result<(), OpenError> {
    match checkpoint {
        Some(checkpoint) if checkpoint.incarnation >= ours.0 => Err(OpenError::OtherCatalog {
            path: checkpoint::path(dir, 0),
            theirs: checkpoint.incarnation,
            ours: ours.0,
        }),
        _ => Ok(()),
    }
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

    fn file(&mut self, files: &[Found], at: usize) -> Result<(), OpenError> {
        let Found { sequence, path, header, .. } = &files[at];
        let fail = |error| OpenError::io("read", path, &error);
        let file = self.disk.open(path).map_err(fail)?;
        let mut scan = Scan::new(file, *sequence).map_err(fail)?;
        // Frames that a later file begins with, or before, are void here.
        let later = files[at + 1..].iter().filter_map(|file| file.header);
        let end_lsn = later.map(|header| header.start_lsn).min();
        let last = at + 1 == files.len();
        self.begin(files, at);

        let mut position = FILE_HEADER_LEN as u64;
        self.end = position;
        loop {
            self.end = position;
            let from = self.expected.filter(|_| self.bounded).unwrap_or(0);
            scan.accept(from..end_lsn.unwrap_or(u64::MAX));
            if let (Some(expected), Some(end)) = (self.expected, end_lsn)
                && expected >= end
            {
                scan.accept(expected..expected.saturating_add(1));
                let mark = scan.header(position).map_err(fail)?;
                if let Some(mark) = mark.filter(|header| header.kind == FrameKind::Mark) {
                    self.frame(Place { file: *sequence, position }, &mark, &[]);
                }
                break;
            }
            let place = Place { file: *sequence, position };
            match scan.see(position).map_err(fail)? {
                Seen::Frame(header, payload) => {
                    self.frame(place, &header, payload);
                    position += header.frame_len();
                }
                Seen::BadPayload(header) => {
                    if self.is_torn(files, at, place)? {
                        return self.report(scan.len());
                    }
                    self.follow(place, &header);
                    self.lose_progress(place, header.extras);
                    let what = "a frame's payload does not match its checksum";
                    self.stop(TopicId(header.topic), place, what);
                    position += header.frame_len();
                }
                Seen::Unreadable => {
                    let ends = scan.bytes(position, FRAME_HEADER_LEN).map_err(fail)?;
                    let ends = ends.iter().all(|byte| *byte == 0);
                    match scan.next_frame(position).map_err(fail)? {
                        None if last && ends => break,
                        // Whether any frame is missing is seen below.
                        None if !last => break,
                        _ if self.is_torn(files, at, place)? => {
                            return self.report(scan.len());
                        }
                        None => break,
                        Some(next) => {
                            self.hole.get_or_insert(place);
                            position = next;
                        }
                    }
                }
                Seen::End => break,
            }
        }
        let short = match self.expected {
            Some(expected) => end_lsn > Some(expected),
            None => !self.bounded && end_lsn > Some(0),
        };
        if !last && short {
            self.hole.get_or_insert(Place { file: *sequence, position });
        }
        if last && header.is_none() && position == FILE_HEADER_LEN as u64 {
            // A header was there and is gone, so this is no write that a crash cut short.
            self.suspect(Place { file: *sequence, position: 0 });
        }
        self.report(scan.len())
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

    /// Whether what cannot be read at `place` is the torn end of the journal. Then it ends there:
    /// whatever follows was never promised to survive.
    fn is_torn(&mut self, files: &[Found], at: usize, place: Place) -> Result<bool, OpenError> {
        let Found { sequence, path, header, len } = &files[at];
        let Some(lsn) = self.expected.filter(|_| self.hole.is_none()) else { return Ok(false) };
        let (Some(header), true) = (header, at + 1 == files.len()) else { return Ok(false) };
        let behind = self.disk.open(path).and_then(|file| {
            let mut scan = Scan::new(file, *sequence)?;
            scan.accept(lsn.saturating_add(1)..u64::MAX);
            Behind::look(&mut scan, place.position + 1)
        });
        let behind = behind.map_err(|error| OpenError::io("read", path, &error))?;
        if !behind.is_torn(lsn, self.boot == Some(header.boot)) {
            return Ok(false);
        }
        let (path, position, frames) = (path.display(), place.position, behind.frames);
        let bytes = len - position;
        tracing::warn!(%path, position, bytes, frames, "left out a torn end of the journal; it was never promised to survive");
        for (topic, end) in behind.promised {
            let state = self.found.topics.entry(topic).or_default();
            state.floor = state.floor.max(end);
        }
        Ok(true)
    }

    /// Checks that a frame comes right after the one before, and settles whom a hole hit.
    fn follow(&mut self, place: Place, header: &FrameHeader) {
        let missing = match self.expected {
            Some(expected) => header.lsn.saturating_sub(expected),
            // Nothing says how many.
            None if self.hole.is_some() => 2,
            None => 0,
        };
        let hole = self.hole.take().unwrap_or(place);
        self.lack(missing, header.previous, header.previous_extras, hole);
        self.marked = header.kind == FrameKind::Mark;
        // A mark takes no number, so that nothing is missing where one is lost.
        self.expected = Some(header.lsn.saturating_add(u64::from(!self.marked)));
        if !self.marked {
            (self.found.tip.topic, self.found.tip.extras) = (header.topic, header.extras);
        }
    }

    /// Frames are missing at `hole`, the last of them of topic `previous`.
    /// With `extras`, that one may have had progress of others.
    fn lack(&mut self, missing: u64, previous: u32, extras: bool, hole: Place) {
        self.lose_progress(hole, missing > 1 || (missing > 0 && extras));
        if missing > 0 && previous != NO_TOPIC {
            self.stop(TopicId(previous), hole, "a frame of it cannot be read");
        }
        if missing > 1 || (missing > 0 && previous == NO_TOPIC) {
            self.suspect(hole);
        }
    }

    /// Frames of any topic may be missing at `hole`.
    fn suspect(&mut self, hole: Place) {
        let damage = self.damage(NO_TOPIC, hole, "frames are missing that may have been all of it");
        self.found.unknown.get_or_insert(damage);
        for topic in self.found.topics.keys() {
            self.suspects.entry(*topic).or_insert(hole);
        }
    }

    fn damage(&self, topic: u32, place: Place, what: &str) -> Damage {
        let file = journal_path(self.dir, place.file);
        Damage { topic: TopicId(topic), file, position: place.position, what: what.to_owned() }
    }

    fn stop(&mut self, topic: TopicId, place: Place, what: &str) {
        let damage = self.damage(topic.0, place, what);
        let state = self.found.topics.entry(topic).or_default();
        // Told once the catalog has said which topics still exist.
        state.damage.get_or_insert(damage);
        state.recorded = true;
    }

    fn frame(&mut self, place: Place, header: &FrameHeader, payload: &[u8]) {
        self.follow(place, header);
        let topic = TopicId(header.topic);
        match header.kind {
            FrameKind::Mark if header.jump => return self.lose_tail(),
            FrameKind::Mark => return,
            FrameKind::TopicForgotten => return self.forget(topic),
            FrameKind::Messages | FrameKind::Progress => {}
        }
        let state = self.found.topics.entry(topic).or_default();
        state.recorded = true;
        state.epoch = state.epoch.max(header.epoch);
        let taken = if header.kind == FrameKind::Messages {
            let gapless = state.next == header.first;
            let taken = take_messages(state, place, header, payload);
            if gapless {
                self.suspects.remove(&topic);
            }
            taken
        } else {
            take_progress(state, header, payload).map(|()| Vec::new())
        };
        match taken {
            Ok(also) => also.into_iter().for_each(|also| self.also(also)),
            Err(what) => {
                self.lose_progress(place, header.extras);
                self.stop(topic, place, &what);
            }
        }
    }

    /// Takes progress that belongs to messages of another topic.
    fn also(&mut self, also: Also) {
        let state = self.found.topics.entry(also.topic).or_default();
        state.recorded = true;
        state.epoch = state.epoch.max(also.epoch);
        also.records.iter().for_each(|record| state.apply(record));
    }

    /// Something at `place` had progress of topics that are not named there, if `had`.
    fn lose_progress(&mut self, place: Place, had: bool) {
        if had {
            let damage = self.damage(NO_TOPIC, place, "frames are missing, nobody knows whose");
            self.found.lost_progress.get_or_insert(damage);
        }
    }

    fn forget(&mut self, topic: TopicId) {
        self.suspects.remove(&topic);
        if let Some(state) = self.found.topics.remove(&topic) {
            let segments = state.segments.iter();
            self.found.leavings.extend(restore::paths(self.dir, topic, segments));
        }
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
                let (end, damaged) = (*end, *damaged);
                self.found.unsecured.push(Unsecured { file, end, damaged, mark: None });
            }
            if unnamed || !self.marked {
                let (end, damaged) = (self.end, mark.is_none());
                self.found.unsecured.push(Unsecured { file: last, end, damaged, mark });
            }
        }
        for state in self.found.topics.values_mut() {
            state.framed = state.next;
            state.raise_floor();
        }
        self.found.tip.lsn = self.expected.unwrap_or(0);
        self.found
    }
}
