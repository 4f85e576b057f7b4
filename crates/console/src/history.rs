//! The last minutes of what somebody looks at: a bounded ring per page, filled only by looks.
//!
//! Law: who looks pays for it; nobody samples while nobody looks, and a gap is shown as a gap.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Pages that are remembered; the one looked at longest ago gives way.
const PAGES_MAX: usize = 128;
/// How far back a ring goes, in milliseconds.
pub(crate) const SPAN_MS: u64 = 300_000;
/// Samples of a ring: one every two seconds.
const SAMPLES_MAX: usize = 150;
/// Shortest time between two samples, in milliseconds.
const PAUSE_MS: u64 = 1_500;

/// What a page's charts show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// In milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) in_per_s: f64,
    pub(crate) out_per_s: f64,
    pub(crate) backlog: f64,
}

/// Rings by page.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    rings: Mutex<HashMap<String, VecDeque<Sample>>>,
}

impl Histories {
    /// Takes a sample of a page, and tells what there is of it.
    pub(crate) fn look(&self, page: &str, sample: Sample) -> Vec<Sample> {
        let mut rings = self.rings.lock();
        if !rings.contains_key(page) && rings.len() >= PAGES_MAX {
            let last = |ring: &VecDeque<Sample>| ring.back().map_or(0, |sample| sample.at);
            let oldest = rings.iter().min_by_key(|(_, ring)| last(ring));
            if let Some(oldest) = oldest.map(|(page, _)| page.clone()) {
                rings.remove(&oldest);
            }
        }
        let ring = rings.entry(page.to_owned()).or_default();
        if ring.back().is_none_or(|last| sample.at >= last.at.saturating_add(PAUSE_MS)) {
            ring.push_back(sample);
        }
        while ring.len() > SAMPLES_MAX
            || ring.front().is_some_and(|first| first.at.saturating_add(SPAN_MS) < sample.at)
        {
            ring.pop_front();
        }
        ring.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64) -> Sample {
        Sample { at, in_per_s: 1.0, out_per_s: 0.0, backlog: 0.0 }
    }

    #[test]
    fn a_ring_is_bounded_in_time_and_number_and_so_are_the_rings() {
        let histories = Histories::default();
        for at in 0..1_000 {
            histories.look("/", sample(at * 2_000));
        }
        let ring = histories.look("/", sample(1_999_000));
        assert!(ring.len() <= SAMPLES_MAX, "{}", ring.len());
        assert_eq!(ring.last().map(|last| last.at), Some(1_998_000), "looks in quick succession");
        let later = histories.look("/", sample(9_000_000));
        assert_eq!(later.len(), 1, "what is long ago is forgotten");
        for page in 0..1_000 {
            histories.look(&page.to_string(), sample(9_000_000 + page));
        }
        assert_eq!(histories.rings.lock().len(), PAGES_MAX);
    }
}
