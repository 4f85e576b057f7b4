//! One journal file after the other, from its first frame to its end, torn or not.
//!
//! Law: what is torn is left out as a whole, from there on; a hole that is none is settled by what
//! follows it.

use super::{Place, Recovery};
use crate::error::OpenError;
use crate::frame::FrameKind;
use crate::header::FILE_HEADER_LEN;
use crate::listing::Found;
use crate::scan::{Scan, Seen};
use crate::torn::Behind;
use danube_core::TopicId;

impl Recovery<'_> {
    /// Reads the file at `at`.
    pub(super) fn file(&mut self, files: &[Found], at: usize) -> Result<(), OpenError> {
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
                    let ends = scan.is_blank(position).map_err(fail)?;
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
}
