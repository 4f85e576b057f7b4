//! One vectored write in the making.
//!
//! What is small is copied side by side; what is large stays where it is and is only pointed to, so
//! it is not copied on its way to the kernel.
//!
//! Law: the slices are what was added, in that order.

use bytes::Bytes;
use std::io::IoSlice;
use std::ops::Range;

/// Bytes from which on something is pointed to instead of copied: below that one more slice costs
/// the kernel more than the copy.
const SHARE_MIN: usize = 2 << 10;
/// Memory kept when there is nothing to do, in bytes.
const KEEP_MAX: usize = 256 << 10;

/// Bytes to be written one after the other.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    arena: Vec<u8>,
    parts: Vec<Part>,
    len: u64,
}

#[derive(Debug)]
enum Part {
    Copied(Range<usize>),
    Shared(Bytes),
}

impl Gather {
    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds a copy of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        let begin = self.arena.len();
        self.arena.extend_from_slice(bytes);
        let end = self.arena.len();
        match self.parts.last_mut() {
            Some(Part::Copied(range)) => range.end = end,
            _ => self.parts.push(Part::Copied(begin..end)),
        }
        self.len += bytes.len() as u64;
    }

    /// Adds `bytes`, sharing them if they are many.
    pub(crate) fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_MIN {
            self.copy(bytes);
        } else {
            self.len += bytes.len() as u64;
            self.parts.push(Part::Shared(bytes.clone()));
        }
    }

    /// The bytes as slices for one write.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Copied(range) => IoSlice::new(&self.arena[range.clone()]),
                Part::Shared(bytes) => IoSlice::new(bytes),
            })
            .collect()
    }

    /// Begins anew; memory that a large write took is kept if the next one is `due` already.
    pub(crate) fn clear(&mut self, due: bool) {
        self.arena.clear();
        self.parts.clear();
        self.len = 0;
        if !due {
            self.arena.shrink_to(KEEP_MAX);
            self.parts.shrink_to(64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slices_are_what_was_added_and_small_things_lie_together() {
        let large = Bytes::from(vec![7; SHARE_MIN]);
        let mut gather = Gather::default();
        gather.copy(b"ab");
        gather.copy(b"cd");
        gather.share(&Bytes::from_static(b"e"));
        gather.share(&large);
        gather.copy(b"f");
        let slices = gather.slices();
        assert_eq!(slices.len(), 3);
        let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(all, [&b"abcde"[..], &large, b"f"].concat());
        assert_eq!(gather.len(), all.len() as u64);
        gather.clear(false);
        assert_eq!((gather.len(), gather.slices().len()), (0, 0));
    }
}
