//! From an offset to its slot.
//!
//! Held offsets are dense as a rule, so the index has pages of neighbours: a few bytes for each of
//! a million messages in a row, a small page for one that is alone.
//!
//! Law: a page exists exactly while one of its offsets has a slot.

use super::slot::SlotId;
use crate::ids::Offset;
use std::collections::BTreeMap;

/// Offsets of one page, as a power of two.
const PAGE_BITS: u32 = 5;
const PAGE_LEN: usize = 1 << PAGE_BITS;

/// Which slot an offset has.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug, Clone)]
struct Page {
    /// One bit per offset that has a slot.
    taken: u32,
    slots: Box<[SlotId; PAGE_LEN]>,
}

impl Index {
    pub fn get(&self, offset: Offset) -> Option<SlotId> {
        let (page, place) = split(offset);
        let page = self.pages.get(&page)?;
        (page.taken & 1 << place != 0).then(|| page.slots[place])
    }

    pub fn insert(&mut self, offset: Offset, id: SlotId) {
        let (page, place) = split(offset);
        let empty = || Page { taken: 0, slots: Box::new([0; PAGE_LEN]) };
        let page = self.pages.entry(page).or_insert_with(empty);
        debug_assert!(page.taken & 1 << place == 0, "offset {offset} has two slots");
        page.taken |= 1 << place;
        page.slots[place] = id;
    }

    pub fn remove(&mut self, offset: Offset) {
        let (number, place) = split(offset);
        if let Some(page) = self.pages.get_mut(&number) {
            page.taken &= !(1 << place);
            if page.taken == 0 {
                self.pages.remove(&number);
            }
        }
    }

    /// The slots in offset order.
    pub fn iter(&self) -> impl Iterator<Item = SlotId> {
        self.pages.values().flat_map(|page| {
            let places = (0..PAGE_LEN).filter(|place| page.taken & 1 << place != 0);
            places.map(|place| page.slots[place])
        })
    }
}

fn split(offset: Offset) -> (u64, usize) {
    (offset.0 >> PAGE_BITS, offset.0 as usize % PAGE_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0_u64..200, any::<bool>()), 0..300)) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (step, (offset, is_in)) in steps.into_iter().enumerate() {
                if is_in && !model.contains_key(&offset) {
                    index.insert(Offset(offset), step as SlotId);
                    model.insert(offset, step as SlotId);
                } else if !is_in {
                    index.remove(Offset(offset));
                    model.remove(&offset);
                }
            }
            for offset in 0..201 {
                prop_assert_eq!(index.get(Offset(offset)), model.get(&offset).copied());
            }
            prop_assert!(index.iter().eq(model.values().copied()));
            prop_assert!(index.pages.values().all(|page| page.taken != 0));
        }
    }
}
