//! Deliveries as ranges, the way the wire wants them.
//!
//! Law: ranges name exactly the deliveries that were added, in as few as their order allows.

pub(super) use danube_wire::proto::stream::Range;

/// Deliveries; one range of them takes no memory of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ranges {
    last: Option<Range>,
    others: Vec<Range>,
}

impl Ranges {
    pub(super) fn one(range: Range) -> Ranges {
        Ranges { last: Some(range), others: Vec::new() }
    }

    /// Adds one range; the next delivery of the same kind makes the last range longer.
    pub(super) fn push(&mut self, range: Range) {
        match &mut self.last {
            Some(last) if joins(last, &range) => last.count += range.count,
            Some(last) => self.others.push(std::mem::replace(last, range)),
            None => self.last = Some(range),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Range> {
        self.others.iter().chain(&self.last)
    }

    /// Sorted, and joined where they touch.
    pub(super) fn into_sorted(self) -> Vec<Range> {
        let mut ranges = self.others;
        ranges.extend(self.last);
        if ranges.len() < 2 {
            return ranges;
        }
        ranges.sort_unstable_by_key(|range| (range.epoch, range.attempt, range.first));
        let mut joined = Ranges::default();
        ranges.into_iter().for_each(|range| joined.push(range));
        joined.others.extend(joined.last);
        joined.others
    }
}

fn joins(last: &Range, next: &Range) -> bool {
    last.first + u64::from(last.count) == next.first
        && last.attempt == next.attempt
        && last.epoch == next.epoch
}

/// The first delivery that both name.
pub(super) fn first_common(one: &Range, other: &Range) -> Option<u64> {
    let first = one.first.max(other.first);
    let end = |range: &Range| range.first.saturating_add(u64::from(range.count));
    let is_same = one.attempt == other.attempt && one.epoch == other.epoch;
    (is_same && first < end(one).min(end(other))).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, count: u32, attempt: u32) -> Range {
        Range { first, count, attempt, epoch: 1 }
    }

    #[test]
    fn deliveries_in_any_order_become_few_ranges() {
        let mut ranges = Ranges::default();
        for offset in [1, 2, 3, 9, 7, 8, 4] {
            ranges.push(range(offset, 1, 1));
        }
        ranges.push(range(5, 1, 2));
        assert_eq!(ranges.iter().count(), 5);
        assert_eq!(ranges.into_sorted(), [range(1, 4, 1), range(7, 3, 1), range(5, 1, 2)]);
    }

    #[test]
    fn only_the_same_attempt_is_the_same_delivery() {
        assert_eq!(first_common(&range(3, 4, 1), &range(5, 9, 1)), Some(5));
        assert_eq!(first_common(&range(3, 2, 1), &range(5, 9, 1)), None);
        assert_eq!(first_common(&range(3, 4, 1), &range(5, 9, 2)), None);
    }
}
