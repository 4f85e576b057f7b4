//! Whether what cannot be read was ever promised to survive.
//!
//! While the machine keeps running, the kernel keeps every write that succeeded: then only the
//! very end of the last file can be torn, by the death of the process, and anything else is
//! damage. After a power loss any page that was not synced may be missing while later ones are
//! there. Each frame says what was known to be durable when it was written, so a hole below that
//! is damage, and a hole above it is the end of what survived.
//!
//! Law: what some whole frame says was durable is never taken for torn.

use crate::disk::Disk;
use crate::error::OpenError;
use crate::frame::FrameKind;
use crate::listing::Found;
use crate::scan::Scan;
use danube_core::TopicId;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// What stands behind something that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The highest log sequence number below which everything was durable, as whole frames say.
    pub durable_lsn: u64,
    /// Whole frames that hold something: the mark of a clean close does not.
    pub frames: u64,
    /// One past the highest offset of each topic among them.
    pub ends: BTreeMap<TopicId, u64>,
    /// A later start of the process went on from there, so all of it was durable.
    pub gone_on: bool,
}

/// Looks behind byte `position` of the file at `at`, at frames with numbers within `lsn`.
pub(crate) fn look_behind(
    disk: &dyn Disk,
    files: &[Found],
    at: usize,
    position: u64,
    lsn: Range<u64>,
) -> Result<Behind, OpenError> {
    let mut behind = Behind::default();
    let incarnation = files[at].header.map(|header| header.incarnation);
    for (index, found) in files.iter().enumerate().skip(at) {
        let later = found.header.map(|header| header.incarnation);
        behind.gone_on |= index > at && later.is_some() && later != incarnation;
        let from = if index == at { position } else { 0 };
        let scanned = disk
            .open(&found.path)
            .and_then(|file| Scan::new(file, found.sequence))
            .and_then(|scan| behind.scan(scan, from, lsn.clone()));
        scanned.map_err(|error| OpenError::io("read", &found.path, &error))?;
    }
    Ok(behind)
}

impl Behind {
    fn scan(&mut self, mut scan: Scan, mut position: u64, lsn: Range<u64>) -> io::Result<()> {
        scan.accept(lsn);
        while let Some(next) = scan.next_frame(position)? {
            let Some(header) = scan.header(next)? else { break };
            self.frames += u64::from(header.kind != FrameKind::Mark);
            self.durable_lsn = self.durable_lsn.max(header.durable_below());
            if header.kind == FrameKind::Messages {
                let end = self.ends.entry(TopicId(header.topic)).or_default();
                *end = (*end).max(header.first.saturating_add(u64::from(header.count)));
            }
            position = next + header.frame_len();
        }
        Ok(())
    }

    /// Whether a hole where frame `lsn` was to be is the end of what survived; `powered` if the
    /// machine has kept running since it was written.
    pub(crate) fn is_torn(&self, lsn: u64, powered: bool) -> bool {
        let last = self.frames == 0;
        !self.gone_on && (last || (!powered && self.durable_lsn <= lsn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_says_was_durable_is_torn() {
        let behind = |frames, durable_lsn, gone_on| Behind {
            frames,
            durable_lsn,
            gone_on,
            ..Behind::default()
        };
        // What is behind, and whether it is torn: with the power on, and after a loss of it.
        let table = [
            (behind(0, 0, false), true, true),
            (behind(0, 6, false), true, true),
            (behind(1, 5, false), false, true),
            (behind(1, 6, false), false, false),
            (behind(0, 0, true), false, false),
        ];
        for (behind, on, lost) in table {
            assert_eq!(
                (behind.is_torn(5, true), behind.is_torn(5, false)),
                (on, lost),
                "{behind:?}"
            );
        }
    }
}
