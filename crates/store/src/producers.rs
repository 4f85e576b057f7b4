//! How far producers have come in a topic, as its messages say.
//!
//! The log only remembers; what a repeated or an old sequence number means is for the broker to
//! say. Law: this is never ahead of the messages, and what is forgotten is the longest unheard of.

use danube_core::{Offset, ProducerId, WallMs};
use std::collections::BTreeMap;

/// Most producers remembered of one topic.
pub const PRODUCERS_MAX: usize = 10_000;

/// Who sent the records of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The producer.
    pub producer: ProducerId,
    /// Which of its lives.
    pub epoch: u64,
    /// Sequence number of the first record; those of the others follow one another.
    pub first_sequence: u64,
}

/// The last that a topic has of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Produced {
    /// Which of the producer's lives.
    pub epoch: u64,
    /// Sequence number of its last record.
    pub last_sequence: u64,
    /// Offset of that record.
    pub last: Offset,
    /// When it was appended, by the broker's clock.
    pub at: WallMs,
}

/// Those of one topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    known: BTreeMap<ProducerId, Produced>,
    /// Who had the last offset, to find the one longest unheard of.
    by_last: BTreeMap<Offset, ProducerId>,
}

impl Producers {
    /// Takes an append of `count` records from `first` on, made at `at`.
    pub(crate) fn note(&mut self, origin: Origin, first: u64, count: u32, at: WallMs) {
        let more = u64::from(count.saturating_sub(1));
        let Origin { producer, epoch, first_sequence } = origin;
        let last_sequence = first_sequence.saturating_add(more);
        let last = Offset(first.saturating_add(more));
        self.put(producer, Produced { epoch, last_sequence, last, at });
    }

    /// Takes what is known of `producer`.
    pub(crate) fn put(&mut self, producer: ProducerId, produced: Produced) {
        if let Some(before) = self.known.insert(producer, produced) {
            self.by_last.remove(&before.last);
        }
        if let Some(other) = self.by_last.insert(produced.last, producer)
            && other != producer
        {
            // Only damage makes two of them end with the same message.
            self.known.remove(&other);
        }
        while self.known.len() > PRODUCERS_MAX {
            let Some((_, oldest)) = self.by_last.pop_first() else { break };
            self.known.remove(&oldest);
        }
    }

    /// What is known of `producer`.
    pub(crate) fn get(&self, producer: ProducerId) -> Option<Produced> {
        self.known.get(&producer).copied()
    }

    /// All of them.
    pub(crate) fn all(&self) -> &BTreeMap<ProducerId, Produced> {
        &self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(producer: u64, first_sequence: u64) -> Origin {
        Origin { producer: ProducerId(producer), epoch: 1, first_sequence }
    }

    #[test]
    fn the_last_record_counts_and_the_longest_unheard_of_goes_first() {
        let mut producers = Producers::default();
        for number in 0..PRODUCERS_MAX as u64 {
            producers.note(origin(number, 5), 10 * number, 3, WallMs(number));
        }
        let (last, at) = (Offset(12), WallMs(1));
        let expected = Produced { epoch: 1, last_sequence: 7, last, at };
        assert_eq!(producers.get(ProducerId(1)), Some(expected));
        producers.note(origin(0, 8), 10 * PRODUCERS_MAX as u64, 1, WallMs(9));
        producers.note(origin(u64::MAX, 0), 10 * PRODUCERS_MAX as u64 + 1, 1, WallMs(9));
        assert_eq!(producers.all().len(), PRODUCERS_MAX);
        assert_eq!(producers.get(ProducerId(0)).map(|it| it.last_sequence), Some(8));
        assert_eq!(producers.get(ProducerId(1)), None, "nobody has been silent for longer");
    }
}
