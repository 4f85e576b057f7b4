//! Newtypes for the numbers of the product, so that two bare `u64` in one signature cannot be
//! swapped.
//!
//! Consumer and producer ids say where they belong: the upper 32 bits are the topic's id, the
//! lower 31 a hash of the names. The same names give the same id after a restart or a move, and
//! any broker finds the topic from an id alone. They stay within `1 ..= 2^63 - 1`, because one of
//! the official clients reads them as signed numbers and ignores what is not positive.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A topic's (or topic partition's) number: dense, given by the catalog, never given twice.
    /// A topic that is deleted and made again is another topic.
    TopicId(u32)
}
number! {
    /// A subscription's number within its topic: given by the catalog, never given twice.
    SubscriptionId(u32)
}
number! {
    /// Position of a message within its topic partition, counted from 0.
    Offset(u64)
}
number! {
    /// A consumer on one topic partition; see the module documentation for its shape.
    ConsumerId(u64)
}
number! {
    /// A producer on one topic partition; see the module documentation for its shape.
    ProducerId(u64)
}
number! {
    /// One life of a topic on a broker; grows with each assignment. A lower one is refused.
    Epoch(u32)
}
number! {
    /// One process start, granted by the catalog; grows with each start of this data directory.
    Incarnation(u32)
}
number! {
    /// A schema subject's number: given by the catalog from 1, never given twice. A message carries
    /// it with the number of the version.
    SchemaId(u64)
}
number! {
    /// Milliseconds on a monotonic clock with an arbitrary origin. All delays run on this one.
    Tick(u64)
}
number! {
    /// Milliseconds since the Unix epoch. For people and records; nothing is scheduled from it.
    WallMs(u64)
}

impl SubscriptionId {
    /// Not a subscription: what was published again of a dead-letter topic.
    pub const REPLAY: SubscriptionId = SubscriptionId(0);
    /// Not a subscription: where the replay of a dead-letter topic ends that has not come there.
    pub const REPLAY_END: SubscriptionId = SubscriptionId(u32::MAX);

    /// Whether the catalog never gives this number: progress under it belongs to the broker, stays
    /// with its topic, and keeps no message.
    pub fn is_reserved(self) -> bool {
        self == SubscriptionId::REPLAY || self == SubscriptionId::REPLAY_END
    }
}

impl Offset {
    /// The next position. Saturates, so that a hostile number read from disk cannot overflow.
    pub fn next(self) -> Offset {
        self.plus(1)
    }

    /// The position `count` further on, saturating.
    pub fn plus(self, count: u64) -> Offset {
        Offset(self.0.saturating_add(count))
    }
}

impl Tick {
    /// The moment `delay_ms` later, saturating.
    pub fn after_ms(self, delay_ms: u64) -> Tick {
        Tick(self.0.saturating_add(delay_ms))
    }
}

const NAME_BITS: u32 = 31;
const NAME_MASK: u64 = (1 << NAME_BITS) - 1;

fn scoped(topic: TopicId, parts: &[&str]) -> u64 {
    let mut hash = FNV_OFFSET_BASIS;
    for part in parts {
        hash = fnv1a_64(hash, part.as_bytes());
        // A byte that no UTF-8 text contains keeps ("ab", "c") apart from ("a", "bc").
        hash = fnv1a_64(hash, &[0xff]);
    }
    let folded = (hash ^ (hash >> 32)) & NAME_MASK;
    (u64::from(topic.0) << NAME_BITS) | folded.max(1)
}

impl ConsumerId {
    /// The id of `consumer` on `subscription` of `topic`.
    pub fn derive(topic: TopicId, subscription: &str, consumer: &str) -> ConsumerId {
        ConsumerId(scoped(topic, &["consumer", subscription, consumer]))
    }

    /// The topic that this id belongs to; `None` for a number that no broker ever gave out.
    pub fn topic(self) -> Option<TopicId> {
        topic_of(self.0)
    }
}

impl ProducerId {
    /// The id of `producer` on `topic`.
    pub fn derive(topic: TopicId, producer: &str) -> ProducerId {
        ProducerId(scoped(topic, &["producer", producer]))
    }

    /// The topic that this id belongs to; `None` for a number that no broker ever gave out.
    pub fn topic(self) -> Option<TopicId> {
        topic_of(self.0)
    }
}

fn topic_of(id: u64) -> Option<TopicId> {
    u32::try_from(id >> NAME_BITS).ok().map(TopicId)
}

/// Start value of the 64-bit FNV-1a hash.
pub const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// One run of 64-bit FNV-1a over `bytes`, continuing from `hash`
/// (Fowler, Noll, Vo; draft-eastlake-fnv). The official clients route keys with the same hash.
pub fn fnv1a_64(mut hash: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        hash ^= u64::from(*byte);
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fnv1a_matches_its_published_vectors() {
        let hash = |text: &str| fnv1a_64(FNV_OFFSET_BASIS, text.as_bytes());
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    /// Clients keep these ids over a broker's restart, so a changed hash is a broken promise.
    #[test]
    fn derived_ids_are_pinned() {
        assert_eq!(ConsumerId::derive(TopicId(7), "s", "c"), ConsumerId(15_407_054_124));
        assert_eq!(ProducerId::derive(TopicId(7), "p"), ProducerId(16_682_552_983));
    }

    proptest! {
        #[test]
        fn ids_are_positive_signed_numbers_and_name_their_topic(
            topic in any::<u32>(), subscription in ".*", consumer in ".*",
        ) {
            let id = ConsumerId::derive(TopicId(topic), &subscription, &consumer);
            prop_assert!((1..=i64::MAX as u64).contains(&id.0));
            prop_assert_eq!(id.topic(), Some(TopicId(topic)));
            let id = ProducerId::derive(TopicId(topic), &consumer);
            prop_assert!((1..=i64::MAX as u64).contains(&id.0));
            prop_assert_eq!(id.topic(), Some(TopicId(topic)));
        }
    }
}
