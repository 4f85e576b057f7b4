//! What the machine can do without an engine.

use super::io;
use crate::failure::Failure;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is appended before each bare sync.
const BLOCK: usize = 4096;
/// Where a bare file begins anew, as a journal file does.
const FILE_BYTES: u64 = 64 << 20;

/// A preallocated file that is appended to and synced.
pub struct BareSync {
    file: File,
    at: u64,
}

impl BareSync {
    /// The file, reserved as the engine reserves its own.
    pub fn make(path: &Path) -> Result<BareSync, Failure> {
        let fail = io("the bare file");
        let options = File::options().read(true).write(true).create_new(true).open(path);
        let file = options.map_err(&fail)?;
        let flags = rustix::fs::FallocateFlags::empty();
        if rustix::fs::fallocate(&file, flags, 0, FILE_BYTES).is_err() {
            file.set_len(FILE_BYTES).map_err(&fail)?;
        }
        file.sync_all().map_err(&fail)?;
        Ok(BareSync { file, at: 0 })
    }

    /// One append of 4 KiB and one `fdatasync`.
    pub fn one(&mut self) -> Result<Duration, Failure> {
        let block = [b'd'; BLOCK];
        let begun = Instant::now();
        self.file.write_all_at(&block, self.at).map_err(io("the bare file"))?;
        self.file.sync_data().map_err(io("the bare file"))?;
        let took = begun.elapsed();
        self.at = (self.at + BLOCK as u64) % FILE_BYTES;
        Ok(took)
    }
}

/// Writes `chunk` over and over until `total` bytes are written, with its checksum each time.
pub fn write_with_checksum(dir: &Path, chunk: &[u8], total: usize) -> Result<Duration, Failure> {
    let fail = io("the bare file");
    std::fs::create_dir_all(dir).map_err(&fail)?;
    let (mut written, mut check) = (0, 0_u32);
    let begun = Instant::now();
    let mut files = Vec::new();
    while written < total {
        let path = dir.join(format!("bare-{}", files.len()));
        let file = File::options().write(true).create_new(true).open(path).map_err(&fail)?;
        let mut at = 0;
        while at < FILE_BYTES && written < total {
            check ^= crc32c::crc32c(chunk);
            file.write_all_at(chunk, at).map_err(&fail)?;
            at += chunk.len() as u64;
            written += chunk.len();
        }
        files.push(file);
    }
    let took = begun.elapsed();
    std::hint::black_box(check);
    for file in files {
        file.sync_all().map_err(&fail)?;
    }
    Ok(took)
}

/// Makes the kernel forget what it has of the files in `dir`, so that they are read from the disk.
pub fn forget(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let fail = io("the journal's files");
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).map_err(&fail)? {
            let path = entry.map_err(&fail)?.path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let file = File::open(&path).map_err(&fail)?;
            file.sync_all().map_err(&fail)?;
            let advice = rustix::fs::Advice::DontNeed;
            rustix::fs::fadvise(&file, 0, None, advice).map_err(|error| fail(error.into()))?;
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// `cat` of `files` to nowhere.
pub fn cat(files: &[PathBuf]) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let status =
        Command::new("cat").args(files).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let took = begun.elapsed();
    match status {
        Ok(status) if status.success() => Ok(took),
        Ok(status) => {
            Err(Failure::refused(format!("`cat` of the journal's files ends with {status}")))
        }
        Err(error) => Err(Failure::refused(format!("`cat` cannot be started: {error}"))),
    }
}
