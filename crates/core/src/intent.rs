//! What a topic is for, and the settings that follow from it.
//!
//! An [`Intent`] expands into [`StreamSettings`], the document stored with the topic, so that no
//! client's builder flags and no broker's configuration can make two environments differ.
//! The four profiles, their aliases and the fields of the document are those of the product's
//! seed, "Stream Intents & Workload Profiles".

use crate::fault::Fault;
use crate::name::TopicName;
use crate::policy::FailurePolicy;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How messages of a topic reach its subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Delivery {
    /// In memory, to whoever listens now; nothing is stored or repeated.
    NonReliable,
    /// Through the log, at least once, with acknowledgements.
    Reliable,
}

impl Delivery {
    /// The stored spelling: `NonReliable` or `Reliable`.
    pub fn as_str(self) -> &'static str {
        match self {
            Delivery::NonReliable => "NonReliable",
            Delivery::Reliable => "Reliable",
        }
    }

    /// Parses either spelling; case does not matter, and `-` and `_` are skipped.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) for any other word.
    pub fn parse(text: &str) -> Result<Delivery, Fault> {
        match text.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "nonreliable" => Ok(Delivery::NonReliable),
            "reliable" => Ok(Delivery::Reliable),
            _ => Err(Fault::invalid(format!(
                "unknown delivery `{}`; known are NonReliable and Reliable",
                text.escape_debug()
            ))),
        }
    }
}

/// What an acknowledged publish of a topic survives; each survives what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WalSyncMode {
    /// Nothing promised: acknowledged once accepted, written soon after.
    Async,
    /// A crash or kill of the process: acknowledged once the kernel has the bytes.
    OsCacheFlush,
    /// A power loss: acknowledged once the device has the bytes (`fdatasync`, shared by a batch).
    FsyncBatch,
}

impl WalSyncMode {
    /// The stored spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            WalSyncMode::Async => "async",
            WalSyncMode::OsCacheFlush => "os_cache_flush",
            WalSyncMode::FsyncBatch => "fsync_batch",
        }
    }

    /// What something that was answered in this mode survives, as the end of a sentence.
    pub fn survives(self) -> &'static str {
        match self {
            WalSyncMode::Async => {
                "nothing for certain: it is answered once the broker has taken it, and written a \
                 moment later"
            }
            WalSyncMode::OsCacheFlush => {
                "a crash or kill of the broker: it is answered once the kernel has it; a power \
                 loss or kernel crash may lose the last moments"
            }
            WalSyncMode::FsyncBatch => "a power loss: it is answered once the device has it",
        }
    }

    /// Parses a stored spelling; case does not matter and `-` equals `_`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), listing the words.
    pub fn parse(text: &str) -> Result<WalSyncMode, Fault> {
        match text.to_ascii_lowercase().replace('-', "_").as_str() {
            "async" => Ok(WalSyncMode::Async),
            "os_cache_flush" => Ok(WalSyncMode::OsCacheFlush),
            "fsync_batch" => Ok(WalSyncMode::FsyncBatch),
            _ => Err(Fault::invalid(format!(
                "unknown WAL sync mode `{}`; known are async, os_cache_flush, fsync_batch",
                text.escape_debug()
            ))),
        }
    }
}

/// What becomes of a message that failed too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoisonPolicy {
    /// Nothing can fail: the topic is `NonReliable`.
    None,
    /// A copy goes to the dead-letter topic, then the cursor moves on.
    DeadLetter,
    /// Delivery halts on the message (KeyShared: on its key) until somebody settles it.
    Block,
    /// The message counts as done.
    Drop,
}

impl PoisonPolicy {
    /// The stored spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            PoisonPolicy::None => "none",
            PoisonPolicy::DeadLetter => "dead_letter",
            PoisonPolicy::Block => "block",
            PoisonPolicy::Drop => "drop",
        }
    }
}

/// The level an acknowledgement of a publish waits for. `wal_sync_mode` is its local half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// Memory only.
    None,
    /// The local journal, as `wal_sync_mode` says.
    Wal,
}

/// What a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Live metrics and heartbeats: only now matters.
    Realtime,
    /// An event bus: every subscription gets every event, at least once.
    EventStream,
    /// A durable work queue: each task is done, or lands in the dead letters.
    TaskQueue,
    /// A ledger: nothing is ever skipped.
    AuditLog,
}

/// Every name that can be given for an intent: the canonical one first, then its aliases.
pub const INTENT_NAMES: [(Intent, &str, &[&str]); 4] = [
    (Intent::Realtime, "realtime", &["telemetry_firehose", "firehose", "telemetry", "ephemeral"]),
    (
        Intent::EventStream,
        "event_stream",
        &["agent_event_mesh", "event_mesh", "events", "lakehouse_feed", "lakehouse", "custom"],
    ),
    (Intent::TaskQueue, "task_queue", &["agent_task_queue", "tasks", "work_queue"]),
    (Intent::AuditLog, "audit_log", &["tool_invocation_log", "tool_log", "audit", "state_log"]),
];

impl Intent {
    /// Parses a canonical name or an alias; case does not matter and `-` equals `_`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), listing every name that would have been taken.
    pub fn parse(text: &str) -> Result<Intent, Fault> {
        let wanted = text.to_ascii_lowercase().replace('-', "_");
        INTENT_NAMES
            .iter()
            .find(|(_, name, aliases)| *name == wanted || aliases.contains(&wanted.as_str()))
            .map(|(intent, ..)| *intent)
            .ok_or_else(|| {
                let names: Vec<String> = INTENT_NAMES
                    .iter()
                    .map(|(_, name, aliases)| format!("{name} ({})", aliases.join(", ")))
                    .collect();
                Fault::invalid(format!(
                    "unknown intent `{}`; known are {}",
                    text.escape_debug(),
                    names.join("; ")
                ))
            })
    }

    /// The canonical name, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Intent::Realtime => "realtime",
            Intent::EventStream => "event_stream",
            Intent::TaskQueue => "task_queue",
            Intent::AuditLog => "audit_log",
        }
    }

    /// Expands the profile into the settings stored with `topic`. A dead-letter topic gets none of
    /// its own: what cannot be handled there blocks, and waits for a person.
    pub fn expand(self, topic: &TopicName) -> StreamSettings {
        use PoisonPolicy::{Block, DeadLetter};
        use WalSyncMode::{Async, FsyncBatch, OsCacheFlush};
        let (delivery, wal_sync_mode, max_retries, backoff_ms, poison_policy) = match self {
            Intent::Realtime => (Delivery::NonReliable, Async, 0, 0, PoisonPolicy::None),
            Intent::EventStream => (Delivery::Reliable, OsCacheFlush, 3, 500, DeadLetter),
            Intent::TaskQueue => (Delivery::Reliable, FsyncBatch, 5, 1000, DeadLetter),
            Intent::AuditLog => (Delivery::Reliable, FsyncBatch, 10, 500, Block),
        };
        let poison_policy = match poison_policy {
            DeadLetter if topic.is_dead_letter() => Block,
            other => other,
        };
        StreamSettings {
            intent: self,
            delivery,
            wal_sync_mode,
            max_retries,
            backoff_ms,
            poison_policy,
            dlq_suffix: (poison_policy == DeadLetter).then(|| "-dlq".to_owned()),
            persistence: match delivery {
                Delivery::NonReliable => Persistence::None,
                Delivery::Reliable => Persistence::Wal,
            },
        }
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The document at `/topics/{ns}/{topic}/intent`: an intent, expanded. The topic's broker reads
/// it at every load and has no say of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSettings {
    /// The canonical intent.
    pub intent: Intent,
    /// How messages travel.
    pub delivery: Delivery,
    /// What an acknowledged publish survives.
    pub wal_sync_mode: WalSyncMode,
    /// Re-deliveries before a message counts as poison.
    pub max_retries: u32,
    /// First delay before a re-delivery, in milliseconds.
    pub backoff_ms: u64,
    /// What becomes of poison.
    pub poison_policy: PoisonPolicy,
    /// What the dead-letter topic's name ends with, where there is one.
    pub dlq_suffix: Option<String>,
    /// The level an acknowledgement waits for.
    pub persistence: Persistence,
}

impl StreamSettings {
    /// Where the dead letters of `topic` go under these settings.
    pub fn dead_letter_topic(&self, topic: &TopicName) -> Option<TopicName> {
        self.dlq_suffix.as_ref().and_then(|_| topic.dead_letter().ok())
    }

    /// The failure policy that a new subscription of `topic` inherits; `None` where nothing can
    /// fail because delivery is `NonReliable`.
    pub fn failure_policy(&self, topic: &TopicName) -> Option<FailurePolicy> {
        (self.delivery == Delivery::Reliable).then(|| FailurePolicy {
            max_redelivery_count: self.max_retries,
            base_redelivery_delay_ms: self.backoff_ms,
            poison_policy: self.poison_policy,
            dead_letter_topic: self.dead_letter_topic(topic),
            ..FailurePolicy::default()
        })
    }

    /// The one-line summary of `describe`, with where dead letters go, for example `task_queue (delivery=reliable, …)`.
    pub fn summary(&self, dead_letters: Option<&TopicName>) -> String {
        let delivery = self.delivery.as_str().to_ascii_lowercase();
        let delivery = if delivery == "nonreliable" { "non_reliable" } else { &delivery };
        let mut line = format!(
            "{} (delivery={delivery}, wal_sync={}, max_retries={}, backoff_ms={}, poison_policy={}",
            self.intent,
            self.wal_sync_mode.as_str(),
            self.max_retries,
            self.backoff_ms,
            self.poison_policy.as_str(),
        );
        if let Some(dead_letter) = dead_letters {
            line.push_str(&format!(", dlq={dead_letter}"));
        }
        line.push(')');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn topic(name: &str) -> TopicName {
        TopicName::parse(name).expect("well formed")
    }

    #[test]
    fn all_twenty_one_names_are_taken_in_any_spelling() {
        let mut count = 0;
        for (intent, name, aliases) in INTENT_NAMES {
            assert_eq!(intent.as_str(), name);
            for alias in std::iter::once(&name).chain(aliases) {
                count += 1;
                for spelling in [(*alias).to_owned(), alias.to_uppercase(), alias.replace('_', "-")]
                {
                    assert_eq!(Intent::parse(&spelling), Ok(intent), "{spelling}");
                }
            }
        }
        assert_eq!(count, 21);
    }

    #[test]
    fn an_unknown_intent_lists_the_known_ones() {
        for text in ["", "queue", "task queue", "tâsks"] {
            let fault = Intent::parse(text).expect_err(text);
            assert!(fault.message.contains("task_queue (agent_task_queue, tasks, work_queue)"));
        }
    }

    #[test]
    fn profiles_are_those_of_the_seed() {
        let documents: Vec<String> = INTENT_NAMES
            .iter()
            .map(|(intent, ..)| {
                serde_json::to_string(&intent.expand(&topic("/default/t"))).expect("plain data")
            })
            .collect();
        expect![[r#"
            {"intent":"realtime","delivery":"NonReliable","wal_sync_mode":"async","max_retries":0,"backoff_ms":0,"poison_policy":"none","dlq_suffix":null,"persistence":"none"}
            {"intent":"event_stream","delivery":"Reliable","wal_sync_mode":"os_cache_flush","max_retries":3,"backoff_ms":500,"poison_policy":"dead_letter","dlq_suffix":"-dlq","persistence":"wal"}
            {"intent":"task_queue","delivery":"Reliable","wal_sync_mode":"fsync_batch","max_retries":5,"backoff_ms":1000,"poison_policy":"dead_letter","dlq_suffix":"-dlq","persistence":"wal"}
            {"intent":"audit_log","delivery":"Reliable","wal_sync_mode":"fsync_batch","max_retries":10,"backoff_ms":500,"poison_policy":"block","dlq_suffix":null,"persistence":"wal"}"#]]
        .assert_eq(&documents.join("\n"));
    }

    #[test]
    fn the_summary_is_the_line_of_the_seed() {
        let jobs = topic("/default/agent-jobs");
        expect!["task_queue (delivery=reliable, wal_sync=fsync_batch, max_retries=5, backoff_ms=1000, poison_policy=dead_letter, dlq=/default/agent-jobs-dlq)"]
            .assert_eq(&Intent::TaskQueue.expand(&jobs).summary(jobs.dead_letter().ok().as_ref()));
        expect!["realtime (delivery=non_reliable, wal_sync=async, max_retries=0, backoff_ms=0, poison_policy=none)"]
            .assert_eq(&Intent::Realtime.expand(&jobs).summary(None));
        // All partitions share the dead letters of their base.
        let partition = topic("/default/agent-jobs-part-2");
        assert!(
            Intent::TaskQueue
                .expand(&partition)
                .summary(
                    Intent::TaskQueue.expand(&partition).dead_letter_topic(&partition).as_ref()
                )
                .ends_with("dlq=/default/agent-jobs-dlq)")
        );
    }

    #[test]
    fn dead_letters_have_no_dead_letters() {
        let settings = Intent::TaskQueue.expand(&topic("/default/jobs-dlq"));
        assert_eq!(settings.poison_policy, PoisonPolicy::Block);
        assert_eq!(settings.dlq_suffix, None);
    }

    #[test]
    fn a_subscription_inherits_from_the_intent() {
        let jobs = topic("/default/jobs-part-1");
        let policy = Intent::TaskQueue.expand(&jobs).failure_policy(&jobs).expect("reliable");
        expect![[r#"{"max_redelivery_count":5,"ack_timeout_ms":30000,"base_redelivery_delay_ms":1000,"max_redelivery_delay_ms":60000,"backoff_strategy":"exponential","dead_letter_topic":"/default/jobs-dlq","poison_policy":"dead_letter"}"#]]
            .assert_eq(&serde_json::to_string(&policy).expect("plain data"));
        assert_eq!(Intent::Realtime.expand(&jobs).failure_policy(&jobs), None);
    }
}
