//! Doors for fuzzing: any bytes in, no panic, and what decodes encodes to the same again.
//!
//! The targets are in `fuzz/`, a workspace of its own for `cargo fuzz run TARGET`; the same
//! functions run over its corpus in the ordinary tests. Nothing else calls them.
//!
//! Law: each function accepts every input.

use crate::batch::RecordBatch;
use crate::checkpoint;
use crate::disk::{Disk, DiskFile};
use crate::doctor;
use crate::extras::{self, Extras};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, messages_are_whole};
use crate::header::{FILE_HEADER_LEN, FileHeader};
use crate::segment::{
    BLOCK_HEADER_LEN, BlockHeader, HEADER_LEN, OpenSegment, SegmentId, decode_index, decode_taken,
    encode_index, encode_taken, frames_path, survey,
};
use crate::{ReadLimit, Store, StoreOptions, step};
use bytes::Bytes;
use danube_core::{Epoch, Incarnation, Offset, TopicId, WalSyncMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

const DIR: &str = "/fuzz";
/// Topics that are looked at after opening.
const TOPICS: u32 = 4;

/// A journal file's header, a frame's header and its payload.
pub fn frame(bytes: &[u8]) {
    if let Some(header) = bytes.first_chunk::<FILE_HEADER_LEN>().and_then(FileHeader::decode) {
        let again = header.encode();
        assert_eq!(FileHeader::decode(&again), Some(header));
    }
    let Some((sequence, rest)) = bytes.split_first() else { return };
    let sequence = u64::from(*sequence);
    if let Some(first) = rest.first_chunk::<FRAME_HEADER_LEN>()
        && let Some(header) = FrameHeader::decode(first, sequence)
    {
        assert_eq!(header.encode(sequence), *first);
        let _ = header.holds(&rest[FRAME_HEADER_LEN..]);
    }
    let count = u32::from(rest.first().copied().unwrap_or(0));
    let whole = messages_are_whole(rest, count);
    let parsed = RecordBatch::parse(Bytes::copy_from_slice(rest), 0, count, 0);
    assert_eq!(whole, parsed.is_some());
    if let Some((extras, _)) = extras::split(rest)
        && let Some(found) = Extras::decode(extras)
    {
        let again = found.encode();
        assert_eq!(extras::split(&again).map(|(it, _)| Extras::decode(it)), Some(Some(found)));
    }
}

/// Progress records.
pub fn step(bytes: &[u8]) {
    let Some((count, rest)) = bytes.split_first() else { return };
    if let Some(records) = step::decode(rest, u32::from(*count)) {
        assert_eq!(step::encode(&records), rest);
    }
}

/// A segment: its parts alone, and all of it as a file.
pub fn segment(bytes: &[u8]) {
    let (topic, base, generation) = (TopicId(1), 0, 1);
    let id = SegmentId { topic, base, generation };
    if let Some(first) = bytes.first_chunk::<HEADER_LEN>() {
        let _ = SegmentId::decode_header(first);
    }
    if let Some(header) = bytes.first_chunk().and_then(|it| BlockHeader::decode(it, &id)) {
        let again: [u8; BLOCK_HEADER_LEN] = header.encode(&id);
        assert!(BlockHeader::decode(&again, &id).is_some());
    }
    if let Some(index) = decode_index(bytes) {
        assert_eq!(encode_index(&index), bytes);
    }
    if let Some(batches) = decode_taken(bytes, 3) {
        assert_eq!(encode_taken(&batches), bytes);
    }
    // The journal file that it has taken over, if it says so, has the same bytes.
    let (disk, dir) = (MemoryDisk::default(), Path::new(DIR));
    let put = |path| disk.put(path, bytes.to_vec());
    put(id.path(dir));
    let header = bytes.first_chunk().and_then(SegmentId::decode_header);
    if let Some((_, _, journal)) = header {
        put(frames_path(dir, journal));
    }
    // A footer that holds makes the rest reachable.
    let Ok(segment) = survey(&disk, dir, id) else { return };
    if let Ok(mut open) = OpenSegment::open(&disk, dir, id, &segment) {
        let _ = open.read(0, &mut |_| true);
        let _ = open.read(segment.end / 2, &mut |_| false);
        let _ = open.offset_at(1);
    }
}

/// A checkpoint.
pub fn checkpoint(bytes: &[u8]) {
    if let Some((_, Some(found))) = checkpoint::decode(bytes) {
        let again = checkpoint::encode(&found);
        assert!(checkpoint::decode(&again).is_some_and(|(_, it)| it == Some(found)));
    }
}

/// Any files as a data directory: looked at, opened, written to, repaired, opened again.
///
/// The bytes are files one after the other: which one (1 byte), its length (2 bytes), its bytes.
pub fn open(bytes: &[u8]) {
    let disk = MemoryDisk::default();
    let dir = Path::new(DIR);
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([head[1], head[2]])).min(tail.len());
        let (content, after) = tail.split_at(len);
        rest = after;
        disk.put(name(dir, head[0]), content.to_vec());
    }
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let seen = doctor::examine(&disk, dir);
    use_it(&disk, dir, 1 << 20);
    if seen.is_ok() {
        let _ = doctor::repair(&disk, dir);
        use_it(&disk, dir, 1 << 21);
    }
}

fn name(dir: &Path, number: u8) -> PathBuf {
    let segment = |topic, base| SegmentId { topic: TopicId(topic), base, generation: 1 }.path(dir);
    if number >= 0x80 {
        return frames_path(dir, u64::from(number & 3));
    }
    match number % 8 {
        0 => crate::checkpoint::path(dir, 0),
        1 => crate::checkpoint::path(dir, 1),
        2 => segment(1, 0),
        3 => segment(1, 5),
        4 => segment(2, 0),
        other => crate::header::journal_path(dir, u64::from(other) - 5),
    }
}

fn use_it(disk: &Arc<dyn Disk>, dir: &Path, start: u32) {
    let options = StoreOptions {
        background: false,
        file_bytes_max: 4096,
        journal_files_keep: 0,
        cache_bytes_max: 0,
        ..StoreOptions::new(dir, Incarnation(start))
    };
    let Ok(store) = Store::open_on(Arc::clone(disk), options, &mut |_| {}) else { return };
    for id in 1..=TOPICS {
        let log = store.topic(TopicId(id), Epoch(1));
        let mut from = log.bounds().start;
        loop {
            let (tell, answer) = mpsc::sync_channel(1);
            let limit = ReadLimit { records_max: 64, bytes_max: 1 << 16 };
            log.read(from, limit, move |outcome| drop(tell.send(outcome)));
            match answer.recv() {
                Ok(Ok(batch)) if !batch.records.is_empty() => {
                    assert!(batch.next > from, "reading goes on");
                    from = batch.next;
                }
                _ => break,
            }
        }
        let (tell, answer) = mpsc::sync_channel(1);
        let records = vec![Bytes::from_static(b"goes on")];
        log.append(records, WalSyncMode::FsyncBatch, move |outcome| drop(tell.send(outcome)));
        if let Ok(Ok(appended)) = answer.recv() {
            assert!(appended.first >= from && log.bounds().next > appended.first);
            assert!(log.bounds().next > Offset(0));
        }
    }
    let _ = store.tend();
    let _ = store.close();
}

/// Files in memory.
#[derive(Default)]
struct MemoryDisk(Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>);

struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryDisk {
    fn put(&self, path: PathBuf, bytes: Vec<u8>) {
        self.0.lock().insert(path, Arc::new(MemoryFile(Mutex::new(bytes))));
    }
}

impl Disk for MemoryDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.0.lock();
        if files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(MemoryFile(Mutex::new(Vec::new())));
        files.insert(path.to_path_buf(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match self.0.lock().get(path) {
            Some(file) => Ok(Arc::clone(file) as Arc<dyn DiskFile>),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.lock();
        Ok(files.keys().filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_path_buf(), file);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.lock();
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut bytes = self.0.lock();
        let mut at = usize::try_from(at).map_err(io::Error::other)?;
        for slice in slices {
            let end = at + slice.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(slice);
            at = end;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().resize(usize::try_from(len).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.0.lock();
        let len = usize::try_from(len).map_err(io::Error::other)?.max(bytes.len());
        bytes.resize(len, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }
}
