//! The file that comes after the active one: where it comes from, and that it is there in time.
//!
//! To give a file room the file system may have to read what is free, from a device that is busy with
//! what is being written. So where much is written the next file is made while the active one is
//! filled.
//!
//! Law: such a file has the temporary name and no header of its own, so a restart takes it for one
//! that was never begun.

use super::Journal;
use super::active::END;
use super::beside::Beside;
use crate::disk::DiskFile;
use crate::header::{FILE_HEADER_LEN, journal_new_path};
use crate::room::{Reserved, is_full, reserve_bytes, take_reserve};
use crate::shared::Shared;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Groups of fewer bytes do not fill a file so fast that the next one is made early.
const EARLY_GROUP_BYTES: u64 = 16 << 10;

/// A file with room and without a header.
pub(crate) struct Blank {
    /// Open for writing.
    pub file: Arc<dyn DiskFile>,
    /// How much room it has.
    pub reserved: Reserved,
    /// Whether it was used before.
    pub reused: bool,
}

impl Blank {
    /// One under the name `temporary` with room for a header and `bytes`: used before, new or, on a
    /// full disk, the one in reserve.
    pub fn make(shared: &Shared, bytes: u64, temporary: &Path) -> io::Result<Blank> {
        Blank::make_early(shared, bytes, temporary).or_else(|error| {
            if !is_full(&error) {
                return Err(error);
            }
            let taken = take_reserve(shared, bytes + FILE_HEADER_LEN as u64, temporary);
            taken.map(|(file, reserved)| Blank { file, reserved, reused: false }).map_err(|_| error)
        })
    }

    /// The same, but for the one in reserve.
    fn make_early(shared: &Shared, bytes: u64, temporary: &Path) -> io::Result<Blank> {
        let Shared { disk, options, .. } = shared;
        // One that a failure left there.
        let _ = disk.remove(temporary);
        let (most, reserve) = (options.file_bytes_max, reserve_bytes(options));
        let bytes = bytes + FILE_HEADER_LEN as u64;
        let spare = shared.spares.lock().pop();
        if let Some(spare) = spare {
            match reuse(shared, &spare, bytes, temporary) {
                Ok(blank) => return Ok(blank),
                Err(error) => {
                    tracing::debug!(%error, "cannot reuse a journal file");
                    let _ = disk.remove(temporary);
                }
            }
        }
        let made = disk.create(temporary).and_then(|file| {
            let reserved = Reserved::begin(&*file, most.max(bytes), reserve.max(bytes))?;
            Ok(Blank { file, reserved, reused: false })
        });
        made.inspect_err(|_| {
            let _ = disk.remove(temporary);
        })
    }
}

fn reuse(shared: &Shared, spare: &Path, bytes: u64, temporary: &Path) -> io::Result<Blank> {
    let Shared { disk, options, .. } = shared;
    disk.rename(spare, temporary)?;
    // It must not come back under its former name with what is written to it now.
    disk.sync_dir(&options.dir)?;
    let file = disk.open(temporary)?;
    if file.len()? < options.file_bytes_max {
        // The process died in preparing it.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut reserved = Reserved::of(options.file_bytes_max);
    reserved.extend(&*file, bytes + END.len() as u64, options.file_bytes_max)?;
    Ok(Blank { file, reserved, reused: true })
}

/// A blank file that is being made.
pub(super) struct Next {
    blank: Arc<Mutex<Option<Blank>>>,
    made: Beside,
}

impl Next {
    fn begin(shared: &Arc<Shared>, temporary: PathBuf) -> Next {
        let (common, path) = (Arc::clone(shared), temporary.clone());
        let blank = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&blank);
        let made = Beside::begin(path, shared.options.background, move || {
            match Blank::make_early(&common, 0, &temporary) {
                Ok(blank) => *slot.lock() = Some(blank),
                // It is tried again, and told, when the file is needed.
                Err(error) => tracing::debug!(%error, "the next journal file is not ready early"),
            }
            Ok(())
        });
        Next { blank, made }
    }

    /// Waits for it.
    fn wait(self) -> Option<Blank> {
        self.made.wait().ok().and_then(|()| self.blank.lock().take())
    }
}

impl Journal {
    /// A blank file with room for `bytes` under the name `temporary`: the one that was made early, if
    /// one was.
    pub(super) fn blank(&mut self, bytes: u64, temporary: &Path) -> io::Result<Blank> {
        match self.next.take().and_then(Next::wait) {
            Some(blank) => Ok(blank),
            None => Blank::make(&self.shared, bytes, temporary),
        }
    }

    /// Begins to make the file after the active one, if that fills fast: by groups of `bytes`.
    pub(super) fn make_next_early(&mut self, bytes: u64) {
        let options = &self.shared.options;
        let Some(active) = self.active.as_ref().filter(|active| active.is_named()) else { return };
        let is_due = bytes >= EARLY_GROUP_BYTES && active.len >= options.file_bytes_max / 2;
        if is_due && options.background && self.next.is_none() && self.former.is_none() {
            self.next = Some(Next::begin(&self.shared, journal_new_path(&options.dir)));
        }
    }

    /// Does without the file that was made early.
    pub(super) fn forget_next(&mut self) {
        if self.next.take().and_then(Next::wait).is_some() {
            let Shared { disk, options, .. } = &*self.shared;
            let _ = disk.remove(&journal_new_path(&options.dir));
        }
    }
}
