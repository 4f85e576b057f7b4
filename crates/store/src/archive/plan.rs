//! What an archiving pass is to do with one topic.
//!
//! Law: what a topic keeps is decided here once, by what is known of it at one moment.

use super::Pass;
use super::adopt::Part;
use crate::runs::frame_len;
use crate::segment::SegmentRef;
use crate::shared::Shared;
use crate::topic::{Batch, Topic, TopicState};
use crate::trim::{Extent, Finished, is_done, is_sparse, keep_from};
use danube_core::{Retention, WallMs};
use std::collections::BTreeSet;

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
    /// Journal files of which it takes its part over as it is.
    pub taken: BTreeSet<u64>,
    kept: Kept,
}

/// What a topic keeps.
struct Kept {
    /// Offset below which age and size let everything go.
    keep_from: u64,
    retention: Retention,
    finished: Finished,
    /// Whether anything may be left out at all.
    trims: bool,
}

/// What there is to do with `topic`; `None` for nothing.
pub(super) fn plan(shared: &Shared, topic: &Topic, pass: &Pass) -> Option<Work> {
    let state = topic.state.lock();
    if state.forgotten {
        return None;
    }
    let batches: Vec<Batch> = due(&state, pass.settle_below).copied().collect();
    if batches.is_empty() && (state.segments.is_empty() || state.retention.is_none()) {
        return None;
    }
    let kept = Kept::of(&state, pass.now);
    let Kept { keep_from, retention, finished, .. } = &kept;
    let is_thin = |it: &u64| pass.thin.contains(it) && state.damage.is_none();
    let touched = |it: &SegmentRef| {
        it.end <= *keep_from
            || it.journal.as_ref().is_some_and(is_thin)
            || is_done(retention, &extent_of(it), finished)
            || is_sparse(retention, &extent_of(it), it.records, finished)
    };
    let takes = |it: &u64| pass.takers.get(it).is_some_and(|takers| takers.contains(&topic.id));
    let shares = shares(batches.iter()).into_iter();
    let takes = shares.filter(|share| takes(&share.file) && state.damage.is_none());
    let taken: BTreeSet<u64> = takes.filter(|it| kept.all_of(it)).map(|it| it.file).collect();
    // What a file that is taken over has is not written, and nothing can be written with it.
    let follows = batches.iter().take_while(|batch| !taken.contains(&batch.file));
    let follows = follows.map(|batch| u64::from(batch.payload_len)).sum();
    let segments: Vec<SegmentRef> = state.segments.iter().copied().collect();
    // What is damaged stays as it is, and what is not known to be whole with it.
    let merge = match state.damage {
        Some(_) => segments.len(),
        None => merge_from(&segments, follows, shared.options.segment_bytes_max),
    };
    let placed = segments.into_iter().enumerate();
    let merged: Vec<_> = placed.filter(|(at, it)| *at >= merge || touched(it)).collect();
    if merged.is_empty() && batches.is_empty() {
        return None;
    }
    let segments = state.segments.len();
    Some(Work { merged, segments, batches, taken, kept })
}

/// What `topic` has in each journal file below `settle_below`, where its frames are large.
pub(super) fn parts(
    shared: &Shared,
    topic: &Topic,
    settle_below: u64,
    now: WallMs,
) -> Vec<(u64, Part)> {
    let state = topic.state.lock();
    if state.forgotten || state.damage.is_some() {
        return Vec::new();
    }
    let min = shared.options.adopt_frame_bytes_min;
    let mut shares = shares(due(&state, settle_below));
    shares.retain(|share| share.part.is_large(min));
    if shares.is_empty() {
        return Vec::new();
    }
    let kept = Kept::of(&state, now);
    let part = |share: &Share| Part { keeps_all: kept.all_of(share), ..share.part };
    shares.iter().map(|share| (share.file, part(share))).collect()
}

/// Batches that leave the journal.
fn due(state: &TopicState, settle_below: u64) -> impl Iterator<Item = &Batch> {
    let due = state.index.partition_point(|batch| batch.file < settle_below);
    state.index.range(..due)
}

/// What one topic has in one journal file.
struct Share {
    file: u64,
    /// Its first offset there.
    first: u64,
    /// One past the last.
    end: u64,
    part: Part,
}

/// The share in each file that `batches` are in.
fn shares<'a>(batches: impl Iterator<Item = &'a Batch>) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for batch in batches {
        let Batch { file, first, .. } = *batch;
        let (bytes, end) = (frame_len(batch), batch.end());
        match shares.last_mut().filter(|share| share.file == file) {
            Some(share) => {
                share.end = end;
                share.part.bytes += bytes;
                share.part.frames += 1;
            }
            None => {
                let part = Part { bytes, frames: 1, keeps_all: true };
                shares.push(Share { file, first, end, part });
            }
        }
    }
    shares
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
        let SegmentRef { bytes, journal, .. } = segments[at - 1];
        let small = bytes <= SMALL_BYTES || bytes <= follows.saturating_mul(GROWTH);
        if !small || journal.is_some() || bytes + follows > bytes_max {
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
    /// About how many bytes all of it takes that is written.
    pub fn bytes(&self) -> u64 {
        let merged: u64 = self.merged.iter().map(|(_, segment)| segment.bytes).sum();
        let batches = self.batches.iter().filter(|batch| !self.taken.contains(&batch.file));
        let added: u64 = batches.map(|batch| u64::from(batch.payload_len) + BATCH_BYTES).sum();
        merged + added
    }

    /// The first offset from `offset` on that is kept.
    pub fn next_kept(&self, offset: u64) -> u64 {
        self.kept.next(offset)
    }

    /// Where the run of kept offsets that begins at `offset` ends, at most at `end`.
    pub fn kept_until(&self, offset: u64, end: u64) -> u64 {
        if !self.kept.drops_finished() {
            return end;
        }
        (offset..end).find(|it| self.next_kept(*it) != *it).unwrap_or(end)
    }
}

impl Kept {
    fn of(state: &TopicState, now: WallMs) -> Kept {
        let trims =
            state.retention.is_some() && state.subscriptions.is_some() && state.damage.is_none();
        let retention = state.retention.filter(|_| trims).unwrap_or(Retention::FOREVER);
        let finished = Finished::new(progress(state));
        let keep_from =
            if trims { keep_from(&retention, &extents(state), &finished, now) } else { 0 };
        Kept { keep_from, retention, finished, trims }
    }

    fn drops_finished(&self) -> bool {
        self.trims && self.retention.drop_finished
    }

    fn next(&self, offset: u64) -> u64 {
        let offset = offset.max(self.keep_from);
        if self.drops_finished() { self.finished.next_unfinished(offset) } else { offset }
    }

    /// Whether everything in `share` is kept.
    fn all_of(&self, share: &Share) -> bool {
        let may_go = self.drops_finished() && self.finished.may_have(share.first, share.end);
        self.keep_from <= share.first && !may_go
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
            journal: None,
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
        let taken = SegmentRef { journal: Some(1), ..segment(k(9)) };
        assert_eq!(merge_from(&[segment(k(9)), taken], k(9), 64 << 20), 2, "it was taken over");
    }
}
