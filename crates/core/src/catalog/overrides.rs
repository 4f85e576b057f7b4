//! What somebody set for one topic, beside its intent.
//!
//! Law: what is not set here is left to the intent, the namespace and the broker, in that order.

use crate::fault::Fault;
use crate::intent::WalSyncMode;
use crate::name::TopicName;
use crate::settings::{LIMITS, Limit, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Labels of one topic.
pub const LABELS_MAX: usize = 64;
/// Longest label, key or value, in bytes.
pub const TOPIC_LABEL_LEN_MAX: usize = 255;

/// The document at `/topics/{ns}/{topic}/policy`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicOverrides {
    /// What an acknowledged publish survives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_sync_mode: Option<WalSyncMode>,
    /// Age from which on messages may go, in milliseconds; 0 is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_time_ms: Option<u64>,
    /// Size above which the oldest messages may go, in bytes; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_bytes: Option<u64>,
    /// Where its dead letters go, instead of where the intent sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_topic: Option<TopicName>,
    /// Its limits.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// For people and programs; the broker does not read them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl TopicOverrides {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == TopicOverrides::default()
    }

    /// Takes over everything that `set` sets.
    pub fn merge(&mut self, set: &TopicOverrides) {
        self.wal_sync_mode = set.wal_sync_mode.or(self.wal_sync_mode);
        self.retention_time_ms = set.retention_time_ms.or(self.retention_time_ms);
        self.retention_bytes = set.retention_bytes.or(self.retention_bytes);
        if set.dead_letter_topic.is_some() {
            self.dead_letter_topic.clone_from(&set.dead_letter_topic);
        }
        for (limit, value) in set.limits.iter() {
            self.limits.set(limit, Some(value));
        }
        self.labels.extend(set.labels.iter().map(|(key, value)| (key.clone(), value.clone())));
    }

    /// Leaves a setting to the layers below: `wal_sync_mode`, `retention_time_ms`,
    /// `retention_bytes`, `dead_letter_topic`, a limit, or `labels.<key>`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), listing the names.
    pub fn clear(&mut self, name: &str) -> Result<(), Fault> {
        if let Some(label) = name.strip_prefix("labels.") {
            self.labels.remove(label);
            return Ok(());
        }
        match name.to_ascii_lowercase().replace('-', "_").as_str() {
            "wal_sync_mode" => self.wal_sync_mode = None,
            "retention_time_ms" => self.retention_time_ms = None,
            "retention_bytes" => self.retention_bytes = None,
            "dead_letter_topic" => self.dead_letter_topic = None,
            other => match Limit::parse(other) {
                Ok(limit) => self.limits.set(limit, None),
                Err(_) => {
                    return Err(Fault::invalid(format!(
                        "unknown setting `{}`; known are wal_sync_mode, retention_time_ms, \
                         retention_bytes, dead_letter_topic, labels.<key>, {}",
                        name.escape_debug(),
                        LIMITS.map(Limit::as_str).join(", ")
                    )));
                }
            },
        }
        Ok(())
    }

    /// Checks that they can work.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), naming the setting.
    pub fn check(&self) -> Result<(), Fault> {
        self.limits.check()?;
        if self.labels.len() > LABELS_MAX {
            return Err(Fault::invalid(format!(
                "{} labels; a topic can have {LABELS_MAX}",
                self.labels.len()
            )));
        }
        let long = self.labels.iter().flat_map(|(key, value)| [key, value]);
        match long.map(String::len).find(|len| *len > TOPIC_LABEL_LEN_MAX) {
            Some(len) => Err(Fault::invalid(format!(
                "a label has {len} bytes; at most {TOPIC_LABEL_LEN_MAX} are allowed"
            ))),
            None => Ok(()),
        }
    }
}
