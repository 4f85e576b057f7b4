//! Which files there are, before any frame is read.
//!
//! Law: nothing is removed here but a file that never had a name among the others.

use crate::checkpoint::{self, COPIES};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::header::{
    FILE_HEADER_LEN, FORMAT_VERSION, FileHeader, journal_copy_path, journal_new_path,
    journal_sequence, spare_sequence,
};
use crate::scan::Scan;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A journal file before its frames are read.
#[derive(Debug)]
pub(crate) struct Found {
    /// Sequence in its name.
    pub sequence: u64,
    /// Where it is.
    pub path: PathBuf,
    /// Its header, if that holds.
    pub header: Option<FileHeader>,
    /// Bytes of the file.
    pub len: u64,
}

/// What a data directory has.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Journal files, in order.
    pub journal: Vec<Found>,
    /// Files that wait to be journal files again.
    pub spares: Vec<PathBuf>,
}

/// Lists the journal files in order, and reads their headers.
pub(crate) fn find(disk: &dyn Disk, dir: &Path) -> Result<Listing, OpenError> {
    let paths = disk.list(dir).map_err(|error| OpenError::io("list", dir, &error))?;
    let copies = (0..COPIES).map(|copy| checkpoint::new_path(dir, copy));
    for temporary in copies.chain([journal_copy_path(dir)]).filter(|path| paths.contains(path)) {
        remove(disk, &temporary);
    }
    let names: BTreeSet<(u64, PathBuf)> =
        paths.iter().filter_map(|path| Some((journal_sequence(path)?, path.clone()))).collect();
    let mut journal = Vec::new();
    for (sequence, path) in names {
        let fail = |error| OpenError::io("read", &path, &error);
        let mut scan = disk.open(&path).and_then(|file| Scan::new(file, sequence)).map_err(fail)?;
        let first = scan.bytes(0, FILE_HEADER_LEN).map_err(fail)?;
        let header = first.first_chunk().and_then(FileHeader::decode);
        if let Some(FileHeader { version, sequence: said, .. }) = header {
            if version != FORMAT_VERSION {
                let (version, supported) = (version.into(), FORMAT_VERSION.into());
                return Err(OpenError::Version { path, version, supported });
            }
            if said != sequence {
                return Err(OpenError::Misnamed { path, sequence: said });
            }
        }
        journal.push(Found { sequence, path, header, len: scan.len() });
    }
    let temporary = journal_new_path(dir);
    if paths.contains(&temporary) {
        let fail = |error| OpenError::io("read", &temporary, &error);
        match unnamed(disk, &temporary, journal.last()).map_err(fail)? {
            Some(found) => journal.push(found),
            None => remove(disk, &temporary),
        }
    }
    let spares = paths.into_iter().filter(|path| spare_sequence(path).is_some()).collect();
    Ok(Listing { journal, spares })
}

/// The process died in making it; what it was to hold is still elsewhere.
fn remove(disk: &dyn Disk, temporary: &Path) {
    if let Err(error) = disk.remove(temporary) {
        tracing::warn!(path = %temporary.display(), %error, "cannot remove a file that was never whole");
    }
}

/// The file that was written to when the process died, and had no name because the one before it
/// was not durable. It counts only if it follows on `last` and the machine has kept running: then
/// the kernel has all of both.
fn unnamed(disk: &dyn Disk, path: &Path, last: Option<&Found>) -> io::Result<Option<Found>> {
    let mut scan = Scan::new(disk.open(path)?, 0)?;
    let header = scan.bytes(0, FILE_HEADER_LEN)?.first_chunk().and_then(FileHeader::decode);
    let (Some(header), Some(last)) = (header, last) else { return Ok(None) };
    let follows = header.version == FORMAT_VERSION
        && header.sequence == last.sequence.saturating_add(1)
        && disk.boot_id() == Some(header.boot);
    let (sequence, len) = (header.sequence, scan.len());
    Ok(follows.then(|| Found { sequence, path: path.to_path_buf(), header: Some(header), len }))
}
