//! Which topics take their part of a full journal file over as it is, so that no large message is
//! written twice.
//!
//! What it leaves to others: what a topic keeps (`plan`), writing the segments (`copy`), and what
//! becomes of the file ([`tend`](crate::tend)).
//!
//! Law: numbers in, a decision out; at least seven eighths of a file that is taken over are wanted, and
//! half of it later on; what is small is gathered into segments.

use danube_core::TopicId;
use std::collections::BTreeSet;

/// A topic has at least one of so many bytes of the file.
const TOPIC_SHARE: u64 = 8;
/// Of so many parts of the file, one at most is not taken over.
const REST_SHARE: u64 = 8;

/// Of a file that was taken over, less than one of so many parts is not worth the room.
const THIN_SHARE: u64 = 2;

/// What a topic has in one full journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Bytes of its frames of messages.
    pub bytes: u64,
    /// Such frames.
    pub frames: u64,
    /// Whether the topic keeps every message in them.
    pub keeps_all: bool,
}

impl Part {
    /// Whether it is worth a look at the whole file: frames of `frame_bytes_min` on the average.
    pub fn is_large(&self, frame_bytes_min: u64) -> bool {
        self.keeps_all
            && self.frames > 0
            && self.bytes >= self.frames.saturating_mul(frame_bytes_min)
    }
}

/// Topics that take their parts of a file of `len` bytes over; none if too much would be left.
pub(super) fn decide(
    len: u64,
    parts: &[(TopicId, Part)],
    frame_bytes_min: u64,
) -> BTreeSet<TopicId> {
    let takes = |part: &Part| {
        part.is_large(frame_bytes_min) && part.bytes.saturating_mul(TOPIC_SHARE) >= len
    };
    let takers = || parts.iter().filter(|(_, part)| takes(part));
    let bytes = takers().fold(0, |sum: u64, (_, part)| sum.saturating_add(part.bytes));
    let rest = len.saturating_sub(bytes);
    if rest.saturating_mul(REST_SHARE) > len {
        return BTreeSet::new();
    }
    takers().map(|(id, _)| *id).collect()
}

/// Whether so little of a file of `len` bytes that was taken over is still wanted, `bytes`, that it is
/// better written again: else one topic that keeps a little for long would keep all of the file.
pub(crate) fn is_thin(len: u64, bytes: u64) -> bool {
    bytes < len / THIN_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_frames_that_are_kept_stay_where_they_are_if_they_are_most_of_the_file() {
        const LEN: u64 = 64 << 20;
        const MIN: u64 = 32 << 10;
        let part =
            |eighths: u64, frames, keeps_all| Part { bytes: LEN / 64 * eighths, frames, keeps_all };
        // Of 64 parts of the file, how many; frames; whether all are kept.
        let all = part(63, 60, true);
        let table: [(&str, &[Part], &[u32]); 13] = [
            ("nothing", &[], &[]),
            ("one topic has nearly all", &[all], &[1]),
            ("it does not keep all", &[Part { keeps_all: false, ..all }], &[]),
            ("just large enough", &[part(64, 2048, true)], &[1]),
            ("a little too small", &[part(64, 2049, true)], &[]),
            ("just enough of the file", &[part(56, 9, true)], &[1]),
            ("too little of the file", &[part(55, 9, true)], &[]),
            ("two that share it", &[part(30, 9, true), part(28, 9, true)], &[1, 2]),
            ("what is small is copied", &[part(56, 9, true), part(8, 900, true)], &[1]),
            ("small, and too much", &[part(50, 9, true), part(14, 900, true)], &[]),
            ("eight that share it", &[part(8, 9, true); 8], &[1, 2, 3, 4, 5, 6, 7, 8]),
            ("nine do not", &[part(7, 9, true); 9], &[]),
            ("one of them goes", &[part(30, 9, true), part(30, 9, false)], &[]),
        ];
        for (what, parts, expected) in table {
            let parts: Vec<_> = (1..).map(TopicId).zip(parts.iter().copied()).collect();
            let expected: BTreeSet<TopicId> = expected.iter().map(|id| TopicId(*id)).collect();
            assert_eq!(decide(LEN, &parts, MIN), expected, "{what}");
        }
    }

    #[test]
    fn no_numbers_make_it_overflow() {
        for len in [0, 1, u64::MAX] {
            for bytes in [0, 1, u64::MAX] {
                let part = Part { bytes, frames: bytes, keeps_all: true };
                let parts = [(TopicId(1), part), (TopicId(2), part)];
                for least in [0, 1, u64::MAX] {
                    assert!(decide(len, &parts, least).len() <= 2);
                }
            }
        }
    }
}
