//! Places of the journal that cannot be read, whose messages stood there, and how they are filled.
//!
//! Law: a hole is what recovery stops a topic for; the torn end of the journal is none.

use super::{Lost, Problem};
use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, NO_TOPIC, RECORD_LEN_BYTES};
use crate::header::FILE_HEADER_LEN;
use crate::listing::Found;
use crate::scan::{Scan, Seen};
use crate::torn::Behind;
use danube_core::TopicId;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Whose frames fill a hole: nobody's. No catalog gives this id, so what the frames hold goes at
/// the next start.
pub(crate) const FILLER_TOPIC: u32 = u32::MAX - 1;
/// Bytes of the smallest filler: a frame with one empty record.
const FILLER_MIN: u64 = (FRAME_HEADER_LEN + RECORD_LEN_BYTES) as u64;

/// A place where frames are missing.
#[derive(Debug)]
pub(crate) struct Hole {
    /// Sequence of the journal file.
    pub file: u64,
    /// Its path.
    pub path: PathBuf,
    /// First byte of it.
    pub at: u64,
    /// One past its last byte.
    pub end: u64,
    /// Whether nothing comes behind it in its file, so that it may grow.
    pub is_last: bool,
    /// Log sequence number of the first missing frame; `None` when nobody can tell.
    pub lsn: Option<u64>,
    /// Missing frames.
    pub missing: u64,
    /// Whose the missing frame was, where that can be told.
    pub topic: Option<TopicId>,
    /// Messages missing because of it.
    pub lost: Vec<Lost>,
    /// Frames before which offsets are missing now: file, byte, header.
    pub behind: Vec<(u64, u64, FrameHeader)>,
    /// What was not to survive, at the end of the journal.
    pub is_torn: bool,
}

impl Hole {
    /// The hole as something that is wrong.
    pub(crate) fn problem(&self) -> Problem {
        let (what, means) = if self.is_torn {
            (
                format!("a torn write: {} bytes at the end of the journal", self.end - self.at),
                "it was never promised to survive; the next start leaves it out".to_owned(),
            )
        } else {
            let whom = match self.topic {
                Some(topic) => format!("topic {topic} is stopped"),
                None => "topics that may have been here are stopped until seen whole again".into(),
            };
            let frames = match self.missing {
                0 => "frames".to_owned(),
                1 => "a frame".to_owned(),
                count => format!("{count} frames"),
            };
            (format!("{frames} cannot be read, bytes {} to {}", self.at, self.end), whom)
        };
        Problem {
            path: self.path.clone(),
            position: Some(self.at),
            what,
            means,
            lost: self.lost.clone(),
            is_damage: !self.is_torn,
        }
    }

    /// Whether frames of nobody can stand in for what is missing.
    pub(crate) fn can_be_filled(&self) -> bool {
        let room = self.end - self.at;
        let fits = self.missing.checked_mul(FILLER_MIN).is_some_and(|need| need <= room);
        !self.is_torn && self.lsn.is_some() && self.missing > 0 && (fits || self.is_last)
    }

    /// Writes frames of nobody into it.
    pub(crate) fn fill(&self, file: &dyn DiskFile) -> io::Result<()> {
        let lsn = self.lsn.expect("only holes that can be filled are");
        let mut at = self.at;
        for number in 0..self.missing {
            let rest = self.end.saturating_sub(at);
            let left = (self.missing - number - 1) * FILLER_MIN;
            let len = if left == 0 { rest.max(FILLER_MIN) } else { FILLER_MIN };
            let record = len - FILLER_MIN;
            let mut payload = vec![0; (len as usize) - FRAME_HEADER_LEN];
            payload[..RECORD_LEN_BYTES].copy_from_slice(&(record as u32).to_le_bytes());
            let header = FrameHeader {
                payload_crc: crc32c::crc32c(&payload),
                payload_len: payload.len() as u32,
                lsn: lsn + number,
                first: lsn + number,
                topic: FILLER_TOPIC,
                epoch: 0,
                count: 1,
                previous: NO_TOPIC,
                kind: FrameKind::Messages,
                jump: true,
                synced_mode: true,
                extras: false,
                previous_extras: false,
                unsynced: 0,
                time: 0,
            };
            let header = header.encode(self.file);
            file.write_at(at, &mut [IoSlice::new(&header), IoSlice::new(&payload)])?;
            at += len;
        }
        Ok(())
    }
}

/// Finds all holes in `journal`.
pub(crate) fn find(disk: &dyn Disk, dir: &Path, journal: &[Found]) -> Result<Vec<Hole>, OpenError> {
    let checkpoint = crate::checkpoint::load(disk, dir, journal)?.newest;
    let from = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.journal_from);
    let files: Vec<&Found> = journal.iter().filter(|file| file.sequence >= from).collect();
    let points = checkpoint.iter().flat_map(|checkpoint| &checkpoint.topics);
    let mut search = Search {
        disk,
        expected: checkpoint.as_ref().map(|checkpoint| checkpoint.journal_lsn),
        next: points.map(|(id, point)| (id.0, point.settled)).collect(),
        holes: Vec::new(),
    };
    for at in 0..files.len() {
        search.file(&files, at).map_err(|error| OpenError::io("read", &files[at].path, &error))?;
    }
    Ok(search.holes)
}

struct Search<'a> {
    disk: &'a dyn Disk,
    expected: Option<u64>,
    /// Next offset of each topic.
    next: HashMap<u32, u64>,
    holes: Vec<Hole>,
}

impl Search<'_> {
    fn file(&mut self, files: &[&Found], at: usize) -> io::Result<()> {
        let Found { sequence, path, header, len } = files[at];
        let mut scan = Scan::new(self.disk.open(path)?, *sequence)?;
        let later = files[at + 1..].iter().filter_map(|file| file.header);
        let end_lsn = later.map(|header| header.start_lsn).min();
        let last = at + 1 == files.len();
        if self.expected.is_none() {
            self.expected = header.map(|header| header.start_lsn);
        }
        let mut position = FILE_HEADER_LEN as u64;
        let mut open: Option<Hole> = None;
        let begin = |at, lsn| Hole {
            file: *sequence,
            path: path.clone(),
            at,
            end: *len,
            is_last: true,
            lsn,
            missing: 0,
            topic: None,
            lost: Vec::new(),
            behind: Vec::new(),
            is_torn: false,
        };
        loop {
            if self.expected.is_some() && end_lsn.is_some_and(|end| self.expected >= Some(end)) {
                break;
            }
            scan.accept(self.expected.unwrap_or(0)..end_lsn.unwrap_or(u64::MAX));
            match scan.see(position)? {
                Seen::Frame(header, _) => {
                    self.close(open.take(), position, &header);
                    self.frame(*sequence, position, &header);
                    position += header.frame_len();
                }
                Seen::BadPayload(_) | Seen::Unreadable
                    if last && open.is_none() && self.is_torn(files[at], position)? =>
                {
                    // What a file had in its former life is behind that, as in recovery.
                    let is_end = scan.is_blank(position)? && scan.next_frame(position)?.is_none();
                    if !is_end {
                        self.holes.push(Hole { is_torn: true, ..begin(position, self.expected) });
                    }
                    return Ok(());
                }
                Seen::BadPayload(header) => {
                    if open.is_none() {
                        open = Some(begin(position, self.expected));
                    }
                    position += header.frame_len();
                }
                Seen::Unreadable => {
                    let next = scan.next_frame(position)?;
                    if next.is_none() && open.is_none() {
                        // Whether any frame is missing is seen below.
                        break;
                    }
                    if open.is_none() {
                        open = Some(begin(position, self.expected));
                    }
                    match next {
                        Some(next) => position = next,
                        None => break,
                    }
                }
                Seen::End => break,
            }
        }
        let short = end_lsn.is_some() && self.expected.is_some() && self.expected < end_lsn;
        if open.is_none() && short {
            open = Some(begin(position, self.expected));
        }
        let Some(mut hole) = open else { return Ok(()) };
        if let (Some(lsn), Some(end)) = (self.expected, end_lsn) {
            hole.missing = end - lsn;
            self.expected = Some(end);
            let next = files.get(at + 1).and_then(|file| file.header);
            let witness = next.filter(|next| next.start_lsn == end && next.previous != NO_TOPIC);
            hole.topic = witness.filter(|_| hole.missing == 1).map(|it| TopicId(it.previous));
        }
        self.holes.push(hole);
        Ok(())
    }

    /// As recovery sees it: nothing behind it was promised to survive.
    fn is_torn(&self, file: &Found, position: u64) -> io::Result<bool> {
        let (Some(lsn), Some(header)) = (self.expected, file.header) else { return Ok(false) };
        let mut scan = Scan::new(self.disk.open(&file.path)?, file.sequence)?;
        scan.accept(lsn.saturating_add(1)..u64::MAX);
        let behind = Behind::look(&mut scan, position + 1)?;
        Ok(behind.is_torn(lsn, self.disk.boot_id() == Some(header.boot)))
    }

    /// Ends a hole where a whole frame follows.
    fn close(&mut self, hole: Option<Hole>, position: u64, header: &FrameHeader) {
        let Some(mut hole) = hole else { return };
        hole.end = position;
        hole.is_last = false;
        hole.missing = hole.lsn.map_or(0, |lsn| header.lsn.saturating_sub(lsn));
        if hole.missing == 1 && header.previous != NO_TOPIC {
            hole.topic = Some(TopicId(header.previous));
        }
        self.holes.push(hole);
    }

    fn frame(&mut self, file: u64, position: u64, header: &FrameHeader) {
        self.expected = Some(header.lsn.saturating_add(1));
        match header.kind {
            FrameKind::Messages => {}
            FrameKind::TopicForgotten => {
                self.next.remove(&header.topic);
                return;
            }
            _ => return,
        }
        let next = self.next.entry(header.topic).or_default();
        let end = header.first.saturating_add(u64::from(header.count));
        if header.first > *next
            && !header.jump
            && let Some(hole) = self.holes.last_mut()
        {
            let topic = TopicId(header.topic);
            hole.lost.push(Lost { topic, first: *next, end: header.first });
            hole.behind.push((file, position, *header));
            hole.topic.get_or_insert(topic);
        }
        *next = (*next).max(end);
    }
}

/// Whether the torn end has anything whole behind its beginning: then it is left as it is, as
/// recovery learns from it which offsets may have been given.
pub(crate) fn has_frames_behind(disk: &dyn Disk, hole: &Hole) -> io::Result<bool> {
    let mut scan = Scan::new(disk.open(&hole.path)?, hole.file)?;
    Ok(Behind::look(&mut scan, hole.at + 1)?.frames > 0)
}
