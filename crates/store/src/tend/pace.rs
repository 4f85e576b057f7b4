//! How fast the background copies: at once while nobody writes; else a little at a time, as the syncs of
//! others wait for it, with rests between. They are so long that it gets on faster than others write,
//! get shorter when much has piled up, and end where that is as much as may be.
//!
//! What waits longer is copied less: more of it is finished by then.
//!
//! Law: rests delay the background only. They end when the store closes, and there are none where
//! somebody waits for a pass, or for room on the disk.

use crate::error::{AppendError, TendError};
use crate::shared::{Command, Shared};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// Fewest bytes that are copied between two rests.
const UNIT_MIN: u64 = 64 << 10;
/// Most bytes that are: what a sync of the journal may have to wait for.
const UNIT_MAX: u64 = 128 << 10;
/// The shortest rest while little has piled up, in microseconds; copying the most takes a tenth of that.
const REST_US_MIN: u64 = 2_000;
/// The longest rest, in microseconds.
const REST_US_MAX: u64 = 20_000;
/// So many times what others write is copied meanwhile, as far as that is between the least and the most.
const LEAD: u64 = 2;
/// Frames in the journal at which there are no rests any more: each of messages has its place in
/// memory.
const FRAMES_MAX: u64 = 1 << 20;

/// Where the background is between two rests, and what cannot wait until it has done.
pub(crate) struct Pace {
    shared: Arc<Shared>,
    /// When everything was made durable last.
    synced_at: u64,
    beat: Beat,
    /// Bytes copied since the last rest.
    copied: u64,
    /// Bytes that were written to the journal when it was looked at last.
    seen: u64,
}

impl Pace {
    /// Before anything is copied.
    pub(crate) fn new(shared: Arc<Shared>) -> Pace {
        Pace { shared, synced_at: 0, beat: Beat::FASTEST, copied: 0, seen: 0 }
    }

    /// Bytes that are better not exceeded by what is written at once.
    pub(crate) fn unit(&self) -> u64 {
        self.beat.unit
    }

    /// Notes that `bytes` were copied, and rests if it is time.
    pub(crate) fn copied(&mut self, bytes: u64) {
        self.copied += bytes;
        if self.copied < self.beat.unit {
            return;
        }
        self.copied = 0;
        if let Err(error) = self.sync_if_due() {
            // The round's own end meets it again, and says so.
            tracing::debug!(%error, "cannot make the journal durable");
        }
        let Shared { options, counters, tight, wake, .. } = &*self.shared;
        let written = counters.bytes.load(Relaxed);
        let came = written.saturating_sub(std::mem::replace(&mut self.seen, written));
        if options.background && came > 0 && !tight.load(Relaxed) {
            self.beat = self.beat.next(came, self.rest_us_max());
            wake.rest(Duration::from_micros(self.beat.rest_us));
        } else {
            self.beat = Beat::FASTEST;
        }
    }

    /// Bounds the time that what was acknowledged before a sync stays without one.
    pub(super) fn sync_if_due(&mut self) -> Result<(), TendError> {
        let options = &self.shared.options;
        let now = options.clock.tick().0;
        let due = options.sync_interval_ms > 0
            && now >= self.synced_at.saturating_add(options.sync_interval_ms);
        if due {
            self.synced_at = now;
            if self.shared.unsynced.load(Acquire) {
                match options.background {
                    // No append waits for it.
                    true => self.shared.commands.push_always(Command::SyncSoon),
                    false => drop(flush(&self.shared)?),
                }
            }
        }
        Ok(())
    }

    fn rest_us_max(&self) -> u64 {
        let files = self.shared.files.lock();
        let frames = match (files.first_key_value(), files.last_key_value()) {
            (Some((_, first)), Some((_, last))) => last.saturating_sub(*first),
            _ => 0,
        };
        rest_us_max(files.len() as u64, frames, self.shared.options.journal_files_max as u64)
    }
}

/// Makes the journal durable; returns the number of its next frame.
pub(super) fn flush(shared: &Shared) -> Result<u64, TendError> {
    let (tell, answer) = mpsc::sync_channel(1);
    let done = Box::new(move |outcome| {
        let _ = tell.send(outcome);
    });
    shared.commands.push_always(Command::Sync(Some(done)));
    // A closed queue has dropped it.
    let outcome = answer.recv().unwrap_or(Err(AppendError::Closed));
    outcome.map_err(TendError::Journal)
}

/// How much is copied, and how long the rest after it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beat {
    /// Bytes.
    unit: u64,
    /// Microseconds.
    rest_us: u64,
}

impl Beat {
    /// As far as there are rests at all.
    const FASTEST: Beat = Beat { unit: UNIT_MAX, rest_us: REST_US_MIN };

    /// The next one, where others wrote `came` bytes in this one, and a rest of `rest_us_max` is the
    /// longest.
    fn next(self, came: u64, rest_us_max: u64) -> Beat {
        if rest_us_max < REST_US_MIN {
            return Beat { unit: UNIT_MAX, rest_us: rest_us_max };
        }
        // In the shortest rest; copying itself takes little of the time.
        let due = came.saturating_mul(LEAD * REST_US_MIN) / self.rest_us.max(1);
        let unit = due.clamp(UNIT_MIN, UNIT_MAX);
        let rest_us = (REST_US_MIN * unit / due.max(1)).clamp(REST_US_MIN, rest_us_max);
        Beat { unit, rest_us }
    }
}

/// The longest rest where there are so many journal files, of at most `files_max`, with so many frames:
/// as long as may be until half of the most are there, then less and less. So what one burst has left
/// disturbs the next one little.
fn rest_us_max(files: u64, frames: u64, files_max: u64) -> u64 {
    let left = |there: u64, most: u64| {
        let (left, most) = (most.saturating_sub(there), most.max(1));
        if 4 * left >= most {
            (REST_US_MAX * (4 * left - most) / most).clamp(REST_US_MIN, REST_US_MAX)
        } else {
            REST_US_MIN * 4 * left / most
        }
    };
    left(files, files_max).min(left(frames, FRAMES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_get_shorter_the_more_there_is_to_copy_and_end() {
        let many = FRAMES_MAX - FRAMES_MAX / 8;
        let table = [
            (0, 0, 20_000),
            (8, 0, 20_000),
            (10, 0, 10_000),
            (12, 0, 2000),
            (14, 0, 1000),
            (15, 0, 500),
            (16, 0, 0),
            (99, 0, 0),
            (4, many, 1000),
        ];
        for (files, frames, us) in table {
            assert_eq!(rest_us_max(files, frames, 16), us, "{files} files, {frames} frames");
        }
        assert_eq!((rest_us_max(3, FRAMES_MAX, 16), rest_us_max(0, 0, 0)), (0, 0));
    }

    #[test]
    fn it_gets_on_faster_than_others_write_and_disturbs_them_no_more_than_that_takes() {
        // Others write so many KiB in each millisecond; after some time it is at a unit of so many KiB
        // and a rest of so many microseconds.
        let table = [
            (0, 64, 20_000),
            (2, 64, 16_000),
            (8, 64, 4_000),
            (16, 64, 2_000),
            (24, 96, 2_000),
            (32, 128, 2_000),
            (9_999, 128, 2_000),
        ];
        for (rate, unit, rest_us) in table {
            let mut beat = Beat::FASTEST;
            for _ in 0..4 {
                beat = beat.next((rate << 10) * beat.rest_us / 1000, REST_US_MAX);
            }
            assert_eq!(beat, Beat { unit: unit << 10, rest_us }, "{rate} KiB/ms");
        }
        let hurry = Beat::FASTEST.next(1, 700);
        assert_eq!(hurry, Beat { unit: UNIT_MAX, rest_us: 700 });
        assert_eq!(Beat { unit: 1, rest_us: 0 }.next(u64::MAX, REST_US_MAX), Beat::FASTEST);
    }
}
