//! What an archiving pass is to do with one topic.
//!
//! Law: what a topic keeps is decided here once, by what is known of it at one moment.

use crate::segment::SegmentRef;
use crate::shared::Shared;
use crate::topic::{Batch, Topic, TopicState};
use crate::trim::{Extent, Finished, is_done, is_sparse, keep_from};
use danube_core::{Retention, WallMs};

/// Segments up to this size are always written again with what follows, in bytes.
const SMALL_BYTES: u64 = 64 << 10;
/// A larger one is if it is no larger than this many times what follows.
const GROWTH: u64 = 2;

/// Bytes that a segment has beside those of a batch's payload.
const BATCH_BYTES: u64 = 64;

/// What is to become of a topic.
pub(super) struct Work {
    /// Segments that are written again or go, each with its place among the topic's.
    pub merged: Vec<(usize, SegmentRef)>,
    /// Segments that the topic has.
    pub segments: usize,
    /// Batches that leave the journal.
    pub batches: Vec<Batch>,
    /// Offset below which age and size let everything go.
    keep_from: u64,
    retention: Retention,
    finished: Finished,
    /// Whether anything may be left out at all.
    trims: bool,
}

/// What there is to do with `topic`; `None` for nothing.
pub(super) fn plan(shared: &Shared, topic: &Topic, settle_below: u64, now: WallMs) -> Option<Work> {
    let state = topic.state.lock();
    if state.forgotten {
        return None;
    }
    let due = state.index.partition_point(|batch| batch.file < settle_below);
    let batches: Vec<Batch> = state.index.range(..due).copied().collect();
    if batches.is_empty() && (state.segments.is_empty() || state.retention.is_none()) {
        return None;
    }
    let trims =
        state.retention.is_some() && state.subscriptions.is_some() && state.damage.is_none();
    let retention = state.retention.filter(|_| trims).unwrap_or(Retention::FOREVER);
    let finished = Finished::new(progress(&state));
    let keep_from = if trims { keep_from(&retention, &extents(&state), &finished, now) } else { 0 };
    let touched = |it: &SegmentRef| {
        it.end <= keep_from
            || is_done(&retention, &extent_of(it), &finished)
            || is_sparse(&retention, &extent_of(it), it.records, &finished)
    };
    let follows = batches.iter().map(|batch| u64::from(batch.payload_len)).sum();
    let segments: Vec<SegmentRef> = state.segments.iter().copied().collect();
    let merge = merge_from(&segments, follows, shared.options.segment_bytes_max);
    let placed = segments.into_iter().enumerate();
    let merged: Vec<_> = placed.filter(|(at, it)| *at >= merge || touched(it)).collect();
    if merged.is_empty() && batches.is_empty() {
        return None;
    }
    let segments = state.segments.len();
    Some(Work { merged, segments, batches, keep_from, retention, finished, trims })
}

/// Bytes of messages that `topic` has in journal file `file`, and how many of those may go as soon
/// as the file is full.
pub(crate) fn finished_in(topic: &Topic, file: u64) -> (u64, u64) {
    let state = topic.state.lock();
    let drops = state.retention.is_some_and(|retention| retention.drop_finished)
        && state.subscriptions.as_ref().is_some_and(|known| !known.is_empty())
        && state.damage.is_none();
    let finished = Finished::new(if drops { progress(&state) } else { Vec::new() });
    let here = state.index.iter().rev().take_while(|batch| batch.file >= file);
    here.fold((0, 0), |(all, gone), batch| {
        let bytes = u64::from(batch.payload_len);
        let goes = drops && finished.next_unfinished(batch.first) >= batch.end();
        (all + bytes, gone + if goes { bytes } else { 0 })
    })
}

/// Index of the first segment that is to be written again together with `follows` new bytes.
fn merge_from(segments: &[SegmentRef], mut follows: u64, bytes_max: u64) -> usize {
    let mut at = segments.len();
    while at > 0 && follows > 0 {
        let bytes = segments[at - 1].bytes;
        let small = bytes <= SMALL_BYTES || bytes <= follows.saturating_mul(GROWTH);
        if !small || bytes + follows > bytes_max {
            break;
        }
        follows += bytes;
        at -= 1;
    }
    at
}

fn progress(state: &TopicState) -> Vec<danube_core::subscription::Progress> {
    let known = state.subscriptions.iter().flatten();
    known.map(|(id, start)| state.subscription(*id, *start)).collect()
}

fn extent_of(segment: &SegmentRef) -> Extent {
    let SegmentRef { base, end, bytes, last_time, .. } = *segment;
    Extent { base, end, bytes, last_time }
}

/// All that a topic has: its segments, then what each journal file has of it.
fn extents(state: &TopicState) -> Vec<Extent> {
    let mut extents: Vec<Extent> = state.segments.iter().map(extent_of).collect();
    let mut file = None;
    for batch in &state.index {
        let bytes = u64::from(batch.payload_len);
        match extents.last_mut() {
            Some(last) if file == Some(batch.file) => {
                (last.end, last.last_time) = (batch.end(), batch.time);
                last.bytes += bytes;
            }
            _ => {
                let (base, end, last_time) = (batch.first, batch.end(), batch.time);
                extents.push(Extent { base, end, bytes, last_time });
            }
        }
        file = Some(batch.file);
    }
    extents
}

impl Work {
    /// About how many bytes all of it takes.
    pub fn bytes(&self) -> u64 {
        let merged: u64 = self.merged.iter().map(|(_, segment)| segment.bytes).sum();
        let batches = self.batches.iter();
        let added: u64 = batches.map(|batch| u64::from(batch.payload_len) + BATCH_BYTES).sum();
        merged + added
    }

    /// The first offset from `offset` on that is kept.
    pub fn next_kept(&self, offset: u64) -> u64 {
        let offset = offset.max(self.keep_from);
        if self.trims && self.retention.drop_finished {
            self.finished.next_unfinished(offset)
        } else {
            offset
        }
    }

    /// Where the run of kept offsets that begins at `offset` ends, at most at `end`.
    pub fn kept_until(&self, offset: u64, end: u64) -> u64 {
        if !(self.trims && self.retention.drop_finished) {
            return end;
        }
        (offset..end).find(|it| self.next_kept(*it) != *it).unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_segments_at_the_end_are_written_again_with_what_follows() {
        let segment = |bytes| SegmentRef {
            base: 0,
            end: 1,
            generation: 1,
            bytes,
            records: 1,
            first_time: 0,
            last_time: 0,
        };
        let k = |kib: u64| kib << 10;
        let table: [(&[u64], u64, usize); 7] = [
            (&[], k(9), 0),
            (&[k(9)], 0, 1),
            (&[k(64), k(64)], 1, 0),
            (&[k(900), k(65)], k(1), 2),
            (&[k(900), k(65)], k(40), 1),
            (&[k(9000), k(900), k(300)], k(200), 1),
            (&[k(60_000), k(9_000)], k(60_000), 2),
        ];
        for (sizes, follows, expected) in table {
            let segments: Vec<SegmentRef> = sizes.iter().map(|bytes| segment(*bytes)).collect();
            assert_eq!(merge_from(&segments, follows, 64 << 20), expected, "{sizes:?} {follows}");
        }
    }
}
