//! Large batches that keep coming, written past the operating system's cache.
//!
//! That cache takes a burst faster than the disk would. What lasts longer than a burst gets no further
//! than the disk does anyhow; and then the copy into the cache, and the work of writing back from
//! there, are more than all else that the log does with a large batch. Where a sync follows at once,
//! the cache is no help either. Small writes stay with it: they are cheap there, and read again soon.
//!
//! What this leaves to others: what is written, and where. It is durable after a sync, as any other.
//!
//! Law: the file has the same bytes as after an ordinary write, but for zeros behind them where room is
//! reserved; and where the disk turns out slow, its lateness is a twentieth of the time at most.

use super::active::{Active, END};
use crate::aligned::AlignedBuffer;
use crate::disk::DIRECT_ALIGN;
use crate::group::Group;
use crate::options::StoreOptions;
use danube_core::Tick;
use std::io;
use std::time::Duration;

/// A group is large if it could be so many of the least batches.
const GROUP_BATCHES: u64 = 2;
/// Larger ones are not gathered in memory, in bytes.
const GROUP_BYTES_MAX: u64 = 8 << 20;
/// What comes in so many bytes per millisecond is no burst.
const CALM_BYTES_PER_MS: u64 = 64 << 10;
/// What a write may take, and what it may take more for each mebibyte.
const USUAL: Duration = Duration::from_millis(1);
/// So much later than that, less what others were earlier, the disk is slow.
const LATE_MAX: Duration = Duration::from_millis(20);
/// For so many times as long as it was late, there is none.
const LATE_SHARE: u64 = 20;

/// How full the cache may be of what was written lately.
#[derive(Debug, Default)]
struct Burst {
    bytes: u64,
    seen: Tick,
    /// How late writes past the cache were.
    late: Duration,
    /// None of them before.
    not_before: Tick,
}

impl Burst {
    /// Takes note of `bytes` that are to be written now. Whether that lasts longer than a burst of
    /// `bytes_max`, as far as the disk is quick.
    fn lasts(&mut self, bytes: u64, bytes_max: u64, now: Tick) -> bool {
        let calm_ms = now.0.saturating_sub(self.seen.0);
        self.seen = now;
        let left = self.bytes.saturating_sub(calm_ms.saturating_mul(CALM_BYTES_PER_MS));
        self.bytes = left.saturating_add(bytes).min(bytes_max);
        self.bytes >= bytes_max
    }

    /// Takes note that `bytes` past the cache `took` so long.
    fn took(&mut self, bytes: u64, took: Duration, now: Tick) {
        let usual = USUAL + USUAL * u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        self.late = (self.late + took).saturating_sub(usual);
        if self.late >= LATE_MAX {
            let late = std::mem::take(&mut self.late);
            let late_ms = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
            self.not_before = now.after_ms(late_ms.saturating_mul(LATE_SHARE));
        }
    }

    fn is_quick(&self, now: Tick) -> bool {
        now >= self.not_before
    }
}

/// What is needed for such writes.
#[derive(Debug)]
pub(super) struct Direct {
    burst: Burst,
    /// What is gathered; between two writes the end of a file that is no whole unit.
    buffer: AlignedBuffer,
    /// How long the active file was, if that is its end.
    end_at: Option<u64>,
}

impl Direct {
    /// Before anything is written.
    pub fn new() -> Direct {
        Direct { burst: Burst::default(), buffer: AlignedBuffer::with_capacity(0), end_at: None }
    }

    /// Another file is the active one now.
    pub fn another_file(&mut self) {
        self.end_at = None;
    }

    /// Whether `group`, which a sync will follow if `synced`, is better written past the cache.
    pub fn suits(&mut self, group: &Group, synced: bool, options: &StoreOptions) -> bool {
        let (bytes, least, now) =
            (group.len(), options.direct_batch_bytes_min, options.clock.tick());
        let lasts = self.burst.lasts(bytes, options.burst_bytes_max, now);
        let groups = least.saturating_mul(GROUP_BATCHES)..=GROUP_BYTES_MAX;
        let large = groups.contains(&bytes) && bytes >= least.saturating_mul(group.frames());
        large && (synced || lasts) && self.burst.is_quick(now)
    }

    /// Writes `group` to `active`; on an error any part of it may be in the file. `None`: it has to be
    /// an ordinary write, and nothing is done.
    pub fn write(
        &mut self,
        active: &mut Active,
        group: &Group,
        options: &StoreOptions,
    ) -> Option<io::Result<()>> {
        let unit = DIRECT_ALIGN as u64;
        let (begin, end) = (active.len - active.len % unit, active.len + group.len());
        if !active.has_room_to(active.end_of(group.len()).next_multiple_of(unit)) {
            return None;
        }
        if self.end_at.take() != Some(active.len) {
            let mut bytes = [0; DIRECT_ALIGN];
            let head = &mut bytes[..(active.len - begin) as usize];
            let filled = active.file.read_at(begin, head);
            filled.ok().filter(|filled| *filled == head.len())?;
            self.buffer.clear();
            self.buffer.push(head);
        }
        for slice in group.slices() {
            self.buffer.push(&slice);
        }
        let used = self.buffer.len();
        if active.reused {
            self.buffer.push(&END);
        }
        self.buffer.pad();
        let started = options.clock.elapsed();
        let written = active.file.write_direct_at(begin, self.buffer.all());
        let took = options.clock.elapsed().saturating_sub(started);
        self.burst.took(group.len(), took, options.clock.tick());
        self.buffer.truncate(used);
        self.buffer.clear_whole();
        if written.is_ok() {
            active.has_now(end);
            self.end_at = Some(end);
        }
        Some(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_burst_goes_to_the_cache_and_what_lasts_longer_does_not() {
        let mut burst = Burst::default();
        let at = Tick(1_000);
        assert!(!burst.lasts(200 * MIB, 256 * MIB, at));
        assert!(burst.lasts(56 * MIB, 256 * MIB, at));
        assert!(burst.lasts(MIB, 256 * MIB, at.after_ms(1)), "a thousand MiB in a second");
        assert!(!burst.lasts(MIB, 256 * MIB, at.after_ms(100)), "a pause of 6 MiB");
        assert!(burst.lasts(6 * MIB, 256 * MIB, at.after_ms(101)));
    }

    #[test]
    fn what_comes_calmly_never_fills_it() {
        let mut burst = Burst::default();
        for ms in 0..10_000 {
            assert!(!burst.lasts(CALM_BYTES_PER_MS, MIB, Tick(ms)), "after {ms} ms");
        }
    }

    #[test]
    fn a_slow_disk_is_late_a_twentieth_of_the_time() {
        let at = Tick(1_000);
        let mut quick = Burst::default();
        for _ in 0..100 {
            quick.took(MIB, Duration::from_millis(10), at);
            (0..10).for_each(|_| quick.took(MIB, Duration::from_millis(1), at));
            assert!(quick.is_quick(at), "one is late now and then");
        }
        let mut slow = Burst::default();
        (0..10).for_each(|_| slow.took(MIB, Duration::from_millis(4), at));
        assert!(!slow.is_quick(at.after_ms(399)));
        assert!(slow.is_quick(at.after_ms(400)));
        let mut stalls = Burst::default();
        stalls.took(MIB, Duration::from_millis(52), at);
        assert!(!stalls.is_quick(at.after_ms(999)));
        assert!(stalls.is_quick(at.after_ms(1_000)));
    }
}
