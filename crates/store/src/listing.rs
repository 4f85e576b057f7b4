//! Which files there are, before any frame is read.
//!
//! Law: nothing is removed here but a file that never had a name among the others.

use crate::checkpoint::{self, COPIES};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::header::{
    FILE_HEADER_LEN, FORMAT_VERSION, FileHeader, journal_new_path, journal_sequence, spare_sequence,
};
use crate::scan::Scan;
use std::collections::BTreeSet;
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
    for temporary in copies.chain([journal_new_path(dir)]).filter(|path| paths.contains(path)) {
        // The process died in making it; what it was to hold is still elsewhere.
        if let Err(error) = disk.remove(&temporary) {
            tracing::warn!(path = %temporary.display(), %error, "cannot remove a file that was never whole");
        }
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
    let spares = paths.into_iter().filter(|path| spare_sequence(path).is_some()).collect();
    Ok(Listing { journal, spares })
}
