//! Journal files that wait to be used: those whose former life is over, and new ones full of zeros.
//!
//! A file system that has only reserved what is written next has to note that it is there now, by a
//! commit of its own journal at each sync (ext4's and XFS's unwritten extents): a sync of 150 KiB took
//! 0.28 ms, and 0.18 where something had been there before. Files that are used again have that
//! everywhere. Until there are any, new ones get zeros while lone writes come that wait for syncs, so
//! that more finds them ready.
//!
//! Law: what is in such a file is of no matter; it has its whole length, and is never waited for.

use super::{Tender, remove};
use crate::aligned::AlignedBuffer;
use crate::disk::{DIRECT_ALIGN, DiskFile};
use crate::header::spare_path;
use crate::room::is_full;
use crate::shared::Shared;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long more files wait to be used again than without load, in milliseconds.
const SPARES_MS: u64 = 30_000;
/// Bytes of zeros that are written at once: much, so that they are done with soon.
const PIECE: usize = 512 << 10;
/// A disk that takes so long for each piece is better used for what is waited for.
const SLOW: Duration = Duration::from_millis(4);
/// So many pieces may be late at once.
const LATE_MAX: u32 = 8;

impl Tender {
    /// Removes files that wait to be used again, once nobody has written for a while.
    pub(super) fn trim_spares(&mut self) {
        let Shared { options, counters, spares, .. } = &*self.shared;
        let (now, written) = (options.clock.tick(), counters.bytes.load(Relaxed));
        if std::mem::replace(&mut self.seen.0, written) != written {
            self.seen.1 = now;
        } else if now >= self.seen.1.after_ms(SPARES_MS) {
            let mut spares = spares.lock();
            let keep = options.spare_files_max.min(spares.len());
            let needless = spares.split_off(keep);
            drop(spares);
            remove(&self.shared, needless);
        }
    }

    /// Keeps a journal file for another life, if there is room for it beside `others`: under load
    /// as many as the journal may have, because what the kernel has of them in memory is used
    /// again with them, and new memory is dear.
    pub(super) fn spare(&self, path: &Path, sequence: u64, others: usize) -> Option<PathBuf> {
        let Shared { disk, options, spares, files, .. } = &*self.shared;
        let most = match options.spare_files_max {
            0 => 0,
            least => least.max(options.journal_files_max.saturating_sub(files.lock().len())),
        };
        if spares.lock().len() + others >= most {
            return None;
        }
        let len = disk.open(path).and_then(|file| file.len());
        let spare = spare_path(&options.dir, sequence);
        let whole = len.is_ok_and(|len| len == options.file_bytes_max);
        (whole && disk.rename(path, &spare).is_ok()).then_some(spare)
    }

    /// Makes new files of zeros, while writes that wait for syncs come one at a time, and none are ready.
    pub(super) fn prepare_spares(&mut self) {
        let shared = Arc::clone(&self.shared);
        let Shared { disk, options, spares, calm, .. } = &*shared;
        let names = (0..=u64::MAX).rev().map(|number| spare_path(&options.dir, number));
        for path in names {
            let ready = spares.lock();
            if ready.len() >= options.spare_files_max || !self.zeros_help || !calm.load(Relaxed) {
                return;
            }
            if ready.contains(&path) {
                continue;
            }
            drop(ready);
            // Where one that is being taken into use has the name still, it is tried again.
            let Ok(file) = disk.create(&path) else { return };
            let written = self.write_zeros(&*file);
            if let Ok(true) = written {
                spares.lock().push(path);
                continue;
            }
            if let Err(error) = written {
                tracing::debug!(path = %path.display(), %error, "cannot prepare a journal file");
                self.zeros_help = is_full(&error);
            }
            return remove(&shared, vec![path]);
        }
    }

    /// Fills a new file with zeros; `false` if the disk is better used for something else.
    fn write_zeros(&mut self, file: &dyn DiskFile) -> io::Result<bool> {
        let Shared { options, calm, tight, .. } = &*self.shared;
        let (clock, len) = (&options.clock, options.file_bytes_max);
        file.preallocate(len)?;
        let mut piece = AlignedBuffer::with_capacity(PIECE);
        piece.push(&[0; PIECE]);
        let zeros = piece.all();
        let (begun, mut may_take) = (clock.elapsed(), SLOW * LATE_MAX);
        for at in (0..len).step_by(PIECE) {
            if !calm.load(Relaxed) || tight.load(Relaxed) {
                return Ok(false);
            }
            let left = usize::try_from(len - at).map_or(PIECE, |left| left.min(PIECE));
            let mut bytes = [IoSlice::new(&zeros[..left])];
            if left % DIRECT_ALIGN == 0 {
                file.write_direct_at(at, bytes[0])?;
            } else {
                file.write_at(at, &mut bytes)?;
            }
            may_take += SLOW;
            if clock.elapsed().saturating_sub(begun) >= may_take {
                self.zeros_help = false;
                return Ok(false);
            }
        }
        file.sync_data().map(|()| true)
    }
}
