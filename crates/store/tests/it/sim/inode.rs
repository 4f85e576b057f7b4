//! One file as the kernel shows it and as the platter has it.
//!
//! Unsynced changes are kept page by page, every version of a page since it was last clean, so
//! that a power loss can leave any mixture: an old page beside a new one, a page of an earlier
//! write beside its later self, a page torn between two of its versions at a sector. The length
//! is one more thing that reaches the platter on its own.
//!
//! Law: after a sync that succeeded, the platter has what the kernel showed in every page that
//! was dirty; after one that failed, nobody can tell, and nothing is dirty any more.

use super::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// What the kernel caches and writes back as one.
pub const PAGE: usize = 4096;
/// What a device writes whole or not at all.
const SECTOR: usize = 512;
/// Versions of one page kept between two syncs; the oldest are forgotten.
const VERSIONS_MAX: usize = 6;

type Page = Vec<u8>;

/// A file's content.
#[derive(Debug, Default, Clone)]
pub struct Inode {
    /// As programs see it.
    pub data: Vec<u8>,
    /// As it is after a power loss, but for what is dirty.
    durable: Vec<u8>,
    /// Versions of each page since it was last clean.
    dirty: BTreeMap<usize, Vec<Page>>,
    /// Pages that are clean to the kernel and were never written: a sync failed.
    dropped: BTreeSet<usize>,
    /// What the kernel showed of them before it read them again from the platter.
    evicted: BTreeMap<usize, Page>,
    /// Lengths since the last sync.
    lens: Vec<usize>,
}

/// How much of what was not synced a power loss leaves.
#[derive(Debug, Clone, Copy)]
pub struct Survival {
    /// Of 100 pages, how many are as the kernel last showed them.
    pub pages: u64,
    /// Of 100 of the rest, how many are torn.
    pub torn: u64,
    /// Of 100 names made, moved or removed, how many are.
    pub names: u64,
}

impl Inode {
    /// Writes `bytes` at `at`, in the kernel's memory.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = at + bytes.len();
        if end > self.data.len() {
            self.data.resize(end, 0);
            self.lens.push(end);
        }
        self.data[at..end].copy_from_slice(bytes);
        for (page, content) in self.evicted.range_mut(at / PAGE..end.div_ceil(PAGE)) {
            let (begin, stop) = (at.max(page * PAGE), end.min((page + 1) * PAGE));
            let from = &bytes[begin - at..stop - at];
            content[begin - page * PAGE..stop - page * PAGE].copy_from_slice(from);
        }
        self.touch(at, end);
    }

    /// Cuts or extends to `len`.
    pub fn set_len(&mut self, len: usize) {
        let before = self.data.len();
        if len == before {
            return;
        }
        self.data.resize(len, 0);
        self.lens.push(len);
        for (page, content) in self.evicted.range_mut(len / PAGE..) {
            content[len.saturating_sub(page * PAGE).min(PAGE)..].fill(0);
        }
        // What is beyond the cut is zeros, should the file ever be that long again.
        self.touch(len.min(before), before.max(len).min(before));
    }

    fn touch(&mut self, at: usize, end: usize) {
        for page in at / PAGE..end.div_ceil(PAGE) {
            let now = page_of(&self.data, page);
            let versions = self.dirty.entry(page).or_default();
            versions.push(now);
            if versions.len() > VERSIONS_MAX {
                versions.remove(0);
            }
            self.dropped.remove(&page);
        }
    }

    /// Brings everything dirty to the platter.
    pub fn sync(&mut self) {
        self.durable.resize(self.data.len(), 0);
        for page in std::mem::take(&mut self.dirty).into_keys() {
            put_page(&mut self.durable, page, &page_of(&self.data, page));
        }
        self.lens.clear();
    }

    /// A sync that fails: some of it is written, and all of it counts as clean from now on.
    pub fn fail_sync(&mut self, random: &mut Random) {
        if random.chance(50) {
            self.durable.resize(self.data.len(), 0);
            self.lens.clear();
        }
        for page in std::mem::take(&mut self.dirty).into_keys() {
            if random.chance(50) {
                put_page(&mut self.durable, page, &page_of(&self.data, page));
            } else {
                self.dropped.insert(page);
            }
        }
        if random.chance(30) {
            self.evict(random);
        }
    }

    /// Memory is needed elsewhere: pages that count as clean are read again from the platter.
    pub fn evict(&mut self, random: &mut Random) {
        for page in std::mem::take(&mut self.dropped) {
            if random.chance(50) {
                let old = page_of(&self.durable, page);
                self.evicted.insert(page, page_of(&self.data, page));
                put_page(&mut self.data, page, &old);
            } else {
                self.dropped.insert(page);
            }
        }
    }

    /// Whether a sync that failed has left pages that are on no platter.
    pub fn has_dropped(&self) -> bool {
        !(self.dropped.is_empty() && self.evicted.is_empty())
    }

    /// Memory was not so scarce after all.
    pub fn keep_evicted(&mut self) {
        for (page, content) in std::mem::take(&mut self.evicted) {
            put_page(&mut self.data, page, &content);
            self.dropped.insert(page);
        }
    }

    /// The power fails: what is left is what the platter has.
    pub fn lose_power(&mut self, random: &mut Random, survival: Survival) {
        let mut lens = std::mem::take(&mut self.lens);
        if !lens.is_empty() {
            lens.push(self.durable.len());
            let last = lens[lens.len() - 2];
            let len = if random.chance(survival.pages) { last } else { random.pick(&lens) };
            self.durable.resize(len, 0);
        }
        for (page, versions) in std::mem::take(&mut self.dirty) {
            let newest = versions.len() - 1;
            let content = if random.chance(survival.pages) {
                versions[newest].clone()
            } else if random.chance(survival.torn) {
                let at = random.below(versions.len() as u64) as usize;
                let older = match at.checked_sub(1) {
                    Some(before) => versions[before].clone(),
                    None => page_of(&self.durable, page),
                };
                tear(random, older, &versions[at])
            } else if random.chance(50) {
                continue;
            } else {
                random_version(random, &versions)
            };
            put_page(&mut self.durable, page, &content);
        }
        self.dropped.clear();
        self.evicted.clear();
        self.data = self.durable.clone();
    }

    /// Flips one bit, on the platter and in memory.
    pub fn flip(&mut self, at: usize, bit: u8) {
        for bytes in [&mut self.data, &mut self.durable] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

fn random_version(random: &mut Random, versions: &[Page]) -> Page {
    versions[random.below(versions.len() as u64) as usize].clone()
}

fn tear(random: &mut Random, mut older: Page, newer: &Page) -> Page {
    for at in (0..PAGE).step_by(SECTOR) {
        if random.chance(50) {
            older[at..at + SECTOR].copy_from_slice(&newer[at..at + SECTOR]);
        }
    }
    older
}

/// A page, with zeros where `bytes` has none.
fn page_of(bytes: &[u8], page: usize) -> Page {
    let mut content = vec![0; PAGE];
    if let Some(rest) = bytes.get(page * PAGE..) {
        let len = rest.len().min(PAGE);
        content[..len].copy_from_slice(&rest[..len]);
    }
    content
}

/// Puts as much of a page as `bytes` has room for.
fn put_page(bytes: &mut [u8], page: usize, content: &[u8]) {
    if let Some(rest) = bytes.get_mut(page * PAGE..) {
        let len = rest.len().min(PAGE);
        rest[..len].copy_from_slice(&content[..len]);
    }
}
