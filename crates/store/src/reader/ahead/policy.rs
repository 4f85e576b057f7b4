//! Who reads ahead: the one who reads much, in order and alone.
//!
//! Law: numbers in, a decision out. Several who read at once share the operating system's cache.

use std::collections::VecDeque;

/// Smaller reads do not count, in bytes.
const READ_MIN: u64 = 64 << 10;
/// So many reads in a row make an order.
const IN_ORDER: u32 = 2;
/// Bytes that a read may leave out before it, or repeat, and still go on in order.
const SLACK: u64 = 1 << 20;
/// After so many reads of others, who read ahead is taken to be gone.
const ALONE: u64 = 16;
/// For so many reads nothing is tried again that turned out to be of no use.
const PAUSE: u64 = 16;
/// Files whose last read is remembered.
const FILES_MAX: usize = 16;

/// Where the last read of a file ended.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: u64,
    end: u64,
    /// Reads in a row.
    in_order: u32,
}

/// What was read lately.
#[derive(Debug, Default)]
pub(super) struct Policy {
    reads: u64,
    /// The latest at the back.
    places: VecDeque<Place>,
    /// Whose file is read ahead, and when it was read last.
    served: Option<(u64, u64)>,
    /// A file was read ahead nearly to its end, so the next one may go on at once.
    ending: bool,
    not_before: u64,
}

impl Policy {
    /// Takes note of a read of `len` bytes of `file` from byte `at` on. Whether it is, or may be, served
    /// by what is read ahead.
    pub fn note(&mut self, file: u64, at: u64, len: u64) -> bool {
        if len < READ_MIN {
            return false;
        }
        self.reads += 1;
        let known = self.places.iter().position(|place| place.file == file);
        let before = known.and_then(|known| self.places.remove(known));
        if self.places.len() >= FILES_MAX {
            self.places.pop_front();
        }
        let goes_on = |place: &Place| at <= place.end + SLACK && place.end <= at + SLACK;
        let in_order = before.filter(goes_on).map_or(0, |place| place.in_order.saturating_add(1));
        self.places.push_back(Place { file, end: at.saturating_add(len), in_order });
        match &mut self.served {
            Some((served, last)) if *served == file => {
                *last = self.reads;
                return in_order > 0;
            }
            Some((_, last)) if self.reads - *last <= ALONE && !self.ending => return false,
            _ => {}
        }
        let goes_on = in_order >= IN_ORDER || std::mem::take(&mut self.ending) && at <= SLACK;
        goes_on && self.reads >= self.not_before
    }

    /// `file` is read ahead from now on.
    pub fn serves(&mut self, file: u64) {
        (self.served, self.ending) = (Some((file, self.reads)), false);
    }

    /// There is not much left of the file that is read ahead.
    pub fn is_ending(&mut self) {
        self.ending = true;
    }

    /// Nothing is read ahead any more, because that file has no more.
    pub fn has_ended(&mut self) {
        (self.served, self.ending) = (None, true);
    }

    /// Nothing is read ahead any more, nor for a while, as it is of no use.
    pub fn pauses(&mut self) {
        self.served = None;
        self.not_before = self.reads + PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Which of so many reads in a row, from `at` on, are served.
    fn reads(policy: &mut Policy, file: u64, at: u64, count: u64) -> Vec<bool> {
        (0..count).map(|read| policy.note(file, at + read * MIB, MIB)).collect()
    }

    #[test]
    fn who_reads_on_in_order_is_served_and_who_jumps_is_not() {
        let mut policy = Policy::default();
        assert_eq!(reads(&mut policy, 1, 0, 5), [false, false, true, true, true]);
        policy.serves(1);
        assert!(policy.note(1, 5 * MIB - 100_000, MIB), "a little is read twice");
        assert!(!policy.note(1, 40 * MIB, MIB));
        assert!(policy.note(1, 41 * MIB, MIB));
        assert!(!policy.note(1, 42 * MIB, READ_MIN - 1), "small reads are others'");
    }

    #[test]
    fn several_at_once_share_the_cache_and_the_last_of_them_is_alone() {
        let mut policy = Policy::default();
        reads(&mut policy, 1, 0, 5);
        policy.serves(1);
        for read in 5..50 {
            assert!(policy.note(1, read * MIB, MIB));
            assert!(!policy.note(2, read * MIB, MIB), "somebody else is served");
        }
        let alone = reads(&mut policy, 2, 50 * MIB, 20);
        assert_eq!(alone.iter().position(|served| *served), Some(ALONE as usize - 1));
    }

    #[test]
    fn the_next_file_goes_on_at_once_and_what_was_of_no_use_waits() {
        let mut policy = Policy::default();
        reads(&mut policy, 1, 0, 5);
        policy.serves(1);
        policy.is_ending();
        assert!(policy.note(1, 5 * MIB, MIB), "what is left of it");
        assert!(policy.note(2, 64, 2 * READ_MIN), "the next one");
        policy.pauses();
        let after = reads(&mut policy, 2, READ_MIN, 20);
        assert_eq!(after.iter().position(|served| *served), Some(PAUSE as usize - 1));
    }

    #[test]
    fn no_numbers_make_it_overflow_and_it_remembers_few_files() {
        let mut policy = Policy::default();
        for file in 0..100 {
            policy.note(file, u64::MAX - MIB, u64::MAX);
        }
        assert_eq!(policy.places.len(), FILES_MAX);
    }
}
