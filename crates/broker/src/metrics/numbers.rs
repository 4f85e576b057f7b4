//! Live numbers and what they were at one moment.
//!
//! A topic or subscription has one block of them, made when it is loaded. Counting is an addition
//! to a word of that block: no lock, no look-up, no allocation.
//!
//! Law: a number that only its topic's actor counts may use [`Number::add_alone`]; everything else
//! uses [`Number::add`].

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// One number.
#[derive(Debug, Default)]
pub(super) struct Number(AtomicU64);

impl Number {
    /// Adds, whoever else does.
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// Adds, when nobody else does at the same time: half the cost.
    pub(super) fn add_alone(&self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How the values of a histogram are classed and shown.
#[derive(Debug)]
pub(super) struct Classes {
    /// Upper bounds in the unit that is counted in; what is larger goes into one class more.
    pub(super) bounds: &'static [u64],
    /// So many of that unit are one of the unit that is shown.
    pub(super) per_shown: f64,
}

/// Values by class.
#[derive(Debug)]
pub(super) struct Histogram {
    classes: &'static Classes,
    counts: Box<[Number]>,
    sum: Number,
}

impl Histogram {
    pub(super) fn new(classes: &'static Classes) -> Histogram {
        let counts = (0..=classes.bounds.len()).map(|_| Number::default()).collect();
        Histogram { classes, counts, sum: Number::default() }
    }

    fn class(&self, value: u64) -> &Number {
        &self.counts[self.classes.bounds.partition_point(|bound| *bound < value)]
    }

    /// Counts `value` so many times.
    pub(super) fn observe(&self, value: u64, times: u64) {
        self.class(value).add(times);
        self.sum.add(value.saturating_mul(times));
    }

    /// The same, when nobody else does at the same time.
    pub(super) fn observe_alone(&self, value: u64, times: u64) {
        self.class(value).add_alone(times);
        self.sum.add_alone(value.saturating_mul(times));
    }

    /// Counts by class, then the sum.
    fn read(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().chain([&self.sum]).map(Number::get)
    }
}

/// The live numbers of one topic or subscription.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) counters: Box<[Number]>,
    pub(super) gauges: Box<[Number]>,
    pub(super) histograms: Box<[Histogram]>,
}

impl Block {
    pub(super) fn new(counters: usize, gauges: usize, classes: &[&'static Classes]) -> Block {
        let numbers = |len| (0..len).map(|_| Number::default()).collect();
        Block {
            counters: numbers(counters),
            gauges: numbers(gauges),
            histograms: classes.iter().map(|classes| Histogram::new(classes)).collect(),
        }
    }

    /// What it has counted so far.
    pub(super) fn counted(&self) -> Counted {
        Counted {
            counters: self.counters.iter().map(Number::get).collect(),
            histograms: self.histograms.iter().map(|known| known.read().collect()).collect(),
        }
    }
}

/// What was counted up to one moment. Two of them can be added and taken from one another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) counters: Vec<u64>,
    /// By class, then the sum.
    pub(super) histograms: Vec<Vec<u64>>,
}

impl Counted {
    /// Adds `other`, which may have more kinds of numbers than this has met so far.
    pub(super) fn add(&mut self, other: &Counted) {
        add(&mut self.counters, &other.counters);
        self.histograms.resize_with(self.histograms.len().max(other.histograms.len()), Vec::new);
        for (mine, theirs) in self.histograms.iter_mut().zip(&other.histograms) {
            add(mine, theirs);
        }
    }

    /// This without `other`.
    pub(super) fn without(&self, other: &Counted) -> Counted {
        let empty = Vec::new();
        let histograms = self.histograms.iter().enumerate();
        Counted {
            counters: without(&self.counters, &other.counters),
            histograms: histograms
                .map(|(index, mine)| without(mine, other.histograms.get(index).unwrap_or(&empty)))
                .collect(),
        }
    }
}

fn add(mine: &mut Vec<u64>, theirs: &[u64]) {
    mine.resize(mine.len().max(theirs.len()), 0);
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = mine.wrapping_add(*theirs);
    }
}

fn without(mine: &[u64], theirs: &[u64]) -> Vec<u64> {
    let theirs = theirs.iter().chain(std::iter::repeat(&0));
    mine.iter().zip(theirs).map(|(mine, theirs)| mine.saturating_sub(*theirs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    static CLASSES: Classes = Classes { bounds: &[10, 100], per_shown: 1.0 };

    #[test]
    fn what_is_counted_adds_up() {
        let block = Block::new(2, 0, &[&CLASSES]);
        block.counters[0].add(3);
        block.counters[1].add_alone(4);
        block.histograms[0].observe(10, 1);
        block.histograms[0].observe(11, 2);
        block.histograms[0].observe_alone(1_000, 1);
        let before = block.counted();
        assert_eq!(before.counters, [3, 4]);
        assert_eq!(before.histograms, [[1, 2, 1, 1_032]]);
        block.counters[0].add(1);
        let after = block.counted();
        assert_eq!(after.without(&before).counters, [1, 0]);
        assert_eq!(after.without(&Counted::default()), after);
        let mut sum = Counted::default();
        sum.add(&before);
        sum.add(&after.without(&before));
        assert_eq!(sum, after);
    }
}
