//! The bodies of a subscription's messages that are fetched and neither finished nor parked.
//!
//! Each message comes and goes once, so this is a table and no tree.
//!
//! Law: a subscription that holds nothing keeps next to no room.

use danube_core::Offset;
use danube_wire::record::Record;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bodies for which room is kept while there are none.
const KEEP: usize = 256;

/// Bodies by offset.
#[derive(Default)]
pub(super) struct Bodies(HashMap<Offset, Record, BuildHasherDefault<OffsetHasher>>);

impl Bodies {
    pub(super) fn get(&self, offset: Offset) -> Option<&Record> {
        self.0.get(&offset)
    }

    pub(super) fn extend(&mut self, bodies: Vec<(Offset, Record)>) {
        self.0.extend(bodies);
    }

    pub(super) fn remove(&mut self, offset: Offset) {
        self.0.remove(&offset);
        if self.0.is_empty() && self.0.capacity() > 2 * KEEP {
            self.0.shrink_to(KEEP);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = HashMap::default();
    }
}

/// Spreads offsets, which follow one another and which nobody outside can choose.
#[derive(Default)]
struct OffsetHasher(u64);

impl Hasher for OffsetHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio, so that neighbours are far apart in the upper bits too.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}
