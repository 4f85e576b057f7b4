//! Memory in one piece, for reads that go past the operating system's cache.
//!
//! The device is told of each page of it. In small pages, which lie anywhere, a mebibyte has 256 of
//! them; on a virtual machine such a read takes twice as long as one into a huge page. What the process
//! does without huge pages for is the time that clearing one takes; this is cleared once.
//!
//! Law: it is used again and never grows.

use memmap2::MmapMut;
use std::io;

/// Bytes of it: one huge page.
pub(crate) const LARGE_BYTES: usize = 2 << 20;

/// A huge page, where there are any.
pub(crate) struct Large {
    memory: MmapMut,
    /// Where in `memory` it begins: at a multiple of its size.
    start: usize,
}

impl Large {
    /// New memory, all of it touched.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn new() -> io::Result<Large> {
        let mut memory = MmapMut::map_anon(2 * LARGE_BYTES)?;
        let start = memory.as_ptr().addr().wrapping_neg() % LARGE_BYTES;
        #[cfg(target_os = "linux")]
        {
            // Without huge pages it is slower and nothing else.
            let _ = memory.advise_range(memmap2::Advice::HugePage, start, LARGE_BYTES);
        }
        with_huge_pages(|| memory[start..start + LARGE_BYTES].fill(0));
        Ok(Large { memory, start })
    }

    /// Its first `len` bytes.
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        &self.memory[self.start..self.start + len.min(LARGE_BYTES)]
    }

    /// The same, to be written to.
    pub(crate) fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + len.min(LARGE_BYTES)]
    }
}

/// Does `touch` while the process has huge pages, which it may do without otherwise.
#[cfg(target_os = "linux")]
fn with_huge_pages(touch: impl FnOnce()) {
    use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
    let without = transparent_huge_pages_are_disabled().unwrap_or(false);
    let lent = without && disable_transparent_huge_pages(false).is_ok();
    touch();
    if lent {
        // What fails leaves the process with huge pages: slower now and then, and nothing else.
        let _ = disable_transparent_huge_pages(true);
    }
}

#[cfg(not(target_os = "linux"))]
fn with_huge_pages(touch: impl FnOnce()) {
    touch();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DIRECT_ALIGN;

    #[test]
    fn it_begins_where_a_huge_page_does_and_has_what_was_written_to_it() {
        let mut large = Large::new().expect("memory");
        large.bytes_mut(LARGE_BYTES).fill(7);
        assert_eq!(large.bytes(LARGE_BYTES).as_ptr().addr() % LARGE_BYTES, 0);
        assert!(LARGE_BYTES.is_multiple_of(DIRECT_ALIGN));
        assert!(large.bytes(usize::MAX).iter().all(|byte| *byte == 7));
    }
}
