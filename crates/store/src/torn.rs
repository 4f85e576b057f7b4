//! Whether what cannot be read was ever promised to survive.
//!
//! A file gets its name only once all that counts in the earlier ones is durable, so only the last
//! one can be torn. While the machine keeps running, the kernel keeps every write that succeeded:
//! then only its very end can be, by the death of the process. After a power loss any page that
//! was not synced may be missing while later ones are there. Each frame says what was known to be
//! durable when it was written, so a hole below that is damage, and a hole above it is the end of
//! what survived.
//!
//! Law: what some whole frame says was durable is never taken for torn.

use crate::frame::FrameKind;
use crate::scan::Scan;
use danube_core::TopicId;
use std::collections::BTreeMap;
use std::io;

/// What stands behind something that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The highest log sequence number below which everything was durable, as whole frames say.
    pub durable_lsn: u64,
    /// Whole frames that hold something: the mark of a clean close does not.
    pub frames: u64,
    /// One past the highest offset of each topic that may have been promised by one of them. What
    /// waits for its sync is not: had that come, nothing before it were missing.
    pub promised: BTreeMap<TopicId, u64>,
}

impl Behind {
    /// Looks at the frames that `scan` accepts from byte `position` on.
    pub(crate) fn look(scan: &mut Scan, mut position: u64) -> io::Result<Behind> {
        let mut behind = Behind::default();
        while let Some(next) = scan.next_frame(position)? {
            let Some(header) = scan.header(next)? else { break };
            behind.frames += u64::from(header.kind != FrameKind::Mark);
            behind.durable_lsn = behind.durable_lsn.max(header.durable_below());
            if header.kind == FrameKind::Messages && !header.synced_mode {
                let end = behind.promised.entry(TopicId(header.topic)).or_default();
                *end = (*end).max(header.first.saturating_add(u64::from(header.count)));
            }
            position = next + header.frame_len();
        }
        Ok(behind)
    }

    /// Whether a hole where frame `lsn` was to be is the end of what survived; `powered` if the
    /// machine has kept running since it was written.
    pub(crate) fn is_torn(&self, lsn: u64, powered: bool) -> bool {
        self.frames == 0 || (!powered && self.durable_lsn <= lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_says_was_durable_is_torn() {
        let behind = |frames, durable_lsn| Behind { frames, durable_lsn, ..Behind::default() };
        // What is behind, and whether it is torn: with the power on, and after a loss of it.
        let table = [
            (behind(0, 0), true, true),
            (behind(0, 6), true, true),
            (behind(1, 5), false, true),
            (behind(1, 6), false, false),
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
