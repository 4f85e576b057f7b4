//! That a file reads the same with what is read ahead and without, and who gets it.

use super::*;
use crate::disk::OsDisk;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const MIB: usize = 1 << 20;
const FILE_BYTES: usize = 12 * MIB + 777;

/// A disk that counts what is read past its cache, and what becomes of that.
#[derive(Default)]
struct Counting {
    windows: AtomicU64,
    refuses: AtomicBool,
    has_all_in_cache: AtomicBool,
}

struct CountingDisk(Arc<Counting>);

struct CountingFile(Arc<Counting>, Arc<dyn DiskFile>);

impl PastCache for CountingFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(at.is_multiple_of(DIRECT_ALIGN as u64), "from byte {at} on");
        assert!(buffer.len().is_multiple_of(DIRECT_ALIGN), "{} bytes", buffer.len());
        assert!(buffer.as_ptr().addr().is_multiple_of(DIRECT_ALIGN), "to where it may not");
        if self.0.refuses.load(Relaxed) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.0.windows.fetch_add(1, Relaxed);
        self.1.read_at(at, buffer)
    }

    fn is_in_cache(&self, _at: u64) -> bool {
        self.0.has_all_in_cache.load(Relaxed)
    }
}

impl Disk for CountingDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        OsDisk.open(path)
    }

    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn PastCache>> {
        Ok(Arc::new(CountingFile(Arc::clone(&self.0), OsDisk.open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        OsDisk.create(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        OsDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.make_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        OsDisk.lock(path)
    }
}

/// Files of [`FILE_BYTES`], on a disk that reads ahead.
struct Setting {
    counting: Arc<Counting>,
    disk: AheadDisk,
    dir: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Setting {
    fn new(files: usize, background: bool) -> Setting {
        let dir = tempfile::tempdir().expect("directory");
        let number = |at: usize| (at as u32).wrapping_mul(0x9E37_79B1).to_le_bytes();
        let bytes: Vec<u8> =
            (0..FILE_BYTES.div_ceil(4)).flat_map(number).take(FILE_BYTES).collect();
        for file in 0..files {
            std::fs::write(dir.path().join(file.to_string()), &bytes).expect("writes");
        }
        let counting = Arc::new(Counting::default());
        let disk = AheadDisk::new(Arc::new(CountingDisk(Arc::clone(&counting))), background);
        Setting { counting, disk, dir, bytes }
    }

    fn open(&self, file: usize) -> Arc<dyn DiskFile> {
        self.disk.open(&self.dir.path().join(file.to_string())).expect("opens")
    }

    /// Reads in one of two ways, and looks whether it is what the file has.
    fn check(&self, file: &dyn DiskFile, at: usize, len: usize) {
        let expected = &self.bytes[at.min(FILE_BYTES)..(at + len).min(FILE_BYTES)];
        let read = if len.is_multiple_of(2) {
            file.read_new(at as u64, len).expect("reads")
        } else {
            let mut bytes = vec![0; len];
            let filled = file.read_at(at as u64, &mut bytes).expect("reads");
            bytes.truncate(filled);
            bytes
        };
        assert!(read == expected, "{len} bytes from {at} on");
    }

    /// Reads all of a file in order, `len` bytes at a time.
    fn check_all(&self, file: usize, len: usize) {
        let file = self.open(file);
        (0..FILE_BYTES).step_by(len).for_each(|at| self.check(&*file, at, len));
    }

    fn windows(&self) -> u64 {
        self.counting.windows.load(Relaxed)
    }
}

#[test]
fn one_file_after_the_other_is_read_ahead_and_reads_the_same() {
    for background in [false, true] {
        for len in [100_000, 128 << 10, MIB - 1, MIB + 12_345] {
            let setting = Setting::new(3, background);
            (0..3).for_each(|file| setting.check_all(file, len));
            // Few of the first file are read in the ordinary way, and none of the others.
            let windows = setting.windows();
            assert!((12..=21).contains(&windows), "{windows} of {len} bytes");
        }
    }
}

#[test]
fn what_the_cache_has_is_read_from_there() {
    let setting = Setting::new(1, true);
    setting.counting.has_all_in_cache.store(true, Relaxed);
    setting.check_all(0, MIB);
    assert_eq!(setting.windows(), 0);
    assert!(setting.disk.ahead.lock().worker.is_none(), "it takes no memory");
}

#[test]
fn what_cannot_be_read_ahead_is_read_all_the_same() {
    for background in [false, true] {
        let setting = Setting::new(2, background);
        setting.counting.refuses.store(true, Relaxed);
        setting.check_all(0, MIB / 2);
        assert_eq!(setting.windows(), 0);
        setting.counting.refuses.store(false, Relaxed);
        setting.check_all(1, MIB / 4);
        assert!(setting.windows() > 0, "it is tried again later");
    }
}

#[test]
fn two_at_once_read_the_same_and_only_one_is_read_ahead() {
    let setting = Setting::new(2, true);
    let (one, two) = (setting.open(0), setting.open(1));
    for at in (0..FILE_BYTES).step_by(MIB) {
        setting.check(&*one, at, MIB);
        setting.check(&*two, at, MIB);
    }
    assert!(setting.windows() <= 7, "{} windows", setting.windows());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_is_read_is_what_the_file_has(
        reads in prop::collection::vec((0..2_usize, 0..FILE_BYTES + MIB, 1..6_usize, 1..2 * MIB, 0..MIB / 4), 1..12),
        background in any::<bool>(),
    ) {
        let setting = Setting::new(2, background);
        let files = [setting.open(0), setting.open(1)];
        for (file, mut at, count, len, back) in reads {
            for _ in 0..count {
                setting.check(&*files[file], at, len);
                at += len - back.min(len);
            }
        }
    }
}
