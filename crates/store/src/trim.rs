//! What of a topic may go: pure decisions.
//!
//! Law: a message that a subscription has not finished goes only where the policy says so, and
//! nothing goes while it is not known which subscriptions there are.

use danube_core::subscription::progress::Progress;
use danube_core::{Offset, Retention, WallMs};

/// Most unfinished messages of a segment that is written again without the finished ones.
const SPARSE_MAX: u64 = 1024;
/// And they are at most one in so many of what it has.
const SPARSE_SHARE: u64 = 4;

/// A stretch of a topic that goes as a whole: a segment, or what a journal file has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset of its first message.
    pub base: u64,
    /// One past the offset of its last message.
    pub end: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Time of its last message, in milliseconds since the Unix epoch.
    pub last_time: u64,
}

/// How far all subscriptions of a topic are.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    subscriptions: Vec<Progress>,
}

impl Finished {
    /// Of these subscriptions.
    pub(crate) fn new(subscriptions: Vec<Progress>) -> Finished {
        Finished { subscriptions }
    }

    /// The first offset from `from` on that some subscription has not finished; `from` itself
    /// when there is no subscription.
    pub(crate) fn next_unfinished(&self, from: u64) -> u64 {
        let unfinished = self.subscriptions.iter().map(|it| it.first_unfinished(Offset(from)).0);
        unfinished.min().unwrap_or(from)
    }

    /// Whether any of `first .. end` may be finished by all; false only where none is.
    pub(crate) fn may_have(&self, first: u64, end: u64) -> bool {
        let has_some = |progress: &Progress| {
            progress.cursor().0 > first
                || progress.finished_above_cursor().any(|(from, to)| from.0 < end && to.0 > first)
        };
        // Of one subscription that is enough; it is no matter what the others have.
        !self.subscriptions.is_empty() && self.subscriptions.iter().all(has_some)
    }

    /// The first offset that some subscription has not finished, if there is a subscription.
    fn first_unfinished(&self) -> Option<u64> {
        self.subscriptions.iter().map(|progress| progress.cursor().0).min()
    }
}

/// Offset from which on `retention` keeps what is in `extents`, oldest first. Only age and size
/// are looked at, and whole extents.
pub(crate) fn keep_from(
    retention: &Retention,
    extents: &[Extent],
    finished: &Finished,
    now: WallMs,
) -> u64 {
    let mut left: u64 = extents.iter().map(|extent| extent.bytes).sum();
    let protected = if retention.past_unfinished { None } else { finished.first_unfinished() };
    let mut from = 0;
    for extent in extents {
        let old = retention.time_ms.is_some_and(|ms| extent.last_time.saturating_add(ms) < now.0);
        let large = retention.bytes.is_some_and(|bytes| left - extent.bytes >= bytes);
        let wanted = protected.is_some_and(|offset| extent.end > offset);
        if wanted || !(old || large) {
            break;
        }
        left -= extent.bytes;
        from = extent.end;
    }
    from
}

/// Whether `extent` may go because all that it has is finished.
pub(crate) fn is_done(retention: &Retention, extent: &Extent, finished: &Finished) -> bool {
    retention.drop_finished && finished.next_unfinished(extent.base) >= extent.end
}

/// Whether of `extent`'s `records` so few are unfinished that it is worth writing it again.
pub(crate) fn is_sparse(
    retention: &Retention,
    extent: &Extent,
    records: u64,
    finished: &Finished,
) -> bool {
    let most = SPARSE_MAX.min(records / SPARSE_SHARE);
    let mut next = extent.base;
    let mut unfinished = 0;
    while retention.drop_finished && unfinished <= most {
        next = finished.next_unfinished(next);
        if next >= extent.end {
            return true;
        }
        (next, unfinished) = (next + 1, unfinished + 1);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::subscription::progress::Step;

    fn extents() -> Vec<Extent> {
        let extent = |base, last_time| Extent { base, end: base + 10, bytes: 100, last_time };
        vec![extent(0, 1_000), extent(10, 2_000), extent(20, 3_000), extent(30, 4_000)]
    }

    fn at(cursors: &[u64]) -> Finished {
        Finished::new(cursors.iter().map(|cursor| Progress::at(Offset(*cursor))).collect())
    }

    #[test]
    fn age_and_size_take_whole_extents_from_the_front() {
        let time = |ms| Retention { time_ms: Some(ms), ..Retention::FOREVER };
        let bytes = |bytes| Retention { bytes: Some(bytes), ..Retention::FOREVER };
        let both = Retention { time_ms: Some(2_500), bytes: Some(150), ..Retention::FOREVER };
        let table = [
            (Retention::FOREVER, 9_000, 0),
            (time(8_000), 9_000, 0),
            (time(7_999), 9_000, 10),
            (time(5_500), 9_000, 30),
            (time(0), 9_000, 40),
            (time(0), 0, 0),
            (bytes(400), 0, 0),
            (bytes(300), 0, 10),
            (bytes(299), 0, 10),
            (bytes(0), 0, 40),
            (both, 4_000, 20),
        ];
        for (retention, now, from) in table {
            assert_eq!(
                keep_from(&retention, &extents(), &at(&[]), WallMs(now)),
                from,
                "{retention:?} at {now}"
            );
        }
    }

    #[test]
    fn what_somebody_has_not_finished_stays_unless_the_policy_says_so() {
        let retention = Retention { bytes: Some(0), ..Retention::FOREVER };
        let past = Retention { past_unfinished: true, ..retention };
        for (cursors, from) in [(&[25, 40][..], 20), (&[20], 20), (&[0, 40], 0), (&[99], 40)] {
            assert_eq!(keep_from(&retention, &extents(), &at(cursors), WallMs(0)), from);
            assert_eq!(keep_from(&past, &extents(), &at(cursors), WallMs(0)), 40);
        }
    }

    #[test]
    fn what_all_have_finished_may_go_from_the_middle_too() {
        let retention = Retention { drop_finished: true, ..Retention::FOREVER };
        let mut stuck = Progress::at(Offset(7));
        stuck.apply(&Step::Finished { first: Offset(8), end: Offset(30) });
        let finished = Finished::new(vec![stuck, Progress::at(Offset(35))]);
        let done = |retention: &Retention, finished: &Finished| -> Vec<bool> {
            extents().iter().map(|extent| is_done(retention, extent, finished)).collect()
        };
        assert_eq!(done(&retention, &finished), [false, true, true, false]);
        assert_eq!(done(&Retention::FOREVER, &finished), [false; 4]);
        assert_eq!(done(&retention, &at(&[])), [false; 4], "nobody has come for them yet");
        assert_eq!(finished.next_unfinished(8), 30);
        let ranges = [(0, 7), (7, 8), (7, 9), (29, 40), (30, 40), (35, 40)];
        let may = ranges.map(|(first, end)| finished.may_have(first, end));
        assert_eq!(may, [true, false, true, true, false, false]);
        assert!(!at(&[]).may_have(0, 9), "nobody has come for them yet");
        let sparse = |records, finished: &Finished| -> Vec<bool> {
            let each = extents().into_iter();
            each.map(|extent| is_sparse(&retention, &extent, records, finished)).collect()
        };
        assert_eq!(sparse(10, &finished), [true, true, true, false]);
        assert_eq!(sparse(3, &finished), [false, true, true, false], "one of three is not few");
        assert_eq!(sparse(10, &at(&[])), [false; 4]);
    }
}
