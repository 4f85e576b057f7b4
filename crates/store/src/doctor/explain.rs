//! What each file of a data directory is.

use super::{FileNote, Problem};
use crate::checkpoint::{self, COPIES};
use crate::disk::{Disk, DiskFile, read_available};
use crate::error::OpenError;
use crate::header::{
    FILE_HEADER_LEN, FileHeader, journal_new_path, journal_sequence, reserve_path, spare_sequence,
};
use crate::lock::LOCK_FILE;
use crate::scan::{Scan, Seen};
use crate::segment::{HEADER_LEN, SEGMENT_DIR, SegmentId, TAKEN_VERSION, frames_sequence};
use std::io;
use std::path::{Path, PathBuf};

/// Where a repair puts what it changes or takes away.
pub(crate) const QUARANTINE_DIR: &str = "quarantine";

/// Every file in `dir` and in its segments.
pub(crate) fn files(disk: &dyn Disk, dir: &Path) -> Result<Vec<FileNote>, OpenError> {
    let segments = dir.join(SEGMENT_DIR);
    let mut paths = list(disk, dir)?;
    paths.retain(|path| *path != segments && *path != dir.join(QUARANTINE_DIR));
    paths.extend(list(disk, &segments)?);
    paths.sort();
    let explain = |path: PathBuf| {
        let file = disk.open(&path);
        let bytes = file.as_ref().ok().and_then(|file| file.len().ok()).unwrap_or(0);
        let what = match &file {
            Ok(file) => what(&**file, &path, dir).unwrap_or_else(|error| unreadable(&error)),
            Err(error) => unreadable(error),
        };
        // Scanning wants a handle of its own.
        let what = match (journal_sequence(&path), file) {
            (Some(sequence), Ok(file)) => {
                let frames = Scan::new(file, sequence).and_then(frames);
                format!("{what}{}", frames.unwrap_or_else(|error| unreadable(&error)))
            }
            _ => what,
        };
        FileNote { path, bytes, what }
    };
    Ok(paths.into_iter().map(explain).collect())
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    disk.list(dir).map_err(|error| OpenError::io("list", dir, &error))
}

fn what(file: &dyn DiskFile, path: &Path, dir: &Path) -> io::Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == LOCK_FILE {
        return Ok("the lock; means nothing by itself".into());
    }
    if journal_sequence(path).is_some() {
        return Ok(match header(file)? {
            Some(header) => format!(
                "journal file, of process start {}, from frame {} on",
                header.incarnation, header.start_lsn
            ),
            None => "journal file whose header is damaged".into(),
        });
    }
    if path == reserve_path(dir) || path == crate::checkpoint::reserve_path(dir) {
        return Ok("room kept for the journal on a full disk; nothing in it counts".into());
    }
    if spare_sequence(path).is_some() {
        return Ok("a file that waits to be a journal file; nothing in it counts".into());
    }
    if name.ends_with(".damaged") {
        return Ok("a journal file set aside because of damage; nobody reads it".into());
    }
    if path == journal_new_path(dir) {
        return Ok("a journal file without a name yet; counts only if the power stayed on".into());
    }
    if name.ends_with(".new") || name.ends_with(".copy") {
        return Ok("a file that was never finished; what it was to hold is elsewhere".into());
    }
    if let Some(id) = SegmentId::parse(path) {
        let mut bytes = [0; HEADER_LEN];
        let filled = read_available(file, 0, &mut bytes)?;
        let said = SegmentId::decode_header(&bytes).filter(|_| filled == HEADER_LEN);
        let within = match said {
            Some((TAKEN_VERSION, _, sequence)) => format!(", in journal file {sequence}"),
            _ => String::new(),
        };
        return Ok(format!("segment of topic {}, from offset {} on{within}", id.topic, id.base));
    }
    if let Some(sequence) = frames_sequence(path) {
        return Ok(format!("journal file {sequence}, which segments have taken over as it was"));
    }
    if (0..COPIES).any(|copy| checkpoint::path(dir, copy) == path) {
        return Ok(match checkpoint::decode(&bytes(file)?) {
            Some((_, Some(checkpoint))) => format!(
                "checkpoint {}: {} topics, the journal counts from file {} on",
                checkpoint.id,
                checkpoint.topics.len(),
                checkpoint.journal_from
            ),
            Some((version, None)) => format!("checkpoint of format {version}"),
            None => "checkpoint that is damaged".into(),
        });
    }
    Ok("not a file of the log".into())
}

fn header(file: &dyn DiskFile) -> io::Result<Option<FileHeader>> {
    let mut bytes = [0; FILE_HEADER_LEN];
    let filled = read_available(file, 0, &mut bytes)?;
    Ok(FileHeader::decode(&bytes).filter(|_| filled == FILE_HEADER_LEN))
}

fn bytes(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
    let filled = read_available(file, 0, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// How many whole frames there are, and up to where.
fn frames(mut scan: Scan) -> io::Result<String> {
    let (mut position, mut count, mut last) = (FILE_HEADER_LEN as u64, 0_u64, None);
    loop {
        let next = match scan.see(position)? {
            Seen::Frame(header, _) => {
                count += 1;
                last = Some(header.lsn);
                position + header.frame_len()
            }
            Seen::BadPayload(header) => position + header.frame_len(),
            Seen::Unreadable => match scan.next_frame(position)? {
                Some(next) => next,
                None => break,
            },
            Seen::End => break,
        };
        position = next;
    }
    Ok(match last {
        Some(lsn) => format!("; {count} whole frames, the last is {lsn}"),
        None => "; no frame".into(),
    })
}

/// What recovery passes over with a warning: copies that are damaged while the other one holds.
pub(crate) fn odd_files(disk: &dyn Disk, dir: &Path) -> Result<Vec<Problem>, OpenError> {
    let mut problems = Vec::new();
    for copy in 0..COPIES {
        let path = checkpoint::path(dir, copy);
        let read = disk.open(&path).and_then(|file| bytes(&*file));
        let what = match read {
            Ok(bytes) if checkpoint::decode(&bytes).is_none() => "the checkpoint does not hold",
            Ok(_) => continue,
            // Before the first checkpoint there is neither.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(OpenError::io("read", &path, &error)),
        };
        problems.push(Problem {
            path,
            position: Some(0),
            what: what.into(),
            means: "nobody is hit while the other copy holds; a repair writes it again".into(),
            lost: Vec::new(),
            is_damage: true,
        });
    }
    Ok(problems)
}
