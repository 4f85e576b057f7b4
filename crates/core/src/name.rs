//! Names of namespaces, topics, subscriptions, consumers and producers.
//!
//! A topic is `/namespace/topic`, exactly two parts. Each part has letters and digits of any
//! script, `_` and `-`, and at most 255 bytes, so a name can stand in a key, a log line or a path
//! and never escape it. Partition `i` of a topic is the topic `<name>-part-<i>`, and the dead
//! letters of a topic and of all its partitions are in `<name>-dlq`.
//!
//! Law: a value of these types is well formed; whatever comes from outside is parsed here, once.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Longest part of a name, in bytes.
pub const PART_LEN_MAX: usize = 255;
/// What joins a topic's name and a partition's number.
const PARTITION_INFIX: &str = "-part-";
/// What ends the name of a dead-letter topic.
const DEAD_LETTER_SUFFIX: &str = "-dlq";

fn check_part(what: &str, whole: &str, part: &str) -> Result<(), Fault> {
    if part.is_empty() {
        return Err(Fault::invalid(format!("{what} `{whole}` has an empty part")));
    }
    if part.len() > PART_LEN_MAX {
        return Err(Fault::invalid(format!(
            "{what} `{whole}` has a part of {} bytes; at most {PART_LEN_MAX} are allowed",
            part.len()
        )));
    }
    match part.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-'))) {
        None => Ok(()),
        Some(c) => Err(Fault::invalid(format!(
            "{what} `{}` contains {c:?}; allowed are letters, digits, `_` and `-`",
            whole.escape_debug()
        ))),
    }
}

/// A namespace, such as `default`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamespaceName(Arc<str>);

impl NamespaceName {
    /// Parses `default`; a leading slash is accepted and dropped.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) when the name is empty, too long, or has a character that is not allowed.
    pub fn parse(text: &str) -> Result<NamespaceName, Fault> {
        let bare = text.strip_prefix('/').unwrap_or(text);
        check_part("namespace", text, bare)?;
        Ok(NamespaceName(bare.into()))
    }

    /// The name, without a slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A topic or topic partition, such as `/default/orders` or `/default/orders-part-0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// Parses `/namespace/topic`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), saying the expected form and what is wrong with this one.
    pub fn parse(text: &str) -> Result<TopicName, Fault> {
        let parts: Vec<&str> = text.split('/').collect();
        let ["", namespace, topic] = parts[..] else {
            return Err(Fault::invalid(format!(
                "topic `{}` is not of the form `/namespace/topic`",
                text.escape_debug()
            )));
        };
        check_part("topic", text, namespace)?;
        check_part("topic", text, topic)?;
        Ok(TopicName(text.into()))
    }

    /// The whole name, `/namespace/topic`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole name, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    fn parts(&self) -> (&str, &str) {
        self.0[1..].split_once('/').expect("parsed as two parts")
    }

    /// The namespace the topic lives in.
    pub fn namespace(&self) -> NamespaceName {
        NamespaceName(self.parts().0.into())
    }

    /// The last part, without the namespace.
    pub fn topic(&self) -> &str {
        self.parts().1
    }

    /// The topic this is a partition of, and the partition's number; `None` for a plain topic.
    /// Only `-part-<digits>` at the very end counts, so `orders-part-x` and `orders-part-1-dlq`
    /// are plain topics.
    pub fn partition(&self) -> Option<(TopicName, u32)> {
        let (base, digits) = self.0.rsplit_once(PARTITION_INFIX)?;
        // `01` would be a second spelling of partition 1, and `+1` parses as a number.
        let canonical = digits == "0"
            || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
        let index = canonical.then(|| digits.parse().ok())??;
        let base = TopicName::parse(base).ok()?;
        Some((base, index))
    }

    /// The topic itself, or the topic this is a partition of.
    pub fn base(&self) -> TopicName {
        self.partition().map_or_else(|| self.clone(), |(base, _)| base)
    }

    /// Partition `index` of this topic.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) when the longer name no longer fits.
    pub fn with_partition(&self, index: u32) -> Result<TopicName, Fault> {
        TopicName::parse(&format!("{self}{PARTITION_INFIX}{index}"))
    }

    /// Whether this topic holds the dead letters of another.
    pub fn is_dead_letter(&self) -> bool {
        self.0.ends_with(DEAD_LETTER_SUFFIX)
    }

    /// Where the dead letters of this topic go: one for a topic and all its partitions.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) when the longer name no longer fits.
    pub fn dead_letter(&self) -> Result<TopicName, Fault> {
        TopicName::parse(&format!("{}{DEAD_LETTER_SUFFIX}", self.base()))
    }
}

fn check_label(what: &str, text: &str) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(Fault::invalid(format!("{what} name is empty")));
    }
    if text.len() > PART_LEN_MAX {
        return Err(Fault::invalid(format!(
            "{what} name has {} bytes; at most {PART_LEN_MAX} are allowed",
            text.len()
        )));
    }
    match text.chars().find(|c| c.is_control() || *c == '/') {
        None => Ok(()),
        Some(c) => Err(Fault::invalid(format!(
            "{what} name `{}` contains {c:?}; slashes and control characters are not allowed",
            text.escape_debug()
        ))),
    }
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes any text without slashes and control characters, 1 to 255 bytes.
            ///
            /// # Errors
            /// [`Invalid`](crate::FaultKind::Invalid), saying what is wrong.
            pub fn parse(text: &str) -> Result<$name, Fault> {
                check_label($what, text)?;
                Ok($name(text.into()))
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name, shared.
            pub fn shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }
        }

        impl_text!($name);
    };
}

macro_rules! impl_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Fault;

            fn try_from(text: String) -> Result<$name, Fault> {
                $name::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().into()
            }
        }
    };
}

impl_text!(NamespaceName);
impl_text!(TopicName);
label! {
    /// A subscription of a topic.
    SubscriptionName, "subscription"
}
label! {
    /// A consumer of a subscription. The same name again is the same consumer, come back.
    ConsumerName, "consumer"
}
label! {
    /// A producer of a topic. The same name again is the same producer, come back.
    ProducerName, "producer"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn well_formed_topics_are_taken() {
        for text in ["/default/orders", "/a/b", "/größe/пример_1-x", "/n/t-part-0", "/n/t-dlq"]
        {
            assert_eq!(TopicName::parse(text).expect(text).as_str(), text);
        }
        let longest = format!("/n/{}", "x".repeat(PART_LEN_MAX));
        assert!(TopicName::parse(&longest).is_ok());
    }

    #[test]
    fn malformed_topics_are_refused_with_a_reason() {
        let too_long = format!("/n/{}", "x".repeat(PART_LEN_MAX + 1));
        for (text, reason) in [
            ("", "is not of the form `/namespace/topic`"),
            ("orders", "is not of the form `/namespace/topic`"),
            ("default/orders", "is not of the form `/namespace/topic`"),
            ("/default", "is not of the form `/namespace/topic`"),
            ("/default/a/b", "is not of the form `/namespace/topic`"),
            ("/default/", "empty part"),
            ("//orders", "empty part"),
            ("/default/../etc", "is not of the form `/namespace/topic`"),
            ("/default/..", "contains '.'"),
            ("/default/a b", "contains ' '"),
            ("/default/a\0b", "contains '\\0'"),
            ("/default/a.b", "contains '.'"),
            (too_long.as_str(), "256 bytes"),
        ] {
            let fault = TopicName::parse(text).expect_err(text);
            assert!(fault.message.contains(reason), "{text:?}: {}", fault.message);
        }
    }

    #[test]
    fn only_canonical_digits_at_the_end_make_a_partition() {
        let partition = |text: &str| TopicName::parse(text).expect(text).partition();
        let (base, index) = partition("/default/orders-part-12").expect("a partition");
        assert_eq!((base.as_str(), index), ("/default/orders", 12));
        assert_eq!(partition("/default/orders-part-0").expect("a partition").1, 0);
        for plain in [
            "/default/orders",
            "/default/orders-part-",
            "/default/orders-part-x",
            "/default/orders-part-01",
            "/default/orders-part-99999999999",
            "/default/orders-part-1-dlq",
            "/default/-part-1x",
        ] {
            assert_eq!(partition(plain), None, "{plain}");
        }
    }

    #[test]
    fn one_dead_letter_topic_serves_all_partitions() {
        let dead_letter = |text: &str| {
            TopicName::parse(text).expect(text).dead_letter().expect("fits").to_string()
        };
        assert_eq!(dead_letter("/default/jobs"), "/default/jobs-dlq");
        assert_eq!(dead_letter("/default/jobs-part-2"), "/default/jobs-dlq");
        let longest = TopicName::parse(&format!("/n/{}", "x".repeat(255))).expect("fits");
        assert!(longest.dead_letter().is_err());
        assert!(longest.with_partition(0).is_err());
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_keeps_the_text(text in "\\PC*") {
            if let Ok(name) = TopicName::parse(&text) {
                prop_assert_eq!(name.as_str(), text.as_str());
                prop_assert_eq!(
                    TopicName::parse(&format!("/{}/{}", name.namespace(), name.topic())),
                    Ok(name)
                );
            }
        }

        #[test]
        fn a_partition_knows_its_base(index in any::<u32>()) {
            let base = TopicName::parse("/default/orders").expect("well formed");
            let partition = base.with_partition(index).expect("fits");
            prop_assert_eq!(partition.partition(), Some((base.clone(), index)));
            prop_assert_eq!(partition.base(), base);
        }
    }
}
