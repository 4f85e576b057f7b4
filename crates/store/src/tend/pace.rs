//! How fast the background copies: at once while nobody writes; else with rests, which get shorter when
//! much has piled up, and end where that is as much as may be.
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

/// Bytes copied between two rests: what a sync of the journal may have to wait for.
const UNIT: u64 = 128 << 10;
/// The longest rest, in microseconds; copying a unit takes a tenth of that, or less.
const REST_US_MAX: u64 = 2_000;
/// Frames in the journal at which there are no rests any more: each of messages has its place in
/// memory.
const FRAMES_MAX: u64 = 1 << 20;

/// Where the background is between two rests, and what cannot wait until it has done.
pub(crate) struct Pace {
    shared: Arc<Shared>,
    /// When everything was made durable last.
    synced_at: u64,
    copied: u64,
    /// Bytes that were written to the journal when it was looked at last.
    seen: u64,
}

impl Pace {
    /// Before anything is copied.
    pub(crate) fn new(shared: Arc<Shared>) -> Pace {
        Pace { shared, synced_at: 0, copied: 0, seen: 0 }
    }

    /// Notes that `bytes` were copied, and rests if it is time.
    pub(crate) fn copied(&mut self, bytes: u64) {
        self.copied += bytes;
        if self.copied < UNIT {
            return;
        }
        self.copied = 0;
        if let Err(error) = self.sync_if_due() {
            // The round's own end meets it again, and says so.
            tracing::debug!(%error, "cannot make the journal durable");
        }
        let Shared { options, counters, tight, wake, .. } = &*self.shared;
        let written = counters.bytes.load(Relaxed);
        let is_idle = std::mem::replace(&mut self.seen, written) == written;
        if options.background && !is_idle && !tight.load(Relaxed) {
            wake.rest(Duration::from_micros(self.rest_us()));
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

    fn rest_us(&self) -> u64 {
        let files = self.shared.files.lock();
        let frames = match (files.first_key_value(), files.last_key_value()) {
            (Some((_, first)), Some((_, last))) => last.saturating_sub(*first),
            _ => 0,
        };
        rest_us(files.len() as u64, frames, self.shared.options.journal_files_max as u64)
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

/// How long to rest where there are so many journal files, of at most `files_max`, with so many
/// frames: as long as may be until three quarters of the most are there, then less and less. So what
/// one burst has left disturbs the next one little.
fn rest_us(files: u64, frames: u64, files_max: u64) -> u64 {
    let left = |there: u64, most: u64| {
        let rest = REST_US_MAX * 4 * most.saturating_sub(there) / most.max(1);
        rest.min(REST_US_MAX)
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
            (0, 0, 2000),
            (12, 0, 2000),
            (14, 0, 1000),
            (15, 0, 500),
            (16, 0, 0),
            (99, 0, 0),
            (4, many, 1000),
        ];
        for (files, frames, us) in table {
            assert_eq!(rest_us(files, frames, 16), us, "{files} files, {frames} frames");
        }
        assert_eq!((rest_us(3, FRAMES_MAX, 16), rest_us(0, 0, 0)), (0, 0));
    }
}
