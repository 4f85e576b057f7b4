//! From the bytes of a crashed process back to the state of every topic.
//!
//! Two kinds of damage are kept apart. What is torn at the very end of the last file was never
//! acknowledged, as the process died in writing it: it is cut, with one warning. Damage anywhere
//! else hit what was acknowledged: the topics it may have hit are stopped, and named.
//!
//! Whose frame was damaged is known when its header holds; else from the frame after it, which
//! names the topic before, when exactly one is missing. When more are missing, every topic known
//! so far is suspect until its next messages follow on exactly from those before.
//!
//! Law: no bytes make it panic, and nothing readable of a topic that is not stopped is lost.

use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::frame::{FrameHeader, FrameKind, NO_TOPIC};
use crate::header::{FILE_HEADER_LEN, FileHeader, journal_path};
use crate::listing::{Found, find};
use crate::options::RecoveryProgress;
use crate::replay::{take_messages, take_progress};
use crate::scan::{Scan, Seen};
use crate::topic::TopicState;
use danube_core::{Incarnation, TopicId};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What recovery found.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// State of each topic that the journal has anything of.
    pub topics: HashMap<TopicId, TopicState>,
    /// Journal files, and how many topics have something in each.
    pub files: BTreeMap<u64, usize>,
    /// Sequence of the next file.
    pub next_sequence: u64,
    /// Log sequence number of the next frame.
    pub next_lsn: u64,
    /// Topic of the last frame.
    pub last_topic: u32,
}

/// Reads the journal in `dir`, and cuts a torn end off it.
pub(crate) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    ours: Incarnation,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Recovered, OpenError> {
    let (files, bytes_total) = find(disk, dir)?;
    check_catalog(&files, ours)?;
    let mut recovery = Recovery {
        disk,
        dir,
        expected: None,
        bounded: true,
        hole: None,
        suspects: BTreeMap::new(),
        found: Recovered { last_topic: NO_TOPIC, ..Recovered::default() },
        seen: RecoveryProgress { files: 0, files_total: files.len() as u64, bytes: 0, bytes_total },
        progress,
    };
    for at in 0..files.len() {
        recovery.file(&files, at)?;
    }
    Ok(recovery.finish(files.last()))
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

struct Recovery<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// Log sequence number of the next frame; unknown before the first header that holds.
    expected: Option<u64>,
    /// Whether this file's header says which log sequence numbers it may have.
    bounded: bool,
    /// Where something unreadable began that is not yet explained.
    hole: Option<Place>,
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
    fn file(&mut self, files: &[Found], at: usize) -> Result<(), OpenError> {
        let Found { sequence, path, header } = &files[at];
        let fail = |error| OpenError::io("read", path, &error);
        let file = self.disk.open(path).map_err(fail)?;
        let mut scan = Scan::new(file, *sequence).map_err(fail)?;
        self.found.files.entry(*sequence).or_default();
        let next = files.get(at + 1);
        // The next file begins where this one's frames end; what is beyond is void.
        let end_lsn = next.and_then(|next| next.header).map(|header| header.start_lsn);
        let neighbour = next.is_some_and(|next| next.sequence == sequence.saturating_add(1));
        self.begin(*sequence, header.as_ref(), at, files);

        let mut position = FILE_HEADER_LEN as u64;
        let (mut torn, mut reserved) = (None, None);
        loop {
            let from = self.expected.filter(|_| self.bounded).unwrap_or(0);
            scan.accept(from..end_lsn.unwrap_or(u64::MAX));
            if self.expected.is_some() && self.expected == end_lsn {
                self.clear_void(&mut scan, path, position, next).map_err(fail)?;
                break;
            }
            let place = Place { file: *sequence, position };
            match scan.see(position).map_err(fail)? {
                Seen::Frame(header, payload) => {
                    self.frame(place, &header, payload);
                    position += header.frame_len();
                }
                Seen::BadPayload(header) => {
                    let after = position + header.frame_len();
                    let last = scan.rest(after).map_err(fail)?.next.is_none();
                    if next.is_none() && last {
                        torn = Some(position);
                        break;
                    }
                    self.follow(place, &header);
                    let what = "a frame's payload does not match its checksum";
                    self.stop(TopicId(header.topic), place, what);
                    position = after;
                }
                Seen::Unreadable => {
                    let rest = scan.rest(position).map_err(fail)?;
                    match rest.next {
                        Some(next) => {
                            self.hole.get_or_insert(place);
                            position = next;
                            continue;
                        }
                        None if !rest.written => reserved = Some(position),
                        None if next.is_none() => torn = Some(position),
                        None => self.hole = self.hole.or(Some(place)),
                    }
                    break;
                }
                Seen::End => break,
            }
        }
        let short = match self.expected {
            Some(expected) => end_lsn > Some(expected),
            None => !self.bounded && end_lsn > Some(0),
        };
        if neighbour && short {
            self.hole.get_or_insert(Place { file: *sequence, position });
        }
        match torn {
            Some(position) if header.is_some() || position > FILE_HEADER_LEN as u64 => {
                self.cut(path, position, scan.len());
            }
            // A header was there and is gone, so this is no write that a crash cut short.
            Some(_) => self.suspect(Place { file: *sequence, position: 0 }),
            None => {}
        }
        if let Some(position) = reserved {
            self.give_back(path, position);
        }
        self.report(1, scan.len());
        Ok(())
    }

    /// Enters a file.
    fn begin(&mut self, sequence: u64, header: Option<&FileHeader>, at: usize, files: &[Found]) {
        self.bounded = header.is_some();
        let Some(header) = header else {
            let path = journal_path(self.dir, sequence);
            tracing::warn!(path = %path.display(), "a journal file's header is damaged");
            return;
        };
        let before = at.checked_sub(1).map(|at| files[at].sequence);
        let follows = before.is_some_and(|before| before.saturating_add(1) == sequence);
        if !follows || self.expected.is_none() {
            // A file between that is gone held nothing of a live topic; else offsets show it.
            // A hole before it leaves open how many frames are missing.
            self.expected = self.hole.is_none().then_some(header.start_lsn);
        }
    }

    fn report(&mut self, files: u64, bytes: u64) {
        self.seen.files += files;
        self.seen.bytes += bytes;
        (self.progress)(self.seen);
    }

    /// Cuts off what the next file makes void, and keeps that file until this is seen to be done.
    fn clear_void(
        &mut self,
        scan: &mut Scan,
        path: &Path,
        position: u64,
        next: Option<&Found>,
    ) -> std::io::Result<()> {
        if let Some(next) = next
            && scan.is_written(position)?
        {
            *self.found.files.entry(next.sequence).or_default() += 1;
            if let Err(error) = self.disk.open(path).and_then(|file| file.set_len(position)) {
                tracing::warn!(path = %path.display(), %error, "cannot cut the journal file");
            }
        }
        Ok(())
    }

    /// Gives back what was reserved by a process that died before it could, and not used.
    fn give_back(&self, path: &Path, position: u64) {
        if let Err(error) = self.disk.open(path).and_then(|file| file.set_len(position)) {
            tracing::debug!(path = %path.display(), %error, "cannot give back reserved space");
        }
    }

    fn cut(&self, path: &Path, position: u64, len: u64) {
        let (bytes, shown) = (len - position, path.display());
        tracing::warn!(path = %shown, position, bytes, "cut a torn end off the journal; it was never acknowledged");
        let cut = self.disk.open(path).and_then(|file| file.set_len(position));
        if let Err(error) = cut {
            // The next file makes it void all the same.
            tracing::warn!(path = %shown, %error, "cannot cut the journal file");
        }
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
        if missing > 0 {
            if header.previous != NO_TOPIC {
                self.stop(TopicId(header.previous), hole, "a frame of it cannot be read");
            }
            if missing > 1 {
                self.suspect(hole);
            }
        }
        self.expected = Some(header.lsn.saturating_add(1));
        self.found.last_topic = header.topic;
    }

    fn suspect(&mut self, hole: Place) {
        for topic in self.found.topics.keys() {
            self.suspects.entry(*topic).or_insert(hole);
        }
    }

    fn stop(&mut self, topic: TopicId, place: Place, what: &str) {
        let file = journal_path(self.dir, place.file);
        let damage = Damage { topic, file, position: place.position, what: what.to_owned() };
        let state = self.found.topics.entry(topic).or_default();
        // Told once the catalog has said which topics still exist.
        state.damage.get_or_insert(damage);
        self.uses(topic, place.file);
    }

    fn uses(&mut self, topic: TopicId, file: u64) {
        let state = self.found.topics.entry(topic).or_default();
        if state.files.insert(file) {
            *self.found.files.entry(file).or_default() += 1;
        }
    }

    fn frame(&mut self, place: Place, header: &FrameHeader, payload: &[u8]) {
        self.follow(place, header);
        let topic = TopicId(header.topic);
        if header.kind == FrameKind::TopicForgotten {
            return self.forget(topic);
        }
        self.uses(topic, place.file);
        let state = self.found.topics.entry(topic).or_default();
        state.epoch = state.epoch.max(header.epoch);
        let taken = if header.kind == FrameKind::Messages {
            let gapless = state.next == header.first;
            let taken = take_messages(state, place, header, payload);
            if gapless {
                self.suspects.remove(&topic);
            }
            taken
        } else {
            take_progress(state, header, payload)
        };
        if let Err(what) = taken {
            self.stop(topic, place, &what);
        }
    }

    fn forget(&mut self, topic: TopicId) {
        self.suspects.remove(&topic);
        for file in self.found.topics.remove(&topic).unwrap_or_default().files {
            if let Some(topics) = self.found.files.get_mut(&file) {
                *topics -= 1;
            }
        }
    }

    fn finish(mut self, last: Option<&Found>) -> Recovered {
        for (topic, place) in std::mem::take(&mut self.suspects) {
            self.stop(topic, place, "frames are missing that may have been its last");
        }
        for state in self.found.topics.values_mut() {
            state.framed = state.next;
            state.raise_floor();
        }
        self.found.next_lsn = self.expected.unwrap_or(0);
        self.found.next_sequence = last.map_or(0, |last| last.sequence.saturating_add(1));
        if let Some(last) = last {
            // A killed process may have left bytes that only the kernel has. Once they are read
            // and acted upon, they must not be lost to a later power cut.
            let synced = self.disk.open(&last.path).and_then(|file| file.sync_data());
            if let Err(error) = synced {
                tracing::warn!(path = %last.path.display(), %error, "cannot sync the journal file");
            }
        }
        self.found
    }
}
