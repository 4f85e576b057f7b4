//! A real disk that fails, counts, stalls and calls back on demand.

use crate::disk::{Disk, DiskFile, OsDisk};
use parking_lot::{Condvar, Mutex};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is wrong with the disk, and what was done to it.
#[derive(Default)]
pub(super) struct Condition {
    pub fail_write: bool,
    pub fail_sync: bool,
    /// This sync, counted from 1, and all later ones fail.
    pub fail_syncs_from: Option<u64>,
    pub fail_set_len: bool,
    pub fail_create: bool,
    pub fail_preallocate: bool,
    /// No journal file can be moved to the segments.
    pub fail_move: bool,
    /// So many changes succeed, and none after them: what there is then is what a crash leaves.
    pub changes_left: Option<u64>,
    /// This file cannot be read.
    pub fail_read: Option<PathBuf>,
    /// Happens once, just before this file is opened.
    pub before_open: Option<(PathBuf, Action)>,
    /// Syncs wait until this is false again.
    pub stall_sync: bool,
    /// Whether it can tell that the machine has kept running.
    pub knows_boots: bool,
    /// Files that were to be made.
    pub creates: Vec<PathBuf>,
    pub syncs: u64,
    pub stalled: u64,
}

/// What happens at some moment.
type Action = Box<dyn FnOnce() + Send>;

#[derive(Default, Clone)]
pub(super) struct FailingDisk(Arc<(Mutex<Condition>, Condvar)>);

struct FailingFile {
    disk: FailingDisk,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl FailingDisk {
    pub fn set(&self, change: impl FnOnce(&mut Condition)) {
        change(&mut self.0.0.lock());
        self.0.1.notify_all();
    }

    pub fn syncs(&self) -> u64 {
        self.0.0.lock().syncs
    }

    /// Whether something is still to happen before a file is opened.
    pub fn is_waiting(&self) -> bool {
        self.0.0.lock().before_open.is_some()
    }

    /// Waits until a sync stalls.
    pub fn wait_for_stall(&self) {
        let mut condition = self.0.0.lock();
        while condition.stalled == 0 {
            self.0.1.wait(&mut condition);
        }
    }

    /// Waits until a file was to be made at `path` for the `count`th time.
    pub fn wait_for_creates(&self, path: &Path, count: usize) {
        let is_wanted = |made: &&PathBuf| made.as_path() == path;
        let mut condition = self.0.0.lock();
        while condition.creates.iter().filter(is_wanted).count() < count {
            let waited = self.0.1.wait_for(&mut condition, super::PATIENCE);
            assert!(!waited.timed_out(), "{} was never made", path.display());
        }
    }

    fn check(&self, fails: impl FnOnce(&Condition) -> bool) -> io::Result<()> {
        if fails(&self.0.0.lock()) { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
    }

    /// Before anything changes.
    fn change(&self) -> io::Result<()> {
        match &mut self.0.0.lock().changes_left {
            None => Ok(()),
            Some(0) => Err(io::Error::from_raw_os_error(5)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn file(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FailingFile { disk: self.clone(), path: path.to_path_buf(), file })
    }
}

impl Disk for FailingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let checked = self.check(|condition| condition.fail_create).and_then(|()| self.change());
        let made = checked.and_then(|()| OsDisk.create(path));
        self.set(|condition| condition.creates.push(path.to_path_buf()));
        Ok(self.file(path, made?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let action = self.0.0.lock().before_open.take_if(|(wanted, _)| wanted == path);
        if let Some((_, action)) = action {
            action();
        }
        Ok(self.file(path, OsDisk.open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        OsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        OsDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let moves = to.extension().is_some_and(|end| end == "frames");
        self.check(|condition| condition.fail_move && moves)?;
        self.change()?;
        OsDisk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.change()?;
        OsDisk.make_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        OsDisk.lock(path)
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        if self.0.0.lock().knows_boots { OsDisk.boot_id() } else { None }
    }
}

impl DiskFile for FailingFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let fails = self.disk.0.0.lock().fail_read.as_ref() == Some(&self.path);
        if fails {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.file.read_at(at, buffer)
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.disk.change()?;
        if let Err(error) = self.disk.check(|condition| condition.fail_write) {
            // As a full disk does: some of it gets there.
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            self.file.write_at(at, &mut [IoSlice::new(&bytes[..bytes.len() * 2 / 3])])?;
            return Err(error);
        }
        self.file.write_at(at, slices)
    }

    fn sync_data(&self) -> io::Result<()> {
        let (condition, changed) = &*self.disk.0;
        let mut condition = condition.lock();
        condition.syncs += 1;
        let number = condition.syncs;
        condition.stalled += 1;
        changed.notify_all();
        while condition.stall_sync {
            changed.wait(&mut condition);
        }
        condition.stalled -= 1;
        drop(condition);
        self.disk.change()?;
        self.disk.check(|condition| {
            condition.fail_sync || condition.fail_syncs_from.is_some_and(|from| number >= from)
        })?;
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.check(|condition| condition.fail_set_len)?;
        self.disk.change()?;
        self.file.set_len(len)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        if self.disk.0.0.lock().fail_preallocate {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.file.preallocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
