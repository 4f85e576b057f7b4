//! Progress records as bytes: the payload of a progress frame.
//!
//! Law: what is encoded decodes to the same, and no bytes can make decoding panic or take more
//! memory than they have themselves.

use crate::input::Input;
use danube_core::subscription::progress::{ProgressRecord, Step};
use danube_core::{Offset, SubscriptionId};

const FINISHED: u8 = 1;
const FAILED: u8 = 2;
const MOVED: u8 = 3;
const DELIVERED: u8 = 4;
const DELAYED: u8 = 5;

/// Bytes of `records`, one after the other.
pub(crate) fn encode(records: &[ProgressRecord]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len() * 24);
    for record in records {
        out.extend(record.subscription.0.to_le_bytes());
        match &record.step {
            Step::Finished { first, end } => {
                out.push(FINISHED);
                out.extend(first.0.to_le_bytes());
                out.extend(end.0.to_le_bytes());
            }
            Step::Failed { offset, attempt, blocked, reason } => {
                out.push(FAILED);
                out.extend(offset.0.to_le_bytes());
                out.extend(attempt.to_le_bytes());
                out.push(u8::from(*blocked));
                // A reason of 4 GiB cannot pass the frame limit, so the cast loses nothing.
                out.extend((reason.len() as u32).to_le_bytes());
                out.extend(reason.as_bytes());
            }
            Step::Moved { cursor } => {
                out.push(MOVED);
                out.extend(cursor.0.to_le_bytes());
            }
            Step::Delivered { offset, attempt } => {
                out.push(DELIVERED);
                out.extend(offset.0.to_le_bytes());
                out.extend(attempt.to_le_bytes());
            }
            Step::Delayed { offset, delay_ms } => {
                out.push(DELAYED);
                out.extend(offset.0.to_le_bytes());
                out.extend(delay_ms.to_le_bytes());
            }
        }
    }
    out
}

/// The `count` records in `payload`; `None` unless they fill it exactly.
pub(crate) fn decode(payload: &[u8], count: u32) -> Option<Vec<ProgressRecord>> {
    let mut input = Input(payload);
    let mut records = Vec::new();
    for _ in 0..count {
        let subscription = SubscriptionId(input.u32()?);
        let step = match input.u8()? {
            FINISHED => Step::Finished { first: Offset(input.u64()?), end: Offset(input.u64()?) },
            FAILED => Step::Failed {
                offset: Offset(input.u64()?),
                attempt: input.u32()?,
                blocked: input.flag()?,
                reason: input.text()?,
            },
            MOVED => Step::Moved { cursor: Offset(input.u64()?) },
            DELIVERED => Step::Delivered { offset: Offset(input.u64()?), attempt: input.u32()? },
            DELAYED => Step::Delayed { offset: Offset(input.u64()?), delay_ms: input.u64()? },
            _ => return None,
        };
        records.push(ProgressRecord { subscription, step });
    }
    input.0.is_empty().then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = Step> {
        let offset = || any::<u64>().prop_map(Offset);
        prop_oneof![
            (offset(), offset()).prop_map(|(first, end)| Step::Finished { first, end }),
            (offset(), any::<u32>(), any::<bool>(), ".{0,20}").prop_map(
                |(offset, attempt, blocked, reason)| {
                    Step::Failed { offset, attempt, blocked, reason }
                }
            ),
            offset().prop_map(|cursor| Step::Moved { cursor }),
            (offset(), any::<u32>())
                .prop_map(|(offset, attempt)| Step::Delivered { offset, attempt }),
            (offset(), any::<u64>())
                .prop_map(|(offset, delay_ms)| Step::Delayed { offset, delay_ms }),
        ]
    }

    /// The other steps' bytes are pinned with a whole journal, in `tests/format.rs`.
    #[test]
    fn bytes_of_deliveries_and_delays_are_pinned() {
        let subscription = SubscriptionId(8);
        let offset = Offset(0x0102);
        let records = [
            ProgressRecord { subscription, step: Step::Delivered { offset, attempt: 3 } },
            ProgressRecord { subscription, step: Step::Delayed { offset, delay_ms: 1_000 } },
        ];
        let delivered = [8, 0, 0, 0, 4, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
        let delayed = [8, 0, 0, 0, 5, 2, 1, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0];
        assert_eq!(encode(&records), [&delivered[..], &delayed[..]].concat());
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(steps in prop::collection::vec((any::<u32>(), step()), 0..9)) {
            let records: Vec<ProgressRecord> = steps
                .into_iter()
                .map(|(id, step)| ProgressRecord { subscription: SubscriptionId(id), step })
                .collect();
            let bytes = encode(&records);
            let count = records.len() as u32;
            prop_assert_eq!(decode(&bytes, count), Some(records));
            prop_assert_eq!(decode(&bytes, count + 1), None);
            for cut in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..cut], count), None);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), count in any::<u32>()) {
            let _ = decode(&bytes, count);
        }
    }
}
