//! Which journal files there are, before any frame is read.
//!
//! Law: a file is removed here only when the process died in making it.

use crate::disk::Disk;
use crate::error::OpenError;
use crate::header::{FILE_HEADER_LEN, FORMAT_VERSION, FileHeader, journal_sequence};
use crate::scan::Scan;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A journal file before its frames are read.
pub(crate) struct Found {
    /// Sequence in its name.
    pub sequence: u64,
    /// Where it is.
    pub path: PathBuf,
    /// Its header, if that holds.
    pub header: Option<FileHeader>,
}

/// Lists the journal files in order, reads their headers, and adds up their bytes. A newest file
/// that was never begun is removed.
pub(crate) fn find(disk: &dyn Disk, dir: &Path) -> Result<(Vec<Found>, u64), OpenError> {
    let paths = disk.list(dir).map_err(|error| OpenError::io("list", dir, &error))?;
    let names: BTreeSet<(u64, PathBuf)> =
        paths.into_iter().filter_map(|path| Some((journal_sequence(&path)?, path))).collect();
    let (mut files, mut bytes) = (Vec::new(), 0);
    let newest = names.last().map(|(sequence, _)| *sequence);
    for (sequence, path) in names {
        let fail = |error| OpenError::io("read", &path, &error);
        let mut scan = disk.open(&path).and_then(|file| Scan::new(file, sequence)).map_err(fail)?;
        let first = scan.bytes(0, FILE_HEADER_LEN).map_err(fail)?;
        let header = first.first_chunk().and_then(FileHeader::decode);
        let newest = newest == Some(sequence);
        if newest && header.is_none() && !is_begun(&mut scan).map_err(fail)? {
            // The process died in making it, so it holds nothing.
            tracing::warn!(path = %path.display(), "removed a journal file that was never begun");
            disk.remove(&path).map_err(|error| OpenError::io("remove", &path, &error))?;
            continue;
        }
        if let Some(FileHeader { version, sequence: said, .. }) = header {
            if version != FORMAT_VERSION {
                return Err(OpenError::Version { path, version, supported: FORMAT_VERSION });
            }
            if said != sequence {
                return Err(OpenError::Misnamed { path, sequence: said });
            }
        }
        bytes += scan.len();
        files.push(Found { sequence, path, header });
    }
    Ok((files, bytes))
}

/// Whether a file without a header may hold frames all the same.
fn is_begun(scan: &mut Scan) -> std::io::Result<bool> {
    Ok(scan.len() >= FILE_HEADER_LEN as u64 && scan.rest(0)?.written)
}
