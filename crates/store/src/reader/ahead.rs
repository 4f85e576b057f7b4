//! Reading ahead, past the operating system's cache.
//!
//! Who reads much that is old, in order and alone, reads what nobody else wants. An ordinary read
//! would copy each byte into the operating system's cache, for nobody, and out of it again, and would
//! wait where that has not read ahead far enough. So what is to come is read by a thread of its own
//! into memory that is used again, while what was read is checked and handed out. What is in the cache
//! is read from there.
//!
//! What this leaves to others: which bytes are wanted, and whether they hold. Files that still change
//! are not for this: what was read ahead of them would be of another time.
//!
//! Law: a file reads as without it; whatever fails here is read in the ordinary way, which tells.

use crate::disk::{DIRECT_ALIGN, Disk, DiskFile, PastCache};
use parking_lot::Mutex;
use policy::Policy;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::{WINDOW_MAX, Wanted, Window, Worker};

mod policy;
mod worker;

/// After so many bytes it is looked again whether the cache has what is to come.
const LOOK_BYTES: u64 = 32 << 20;
/// Less than this is not worth it, in bytes.
const WORTH_BYTES: u64 = 4 << 20;

/// A disk whose files, opened for reading, read ahead.
pub(crate) struct AheadDisk {
    disk: Arc<dyn Disk>,
    ahead: Arc<Mutex<Ahead>>,
}

impl AheadDisk {
    /// One over `disk`, with a thread of its own if `background`.
    pub(crate) fn new(disk: Arc<dyn Disk>, background: bool) -> AheadDisk {
        let ahead = Ahead {
            disk: Arc::clone(&disk),
            background,
            files: 0,
            streams: 0,
            policy: Policy::default(),
            worker: None,
            stream: None,
        };
        AheadDisk { disk, ahead: Arc::new(Mutex::new(ahead)) }
    }
}

impl Disk for AheadDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path)?;
        let mut ahead = self.ahead.lock();
        ahead.files += 1;
        let id = ahead.files;
        drop(ahead);
        let ahead = Arc::clone(&self.ahead);
        Ok(Arc::new(AheadFile { id, path: path.to_path_buf(), file, ahead }))
    }

    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn PastCache>> {
        self.disk.open_past_cache(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.make_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock(path)
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        self.disk.boot_id()
    }
}

struct AheadFile {
    id: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    ahead: Arc<Mutex<Ahead>>,
}

impl DiskFile for AheadFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (len, mut filled) = (buffer.len(), 0);
        let served = self.ahead.lock().serve(self, at, len, &mut |bytes| {
            buffer[filled..filled + bytes.len()].copy_from_slice(bytes);
            filled += bytes.len();
        });
        if served { Ok(len) } else { self.file.read_at(at, buffer) }
    }

    fn read_new(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let served = self.ahead.lock().serve(self, at, len, &mut |bytes| {
            read.reserve_exact(len - read.len());
            read.extend_from_slice(bytes);
        });
        if served { Ok(read) } else { self.file.read_new(at, len) }
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.file.write_at(at, slices)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.file.preallocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// What is read ahead, for one file at a time.
struct Ahead {
    disk: Arc<dyn Disk>,
    background: bool,
    /// Files opened so far.
    files: u64,
    /// Streams begun so far.
    streams: u64,
    policy: Policy,
    /// Made when it is first needed.
    worker: Option<Worker>,
    stream: Option<Stream>,
}

/// A file that is read ahead.
struct Stream {
    /// Tells what is on its way for it from what an earlier one has left, of the same file even.
    id: u64,
    /// Which file it is.
    of: u64,
    file: Arc<dyn PastCache>,
    /// What is there, in order and without a gap.
    windows: VecDeque<Window>,
    /// Byte from which on nothing is asked for yet.
    next: u64,
    /// Byte up to which anything can be.
    end: u64,
    /// Byte at which it is looked again whether the cache has what is to come.
    look_at: u64,
}

impl Ahead {
    /// Hands `len` bytes of `file` from byte `at` on to `take`, in order; or says that they are to be
    /// read in the ordinary way.
    fn serve(
        &mut self,
        file: &AheadFile,
        at: u64,
        len: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let end = at.saturating_add(len as u64);
        if !self.policy.note(file.id, at, len as u64) {
            return false;
        }
        if self.stream.as_ref().is_none_or(|stream| stream.of != file.id) && !self.begin(file, at) {
            return false;
        }
        let left = self.stream.as_ref().and_then(|stream| stream.end.checked_sub(end));
        let Some(left) = left else {
            self.stop();
            self.policy.has_ended();
            return false;
        };
        if left < WORTH_BYTES {
            self.policy.is_ending();
        }
        if !self.reach(at, end) {
            self.stop();
            self.policy.pauses();
            return false;
        }
        for window in self.stream.iter().flat_map(|stream| &stream.windows) {
            let (from, to) = (at.max(window.at), end.min(window.end()));
            if from < to {
                take(&window.bytes()[(from - window.at) as usize..(to - window.at) as usize]);
            }
        }
        true
    }

    /// Begins to read `file` ahead from byte `at` on, if that is of use.
    fn begin(&mut self, file: &AheadFile, at: u64) -> bool {
        self.stop();
        let unit = DIRECT_ALIGN as u64;
        let (next, len) = (at - at % unit, file.file.len().unwrap_or(0));
        let end = len - len % unit;
        if end.saturating_sub(next) < WORTH_BYTES {
            return false;
        }
        let opened = self.disk.open_past_cache(&file.path);
        // What comes next may be there because it was read ahead in the ordinary way.
        let opened = opened.ok().filter(|opened| !opened.is_in_cache(next.midpoint(end)));
        if self.worker.is_none() && opened.is_some() {
            self.worker = Worker::begin(self.background).ok();
        }
        let (Some(opened), Some(worker)) = (opened, &mut self.worker) else {
            self.policy.pauses();
            return false;
        };
        self.streams += 1;
        let (id, windows, look_at) = (self.streams, VecDeque::new(), next + LOOK_BYTES);
        let mut stream = Stream { id, of: file.id, file: opened, windows, next, end, look_at };
        stream.ask(worker);
        self.stream = Some(stream);
        self.policy.serves(file.id);
        true
    }

    /// Sees to it that all from byte `at` to byte `end` is there, if that can be.
    fn reach(&mut self, at: u64, end: u64) -> bool {
        let (Some(stream), Some(worker)) = (&mut self.stream, &mut self.worker) else {
            return false;
        };
        if end > stream.look_at {
            stream.look_at = end + LOOK_BYTES;
            if stream.file.is_in_cache(stream.next) {
                return false;
            }
        }
        // The others may be wanted again: the next read may begin a little before the end of this one.
        while stream.windows.front().is_some_and(|window| window.end() <= at) {
            stream.windows.pop_front().into_iter().for_each(|window| worker.give_back(window));
        }
        stream.ask(worker);
        while stream.windows.back().is_none_or(|last| last.end() < end) {
            let Some(window) = worker.next() else { return false };
            if window.stream != stream.id {
                // What an earlier one has left.
                worker.give_back(window);
                stream.ask(worker);
            } else if window.is_whole() {
                stream.windows.push_back(window);
            } else {
                worker.give_back(window);
                return false;
            }
        }
        stream.windows.front().is_some_and(|first| first.at <= at)
    }

    /// Lets go what is read ahead.
    fn stop(&mut self) {
        let (Some(stream), Some(worker)) = (self.stream.take(), &mut self.worker) else { return };
        stream.windows.into_iter().for_each(|window| worker.give_back(window));
    }
}

impl Stream {
    /// Asks for what is to come, as far as there is room.
    fn ask(&mut self, worker: &mut Worker) {
        while self.next < self.end && worker.has_room() {
            let len = WINDOW_MAX.min(self.end - self.next);
            let file = Arc::clone(&self.file);
            worker.ask(Wanted { stream: self.id, file, at: self.next, len: len as usize });
            self.next += len;
        }
    }
}

#[cfg(test)]
mod tests;
