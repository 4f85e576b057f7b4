//! The first 64 bytes of a journal file, and the file's name.
//!
//! Law: a header that this module returns is whole: its checksum held.

use std::path::{Path, PathBuf};

/// Bytes of the file header; the first frame begins here.
pub(crate) const FILE_HEADER_LEN: usize = 64;
/// Format version that this code writes and reads.
pub const FORMAT_VERSION: u16 = 3;
const MAGIC: &[u8; 8] = b"DANUBEJL";

/// What a journal file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Format version.
    pub version: u16,
    /// Place among the journal files.
    pub sequence: u64,
    /// Process start that wrote it.
    pub incarnation: u32,
    /// Log sequence number of its first frame. Frames of earlier files from this number on are
    /// void: they were written by a group that failed.
    pub start_lsn: u64,
    /// The newest checkpoint when it was begun; 0 when there was none. Without one that is at
    /// least as new, earlier journal files may be missing.
    pub checkpoint: u64,
    /// Topic of the frame before that one, so that the last frame of the file before has a witness;
    /// [`NO_TOPIC`](crate::frame::NO_TOPIC) if there was none.
    pub previous: u32,
    /// Whether that frame has extras.
    pub previous_extras: bool,
    /// Which running of the machine wrote it; zeros when that is not known.
    pub boot: [u8; 16],
}

impl FileHeader {
    /// Bytes as they stand in the file.
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_LEN] {
        let mut bytes = [0; FILE_HEADER_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[12..14].copy_from_slice(&self.version.to_le_bytes());
        bytes[14] = u8::from(self.previous_extras);
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.start_lsn.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.previous.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.checkpoint.to_le_bytes());
        bytes[48..].copy_from_slice(&self.boot);
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; `None` when magic or checksum do not hold. The version may be any.
    pub(crate) fn decode(bytes: &[u8; FILE_HEADER_LEN]) -> Option<FileHeader> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let whole = &bytes[..8] == MAGIC && u32_at(8) == crc32c::crc32c(&bytes[12..]);
        whole.then(|| FileHeader {
            version: u16::from_le_bytes([bytes[12], bytes[13]]),
            sequence: u64_at(16),
            start_lsn: u64_at(24),
            incarnation: u32_at(32),
            previous: u32_at(36),
            previous_extras: bytes[14] & 1 != 0,
            checkpoint: u64_at(40),
            boot: bytes[48..].try_into().expect("16 bytes"),
        })
    }
}

/// Path of journal file `sequence`.
pub(crate) fn journal_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("journal-{sequence:020}.log"))
}

/// Path of the journal file that is being made and has no place among the others yet.
pub(crate) fn journal_new_path(dir: &Path) -> PathBuf {
    dir.join("journal.new")
}

/// Path of a journal file that is being copied; nothing in it counts.
pub(crate) fn journal_copy_path(dir: &Path) -> PathBuf {
    dir.join("journal.copy")
}

/// Path of the file that is kept for a full disk.
pub(crate) fn reserve_path(dir: &Path) -> PathBuf {
    dir.join("journal.reserve")
}

/// Path under which what was journal file `sequence` waits to be used again, or one that never was any
/// waits to be used.
pub(crate) fn spare_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("journal-{sequence:020}.spare"))
}

/// Sequence number in a journal file's name; `None` for any other file.
pub(crate) fn journal_sequence(path: &Path) -> Option<u64> {
    sequence_in(path, ".log")
}

/// Sequence number in a spare file's name; `None` for any other file.
pub(crate) fn spare_sequence(path: &Path) -> Option<u64> {
    sequence_in(path, ".spare")
}

fn sequence_in(path: &Path, end: &str) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("journal-")?.strip_suffix(end)?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_number_belong_together() {
        let dir = Path::new("/d");
        for sequence in [0, 7, u64::MAX] {
            assert_eq!(journal_sequence(&journal_path(dir, sequence)), Some(sequence));
        }
        for other in ["LOCK", "journal-1.log", "journal-0000000000000000000x.log", "journal-.log"] {
            assert_eq!(journal_sequence(&dir.join(other)), None, "{other}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let header = FileHeader {
            version: 1,
            sequence: 9,
            incarnation: 3,
            start_lsn: 77,
            checkpoint: 5,
            previous: 8,
            previous_extras: true,
            boot: [6; 16],
        };
        let bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes), Some(header));
        for bit in 0..FILE_HEADER_LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&damaged), None, "bit {bit}");
        }
    }
}
