//! What a topic remembers of its producers, so that a message sent twice is stored once.
//!
//! A producer numbers its messages from 1, in order. The log asks [`Sequences::admit`] when it
//! gives a batch its place, tells [`Sequences::stored`] when the batch is as durable as its topic
//! promises, and [`Sequences::take_back`] when a write failed. What is left to others: persisting
//! it, and what a refusal means on a wire.
//!
//! Law: of the batches admitted for one producer, each goes on exactly where the stored ones end,
//! so that nothing is stored twice, skipped or reordered, however often a client sends it and
//! however many streams it had.

use crate::ids::{Offset, ProducerId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Producers remembered per topic. Beyond it the one that was silent longest is forgotten, and
/// has to open again.
pub const PRODUCERS_MAX: usize = 10_000;
/// Runs of sequences remembered per producer, and so the most batches that a client may have
/// unanswered: the answer to any of them can be repeated.
pub const RUNS_MAX: usize = 64;

/// Where a batch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Who sends it.
    pub producer: ProducerId,
    /// The producer's epoch, from [`Sequences::open`].
    pub epoch: u32,
    /// Sequence number of the message before it that is to be stored: one less than
    /// `first_sequence`, or lower when the messages between were refused for good.
    pub after: u64,
    /// Sequence number of its first message.
    pub first_sequence: u64,
}

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It goes on where the stored ones end: write it.
    Append,
    /// It was stored before, from this offset on.
    Duplicate(Offset),
    /// It must not be written.
    Refused(SequenceRefusal),
}

/// Why a batch must not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceRefusal {
    /// The producer was opened again since, and has this epoch now.
    Fenced {
        /// The epoch that holds.
        epoch: u32,
    },
    /// The topic does not remember the producer; it has to open again.
    Unknown,
    /// Messages before it are missing, or part of it is stored already.
    OutOfOrder {
        /// The last sequence number that is stored.
        last: u64,
    },
    /// All of it was stored so long ago that its offsets are forgotten.
    Forgotten {
        /// The last sequence number that is stored.
        last: u64,
    },
}

impl fmt::Display for SequenceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SequenceRefusal::Fenced { .. } => {
                f.write_str("the producer was opened by another stream, which replaces this one")
            }
            SequenceRefusal::Unknown => f.write_str(
                "the producer was silent for so long that it is forgotten; open it again",
            ),
            SequenceRefusal::OutOfOrder { last } => write!(
                f,
                "the messages after sequence number {last} are missing before these; send again \
                 from there"
            ),
            SequenceRefusal::Forgotten { last } => write!(
                f,
                "these messages were stored long before sequence number {last}, and where is \
                 forgotten; do not send them again"
            ),
        }
    }
}

/// What a producer learns when it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Its epoch; streams with a lower one are fenced.
    pub epoch: u32,
    /// The last sequence number that is stored; 0 when none is.
    pub last_sequence: u64,
}

/// Sequences and offsets that count up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First sequence number.
    pub first_sequence: u64,
    /// Its offset.
    pub first_offset: Offset,
    /// How many messages.
    pub count: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.first_sequence.saturating_add(self.count)
    }
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Producer {
    epoch: u32,
    /// Last sequence number stored.
    last: u64,
    /// Last one that is being written; equal to `last` between groups.
    written: u64,
    /// Stored runs, oldest first.
    runs: VecDeque<Run>,
    /// Position in the order of use.
    used: u64,
}

impl Producer {
    fn offset_of(&self, first: u64, count: u64) -> Option<Offset> {
        let end = first.saturating_add(count);
        let run = self.runs.iter().rev().find(|run| run.first_sequence <= first)?;
        (end <= run.end()).then(|| run.first_offset.plus(first - run.first_sequence))
    }

    fn stored(&mut self, run: Run) {
        if run.end() <= self.last.saturating_add(1) {
            // Known from a checkpoint.
            return;
        }
        self.last = self.last.max(run.end().saturating_sub(1));
        self.written = self.written.max(self.last);
        match self.runs.back_mut() {
            Some(back)
                if back.end() == run.first_sequence
                    && back.first_offset.plus(back.count) == run.first_offset =>
            {
                back.count = back.count.saturating_add(run.count);
            }
            _ => {
                self.runs.push_back(run);
                if self.runs.len() > RUNS_MAX {
                    self.runs.pop_front();
                }
            }
        }
    }
}

/// The producers of one topic that number their messages. Two are equal when a checkpoint would say
/// the same of them.
#[derive(Debug, Clone, Default)]
pub struct Sequences {
    producers: BTreeMap<ProducerId, Producer>,
    /// Producers by their last use.
    by_use: BTreeMap<u64, ProducerId>,
    uses: u64,
}

impl PartialEq for Sequences {
    fn eq(&self, other: &Sequences) -> bool {
        let all = |of: &Sequences| -> Vec<_> {
            let each = of.export();
            each.map(|(id, epoch, last, runs)| (id, epoch, last, runs.collect::<Vec<_>>()))
                .collect()
        };
        all(self) == all(other)
    }
}

impl Sequences {
    /// Opens `producer` anew: from now on only batches of the epoch that it gets are taken. Must
    /// not be called between the admission of a batch and its outcome.
    pub fn open(&mut self, producer: ProducerId) -> Opened {
        let known = self.touch(producer);
        known.epoch = known.epoch.saturating_add(1);
        Opened { epoch: known.epoch, last_sequence: known.last }
    }

    /// Whether a batch of `count` messages from `origin` is to be written.
    pub fn admit(&mut self, origin: &Origin, count: u32) -> Admission {
        use SequenceRefusal::{Fenced, Forgotten, OutOfOrder, Unknown};
        let Some(known) = self.producers.get_mut(&origin.producer) else {
            return Admission::Refused(Unknown);
        };
        let Producer { epoch, last, written, .. } = *known;
        let batch_last = origin.first_sequence.saturating_add(u64::from(count).saturating_sub(1));
        if origin.epoch != epoch {
            return Admission::Refused(Fenced { epoch });
        }
        if origin.after <= written && written < origin.first_sequence {
            known.written = batch_last;
            self.touch(origin.producer);
            return Admission::Append;
        }
        if count == 0 || batch_last > last {
            return Admission::Refused(OutOfOrder { last });
        }
        match known.offset_of(origin.first_sequence, count.into()) {
            Some(first) => Admission::Duplicate(first),
            None => Admission::Refused(Forgotten { last }),
        }
    }

    /// An admitted batch is stored from offset `first` on. Also what recovery calls, in the order
    /// of the log, for each batch that it finds.
    pub fn stored(&mut self, origin: &Origin, count: u32, first: Offset) {
        let known = self.touch(origin.producer);
        known.epoch = known.epoch.max(origin.epoch);
        known.stored(Run {
            first_sequence: origin.first_sequence,
            first_offset: first,
            count: count.into(),
        });
    }

    /// Everything admitted and not stored failed.
    pub fn take_back(&mut self) {
        self.producers.values_mut().for_each(|known| known.written = known.last);
    }

    /// Everything that a checkpoint must keep, least recently used producer first: epoch, last
    /// sequence number, and the runs whose offsets are remembered.
    pub fn export(
        &self,
    ) -> impl Iterator<Item = (ProducerId, u32, u64, impl Iterator<Item = Run>)> {
        self.by_use.values().filter_map(|id| {
            let known = self.producers.get(id)?;
            Some((*id, known.epoch, known.last, known.runs.iter().copied()))
        })
    }

    /// Takes what [`export`](Self::export) gave, in its order.
    pub fn import(&mut self, id: ProducerId, epoch: u32, last: u64, runs: Vec<Run>) {
        let known = self.touch(id);
        known.epoch = known.epoch.max(epoch);
        runs.into_iter().for_each(|run| known.stored(run));
        known.last = known.last.max(last);
        known.written = known.last;
    }

    /// The last sequence number stored for `producer`, and its offset.
    pub fn last(&self, producer: ProducerId) -> Option<(u64, Offset)> {
        let known = self.producers.get(&producer)?;
        let run = known.runs.back()?;
        Some((known.last, run.first_offset.plus(run.count.saturating_sub(1))))
    }

    /// How many producers are remembered.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether no producer is remembered.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// The producer, made if it is new, as the one used last.
    fn touch(&mut self, id: ProducerId) -> &mut Producer {
        self.uses += 1;
        if !self.producers.contains_key(&id)
            && self.producers.len() >= PRODUCERS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.producers.remove(&oldest);
        }
        let known = self.producers.entry(id).or_default();
        self.by_use.remove(&known.used);
        known.used = self.uses;
        self.by_use.insert(self.uses, id);
        known
    }
}

#[cfg(test)]
mod tests;
