//! What a frame of messages can have beside them: who sent them, and progress of other topics that
//! belongs to them.
//!
//! It is in the same frame, before the messages, so both are there or neither is. The layout is in
//! `docs/formats/journal.md`.
//!
//! Law: what is encoded decodes to the same, and no bytes can make decoding panic or take more
//! memory than they have themselves.

use crate::input::Input;
use crate::step;
use danube_core::sequence::Origin;
use danube_core::subscription::progress::ProgressRecord;
use danube_core::{ProducerId, TopicId};

/// Bytes before the extras: their length.
const LEN_BYTES: usize = 4;
const ORIGIN: u8 = 1;
const PROGRESS: u8 = 2;

/// Progress of another topic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Also {
    /// Which topic.
    pub topic: TopicId,
    /// Its epoch when it was written.
    pub epoch: u32,
    /// What its subscriptions have done.
    pub records: Vec<ProgressRecord>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extras {
    /// Who sent the messages.
    pub origin: Option<Origin>,
    /// What else is true if the messages are there.
    pub also: Vec<Also>,
}

impl Extras {
    /// Bytes of all of it with their length before them; none if there is nothing.
    pub(crate) fn encode(&self) -> Vec<u8> {
        if *self == Extras::default() {
            return Vec::new();
        }
        let mut out = vec![0; LEN_BYTES];
        if let Some(Origin { producer, epoch, first_sequence, .. }) = self.origin {
            out.push(ORIGIN);
            out.extend([producer.0, epoch.into(), first_sequence].map(u64::to_le_bytes).concat());
        }
        for Also { topic, epoch, records } in &self.also {
            let payload = step::encode(records);
            out.push(PROGRESS);
            // A frame's limit keeps count and length far below 2^32.
            let (count, len) = (records.len() as u32, payload.len() as u32);
            out.extend([topic.0, *epoch, count, len].map(u32::to_le_bytes).concat());
            out.extend(payload);
        }
        let len = (out.len() - LEN_BYTES) as u32;
        out[..LEN_BYTES].copy_from_slice(&len.to_le_bytes());
        out
    }

    /// Reads what `encode` wrote, without the length; `None` for anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Extras> {
        let mut input = Input(bytes);
        let mut extras = Extras::default();
        while !input.0.is_empty() {
            match input.u8()? {
                ORIGIN if extras == Extras::default() => {
                    let producer = ProducerId(input.u64()?);
                    let epoch = u32::try_from(input.u64()?).ok()?;
                    let first_sequence = input.u64()?;
                    // What it followed mattered when it was admitted.
                    let after = first_sequence.saturating_sub(1);
                    extras.origin = Some(Origin { producer, epoch, after, first_sequence });
                }
                PROGRESS => {
                    let (topic, epoch) = (TopicId(input.u32()?), input.u32()?);
                    let (count, len) = (input.u32()?, input.u32()?);
                    let records = step::decode(input.bytes(len as usize)?, count)?;
                    extras.also.push(Also { topic, epoch, records });
                }
                _ => return None,
            }
        }
        (extras != Extras::default()).then_some(extras)
    }
}

/// Takes extras off the front of a payload: their bytes and the messages.
pub(crate) fn split(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = payload.split_first_chunk::<LEN_BYTES>()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

/// How many bytes of a payload extras take, with their length.
pub(crate) fn front_len(payload: &[u8]) -> Option<usize> {
    split(payload).map(|(extras, _)| LEN_BYTES + extras.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::subscription::progress::Step;
    use danube_core::{Offset, SubscriptionId};
    use proptest::prelude::*;

    fn extras() -> impl Strategy<Value = Extras> {
        let origin = any::<(u64, u32, u64)>().prop_map(|(producer, epoch, first_sequence)| {
            let after = first_sequence.saturating_sub(1);
            Origin { producer: ProducerId(producer), epoch, after, first_sequence }
        });
        let record = any::<(u32, u64)>().prop_map(|(subscription, cursor)| ProgressRecord {
            subscription: SubscriptionId(subscription),
            step: Step::Moved { cursor: Offset(cursor) },
        });
        let records = prop::collection::vec(record, 0..3);
        let also = (any::<u32>(), any::<u32>(), records).prop_map(|(topic, epoch, records)| Also {
            topic: TopicId(topic),
            epoch,
            records,
        });
        (prop::option::of(origin), prop::collection::vec(also, 0..3))
            .prop_map(|(origin, also)| Extras { origin, also })
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same_and_the_messages_follow(extras in extras()) {
            let mut payload = extras.encode();
            if extras == Extras::default() {
                prop_assert!(payload.is_empty());
                return Ok(());
            }
            payload.extend(b"messages");
            let (bytes, messages) = split(&payload).expect("is whole");
            prop_assert_eq!(Extras::decode(bytes), Some(extras));
            prop_assert_eq!(messages, b"messages");
            prop_assert_eq!(front_len(&payload), Some(payload.len() - messages.len()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = split(&bytes).map(|(extras, _)| Extras::decode(extras));
        }
    }
}
