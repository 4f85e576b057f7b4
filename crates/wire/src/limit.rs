//! How large a message may be, so that whatever is accepted can also be delivered.
//!
//! All official clients refuse to receive more than 4 MiB, and take a message over that for a
//! broken stream: they open it again and get the same message again, for ever. So the broker
//! keeps room for what it adds itself and refuses the rest at publish.
//!
//! Law: an accepted message fits into every client, also as a dead letter with its whole history.

use crate::proto::danube::StreamMessage;
use crate::record;
use danube_core::{Fault, TopicName};

/// What an official client takes at most as one message, in bytes.
pub const DELIVERED_LEN_MAX: usize = 4 * 1024 * 1024;

/// Room kept for everything the broker adds to a message: where it is, and the attributes of a
/// dead letter.
pub const BROKER_FIELDS_LEN_MAX: usize = 64 * 1024;

/// Longest reason of a failure that is kept with a message, in bytes. Longer ones are cut.
pub const REASON_LEN_MAX: usize = 4 * 1024;

/// What a server should take at most as one request, in bytes: more than any message accepted, so
/// that one that is a little too large is refused with a sentence and not by the library.
pub const REQUEST_LEN_MAX: usize = 16 * 1024 * 1024;

/// The longest message accepted where `max_message_size` is configured, in bytes of its encoding.
pub fn message_len_max(max_message_size: u64) -> u64 {
    max_message_size.min((DELIVERED_LEN_MAX - BROKER_FIELDS_LEN_MAX) as u64)
}

/// The most that `message`, published as it is, can take on a delivery, in bytes.
pub fn delivered_len_max(message: &StreamMessage) -> usize {
    record::body_len(message) + BROKER_FIELDS_LEN_MAX
}

/// Checks that `message`, published to `topic`, can be delivered. What counts is its encoding
/// without `msg_id`, `subscription_name` and reserved attributes.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid), naming its length and both limits.
pub fn check_message_len(
    topic: &TopicName,
    message: &StreamMessage,
    max_message_size: u64,
) -> Result<(), Fault> {
    let (len, max) = (record::body_len(message) as u64, message_len_max(max_message_size));
    if len <= max {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "message of `{len}` bytes on topic `{topic}` is larger than {max}; the limit is the \
         smaller of max_message_size ({max_message_size}) and what every client can receive \
         ({}); split it, or publish a reference to it",
        DELIVERED_LEN_MAX - BROKER_FIELDS_LEN_MAX,
    )))
}

/// `reason`, cut to [`REASON_LEN_MAX`] between two characters.
pub fn cut_reason(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_LEN_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{Attempt, Delivery, Envelope};
    use crate::record::Record;
    use danube_core::{FaultKind, Offset, ProducerId, SubscriptionName};
    use expect_test::expect;

    fn of_payload(len: usize) -> StreamMessage {
        StreamMessage { payload: vec![7; len].into(), ..StreamMessage::default() }
    }

    #[test]
    fn the_smaller_limit_counts_and_both_are_named() {
        let topic = TopicName::parse("/default/t").expect("well formed");
        // Tag and length take 2 bytes here, and 5 there.
        assert_eq!(check_message_len(&topic, &of_payload(98), 100), Ok(()));
        assert_eq!(check_message_len(&topic, &of_payload(4_128_768 - 5), u64::MAX), Ok(()));
        let small = check_message_len(&topic, &of_payload(99), 100).expect_err("101 bytes");
        let large =
            check_message_len(&topic, &of_payload(4_128_764), 10_485_760).expect_err("1 more");
        assert_eq!((small.kind, large.kind), (FaultKind::Invalid, FaultKind::Invalid));
        expect![[r#"
            message of `101` bytes on topic `/default/t` is larger than 100; the limit is the smaller of max_message_size (100) and what every client can receive (4128768); split it, or publish a reference to it
            message of `4128769` bytes on topic `/default/t` is larger than 4128768; the limit is the smaller of max_message_size (10485760) and what every client can receive (4128768); split it, or publish a reference to it"#]]
        .assert_eq(&format!("{small}\n{large}"));
    }

    /// The longest names there can be, the longest reason, a very long address: still a delivery.
    #[test]
    fn the_largest_message_fits_every_client_also_as_a_dead_letter() {
        let name = "n".repeat(255);
        let topic = TopicName::parse(&format!("/{name}/{name}")).expect("well formed");
        let subscription = SubscriptionName::parse(&name).expect("well formed");
        let address = format!("http://{}", "a".repeat(2048));
        let mut message = of_payload(4_128_768 - 5);
        let max = delivered_len_max(&message);
        for (key, value) in [
            ("x-original-topic", topic.to_string()),
            ("x-original-subscription", name.clone()),
            ("x-original-topic-offset", u64::MAX.to_string()),
            ("x-original-producer-id", u64::MAX.to_string()),
            ("x-original-broker-addr", address.clone()),
            ("x-poison-policy", "dead_letter".to_owned()),
            ("x-delivery-attempt", u32::MAX.to_string()),
            ("x-failure-reason", "r".repeat(REASON_LEN_MAX)),
        ] {
            message.attributes.insert(key.to_owned(), value);
        }
        let record = record::encode_trusted(ProducerId(u64::MAX), &message);
        let envelope = Envelope::new(&topic, &address, &subscription);
        let delivery = Delivery::new(
            Record::parse(record).expect("our own"),
            Offset(u64::MAX),
            Attempt::ONLY,
            envelope.into(),
        );
        assert!(delivery.encoded_len() <= max && max <= DELIVERED_LEN_MAX);
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(cut_reason("short"), "short");
        let long = format!("{}ä", "r".repeat(REASON_LEN_MAX - 1));
        assert_eq!(cut_reason(&long).len(), REASON_LEN_MAX - 1);
    }
}
