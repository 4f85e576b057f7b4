//! All blocks of one sort, topics' or subscriptions', and what a scrape makes of them: a row for
//! each that has series of its own, and one row for the others together.
//!
//! Counting does not come here. Law: the lock is held for loading, unloading and a scrape, and
//! never while a message waits.

use super::chosen::{Standing, choose};
use super::numbers::{Block, Counted};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Stands in the place of the name in the row of those without series of their own. No topic or
/// subscription has it: the names of topics begin with a slash.
pub(super) const REST: &str = "_rest";

/// The values of a row's labels.
pub(super) type Names = Vec<String>;

/// How gauges are shown, and those of several summed up.
pub(super) struct Gauges {
    /// From the stored to the shown value, given the wall clock in milliseconds.
    pub(super) show: fn(usize, u64, u64) -> f64,
    /// Whether the largest of several is shown rather than their sum.
    pub(super) is_max: fn(usize) -> bool,
}

/// What decides whether a block has series of its own.
pub(super) struct Ranking {
    /// Its counter of traffic.
    pub(super) traffic: usize,
    /// A gauge above 0 means that somebody should look at it.
    pub(super) trouble: Option<usize>,
}

/// One row of a scrape.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) names: Names,
    pub(super) counted: Counted,
    pub(super) gauges: Vec<f64>,
}

struct Entry {
    block: Arc<Block>,
    standing: Standing,
}

#[derive(Default)]
struct Entries {
    by_name: BTreeMap<Names, Entry>,
    /// What those that are gone have counted in the row of the rest.
    departed: Counted,
    /// The counters of those that are gone, wherever they were shown.
    gone: Vec<u64>,
    looked_at: Option<Duration>,
    /// Once there has been a row of the rest there always is one.
    has_rest: bool,
}

/// All blocks of one sort.
pub(super) struct Shelf {
    own_max: usize,
    /// How many labels name a block.
    names: usize,
    /// Makes a block.
    empty: fn() -> Block,
    ranking: Ranking,
    gauges: Gauges,
    entries: Mutex<Entries>,
}

impl Shelf {
    pub(super) fn new(
        own_max: usize,
        names: usize,
        empty: fn() -> Block,
        ranking: Ranking,
        gauges: Gauges,
    ) -> Shelf {
        Shelf { own_max, names, empty, ranking, gauges, entries: Mutex::default() }
    }

    /// A new block under this name; one that was there goes.
    pub(super) fn add(&self, names: Names) -> Arc<Block> {
        let block = Arc::new((self.empty)());
        let entry = Entry { block: Arc::clone(&block), standing: Standing::default() };
        let mut entries = self.entries.lock();
        if let Some(before) = entries.by_name.insert(names, entry) {
            entries.depart(&before);
        }
        block
    }

    /// Lets a block go, unless another has taken its place.
    pub(super) fn remove(&self, names: &Names, block: &Arc<Block>) {
        let mut entries = self.entries.lock();
        let is_there = |entry: &Entry| Arc::ptr_eq(&entry.block, block);
        if entries.by_name.get(names).is_some_and(is_there)
            && let Some(gone) = entries.by_name.remove(names)
        {
            entries.depart(&gone);
        }
    }

    /// The counters of all blocks that ever were, together.
    pub(super) fn sums(&self) -> Vec<u64> {
        let entries = self.entries.lock();
        let mut sum = entries.gone.clone();
        for entry in entries.by_name.values() {
            sum.resize(sum.len().max(entry.block.counters.len()), 0);
            for (sum, counter) in sum.iter_mut().zip(&entry.block.counters) {
                *sum = sum.wrapping_add(counter.get());
            }
        }
        sum
    }

    /// The rows at `now`, when the wall clock shows `wall_ms`.
    pub(super) fn rows(&self, now: Duration, wall_ms: u64) -> Vec<Row> {
        let mut entries = self.entries.lock();
        let passed = now.saturating_sub(entries.looked_at.unwrap_or(now));
        entries.looked_at = Some(now);
        for Entry { block, standing } in entries.by_name.values_mut() {
            let troubled = self.ranking.trouble.is_some_and(|gauge| block.gauges[gauge].get() > 0);
            standing.look(block.counters[self.ranking.traffic].get(), troubled, passed);
        }
        let own = {
            let standings: Vec<&Standing> =
                entries.by_name.values().map(|entry| &entry.standing).collect();
            choose(&standings, self.own_max)
        };
        let mut rows = Vec::with_capacity(own.len().min(self.own_max) + 1);
        let mut rest = Rest { counted: entries.departed.clone(), ..Rest::default() };
        for ((names, Entry { block, standing }), own) in entries.by_name.iter_mut().zip(own) {
            let counted = block.counted();
            standing.place(own, &counted);
            let (in_own, in_rest) = standing.split(&counted);
            rest.counted.add(&in_rest);
            let gauges = block.gauges.iter().enumerate();
            let gauges =
                gauges.map(|(index, known)| (self.gauges.show)(index, known.get(), wall_ms));
            if own {
                let gauges = gauges.collect();
                rows.push(Row { names: names.clone(), counted: in_own, gauges });
            } else {
                rest.take(gauges, self.gauges.is_max);
            }
        }
        entries.has_rest |= rest.is_used || rest.counted.counters.iter().any(|count| *count > 0);
        if entries.has_rest {
            rows.push(rest.row(self.names, &(self.empty)()));
        }
        rows
    }
}

impl Entries {
    fn depart(&mut self, gone: &Entry) {
        let counted = gone.block.counted();
        let (_, in_rest) = gone.standing.split(&counted);
        self.departed.add(&in_rest);
        let mut all = Counted { counters: std::mem::take(&mut self.gone), histograms: Vec::new() };
        all.add(&Counted { histograms: Vec::new(), ..counted });
        self.gone = all.counters;
    }
}

/// Those without series of their own, summed up.
#[derive(Default)]
struct Rest {
    counted: Counted,
    gauges: Vec<f64>,
    is_used: bool,
}

impl Rest {
    fn take(&mut self, gauges: impl Iterator<Item = f64>, is_max: fn(usize) -> bool) {
        self.is_used = true;
        for (index, value) in gauges.enumerate() {
            match self.gauges.get_mut(index) {
                Some(known) if is_max(index) => *known = known.max(value),
                Some(known) => *known += value,
                None => self.gauges.push(value),
            }
        }
    }

    fn row(mut self, names: usize, empty: &Block) -> Row {
        self.counted.add(&empty.counted());
        self.gauges.resize(empty.gauges.len(), 0.0);
        Row { names: vec![REST.to_owned(); names], counted: self.counted, gauges: self.gauges }
    }
}
