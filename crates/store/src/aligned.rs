//! Bytes gathered for writes that go past the operating system's cache.
//!
//! Law: what is written of it begins at an address, and has a length, that such writes may have.

use crate::disk::DIRECT_ALIGN;
use std::io::IoSlice;

/// Bytes that are written a whole number of [`DIRECT_ALIGN`] at a time.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    /// Where in `bytes` the aligned part begins.
    start: usize,
}

impl AlignedBuffer {
    /// An empty one with room for `capacity` bytes.
    pub(crate) fn with_capacity(capacity: usize) -> AlignedBuffer {
        let mut bytes: Vec<u8> = Vec::with_capacity(capacity + DIRECT_ALIGN);
        let start = bytes.as_ptr().addr().wrapping_neg() % DIRECT_ALIGN;
        bytes.resize(start, 0);
        AlignedBuffer { bytes, start }
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Adds a copy of `more`. Returns where [`amend`](Self::amend) finds it.
    pub(crate) fn push(&mut self, more: &[u8]) -> usize {
        if self.bytes.len() + more.len() > self.bytes.capacity() {
            // Growing in place would move it to any address.
            let mut larger = AlignedBuffer::with_capacity(2 * self.len() + more.len());
            larger.bytes.extend_from_slice(&self.bytes[self.start..]);
            *self = larger;
        }
        let at = self.len();
        self.bytes.extend_from_slice(more);
        at
    }

    /// Writes `bytes` over those that [`push`](Self::push) has put at `at`.
    pub(crate) fn amend(&mut self, at: usize, bytes: &[u8]) {
        let at = self.start + at;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds zeros up to where it can be written as a whole.
    pub(crate) fn pad(&mut self) {
        let end = self.start + self.len().next_multiple_of(DIRECT_ALIGN);
        // Room for less than one unit was there from the beginning, or grows like any other.
        self.push(&[0; DIRECT_ALIGN][..end - self.bytes.len()]);
    }

    /// The part at its front that can be written.
    pub(crate) fn whole(&self) -> IoSlice<'_> {
        let len = self.len() - self.len() % DIRECT_ALIGN;
        IoSlice::new(&self.bytes[self.start..self.start + len])
    }

    /// Takes all of it that can be written away; says how much that was.
    pub(crate) fn clear_whole(&mut self) -> usize {
        let whole = self.len() - self.len() % DIRECT_ALIGN;
        self.bytes.copy_within(self.start + whole.., self.start);
        self.bytes.truncate(self.bytes.len() - whole);
        whole
    }

    /// Takes away what is behind its first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(self.start + len);
    }

    /// All of it.
    pub(crate) fn all(&self) -> IoSlice<'_> {
        IoSlice::new(&self.bytes[self.start..])
    }

    /// Takes all of it away.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_aligned_and_is_what_was_added(
            parts in proptest::collection::vec((0_usize..9000, any::<u8>()), 1..20),
            capacity in 0_usize..10_000,
        ) {
            let mut buffer = AlignedBuffer::with_capacity(capacity);
            let (mut written, mut expected) = (Vec::new(), Vec::new());
            for (len, byte) in parts {
                let at = buffer.push(&vec![0; len]);
                buffer.amend(at, &vec![byte; len]);
                expected.extend(vec![byte; len]);
                let whole = buffer.whole();
                prop_assert_eq!(whole.as_ptr().addr() % DIRECT_ALIGN, 0);
                prop_assert_eq!(whole.len() % DIRECT_ALIGN, 0);
                written.extend_from_slice(&whole);
                buffer.clear_whole();
                prop_assert!(buffer.len() < DIRECT_ALIGN);
            }
            buffer.pad();
            written.extend_from_slice(&buffer.whole());
            buffer.clear_whole();
            prop_assert_eq!(buffer.len(), 0);
            prop_assert_eq!(written.len(), expected.len().next_multiple_of(DIRECT_ALIGN));
            prop_assert_eq!(&written[..expected.len()], &expected);
            prop_assert!(written[expected.len()..].iter().all(|byte| *byte == 0));
        }
    }
}
