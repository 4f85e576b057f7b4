//! The key ring: which consumer owns a key.
//!
//! Each consumer has [`POINTS`] points on a circle of 2^32; a key belongs to the consumer of the
//! first point at or after the key's own place. Facts of the hash are those of the wire's
//! specification (FNV-1a 64, folded, murmur3 finaliser).
//!
//! Law: a consumer that joins or leaves moves only keys to or from itself; the ring depends on
//! the set of consumers alone, never on the order in which they came.

use crate::ids::{ConsumerId, FNV_OFFSET_BASIS, fnv1a_64};
use std::collections::BTreeSet;

/// Points per consumer.
pub const POINTS: u32 = 100;

/// Consumers on the circle.
#[derive(Debug, Clone, Default)]
pub struct Ring {
    points: BTreeSet<(u32, ConsumerId)>,
}

impl Ring {
    /// Puts a consumer's points on the circle.
    pub fn insert(&mut self, consumer: ConsumerId) {
        self.points.extend(points_of(consumer));
    }

    /// Takes a consumer's points off the circle.
    pub fn remove(&mut self, consumer: ConsumerId) {
        for point in points_of(consumer) {
            self.points.remove(&point);
        }
    }

    /// The owner of `key` among the consumers that are `allowed`: as if the others had no points.
    pub fn owner(&self, key: &str, allowed: impl Fn(ConsumerId) -> bool) -> Option<ConsumerId> {
        let start = (hash(key.as_bytes()), ConsumerId(0));
        let is_allowed = |(_, consumer): &&(u32, ConsumerId)| allowed(*consumer);
        // Nearly always the first part has an owner; each search of the set costs.
        let owner = self.points.range(start..).find(is_allowed);
        owner.or_else(|| self.points.range(..start).find(is_allowed)).map(|(_, consumer)| *consumer)
    }
}

fn points_of(consumer: ConsumerId) -> impl Iterator<Item = (u32, ConsumerId)> {
    (0..POINTS).map(move |i| (hash(format!("{consumer}-{i}").as_bytes()), consumer))
}

/// The place of `bytes` on the circle.
pub fn hash(bytes: &[u8]) -> u32 {
    let wide = fnv1a_64(FNV_OFFSET_BASIS, bytes);
    let [.., b4, b5, b6, b7] = (wide ^ (wide >> 32)).to_be_bytes();
    let mut h = u32::from_be_bytes([b4, b5, b6, b7]);
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(consumers: &[u64]) -> Ring {
        let mut ring = Ring::default();
        consumers.iter().for_each(|c| ring.insert(ConsumerId(*c)));
        ring
    }

    fn owners(ring: &Ring, allowed: &[u64]) -> Vec<u64> {
        (0..16)
            .filter_map(|i| ring.owner(&format!("k{i}"), |c| allowed.contains(&c.0)))
            .map(|c| c.0)
            .collect()
    }

    /// Computed apart from this code, by a few lines of Python written from the specification.
    #[test]
    fn hashes_are_pinned() {
        for (text, place) in HASHES {
            assert_eq!(hash(text.as_bytes()), *place, "`{text}`");
        }
    }

    const HASHES: &[(&str, u32)] = &[
        ("", 0xc610_ff71),
        ("a", 0x767d_5927),
        ("orders", 0xb8d0_7e83),
        ("eu-7", 0xfbcf_e63f),
        ("1-0", 0x457b_844a),
        ("1-99", 0x7c3d_fa6a),
        ("15407054124-42", 0xdaa7_f059),
    ];

    /// Clients' keys stay where they are over a restart, so a changed ring is a broken promise.
    #[test]
    fn owners_are_pinned() {
        let all = ring(&[1, 2, 3]);
        assert_eq!(owners(&all, &[1, 2, 3]), [2, 2, 1, 1, 1, 1, 1, 1, 1, 2, 3, 1, 3, 2, 2, 3]);
        assert_eq!(owners(&all, &[1, 3]), [3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 3, 1, 3, 1, 1, 3]);
        assert_eq!(
            owners(&ring(&[2, 1]), &[1, 2]),
            [2, 2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 2, 1]
        );
    }

    #[test]
    fn an_empty_ring_owns_nothing() {
        assert_eq!(Ring::default().owner("k", |_| true), None);
        assert_eq!(ring(&[1]).owner("k", |_| false), None);
    }

    proptest! {
        #[test]
        fn a_newcomer_takes_keys_only_to_itself(
            old in prop::collection::btree_set(1_u64..50, 1..8), new in 50_u64..60, key in ".*",
        ) {
            let consumers: Vec<u64> = old.into_iter().collect();
            let mut ring = ring(&consumers);
            let before = ring.owner(&key, |_| true);
            ring.insert(ConsumerId(new));
            let with = ring.owner(&key, |_| true);
            prop_assert!(with == before || with == Some(ConsumerId(new)));
            prop_assert_eq!(ring.owner(&key, |c| c.0 != new), before, "a restriction is a smaller ring");
            ring.remove(ConsumerId(new));
            prop_assert_eq!(ring.owner(&key, |_| true), before);
        }
    }
}
