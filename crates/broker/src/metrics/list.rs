//! The one list of metrics: names, types, labels, help, and where each value comes from.
//!
//! The scrape, the reference page and the golden file are made from it. Names that the existing
//! product has keep their name, type and labels.
//!
//! Law: a metric that is not in this list is not shown, and one that is has a value from the first
//! scrape on, apart from the parts of a counter that name an error which has not happened.

use super::figures::{Figures, Sample};
use super::numbers::Classes;
use danube_core::FaultKind;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug)]
pub(super) struct Metric {
    /// As Prometheus stores it; counters end with `_total`.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) source: Source,
}

/// Labels of a part, beside those that name the topic or subscription.
pub(super) type PartLabels = &'static [(&'static str, &'static str)];

/// Where the values of a metric come from. Numbers are places in a block.
#[derive(Debug)]
pub(super) enum Source {
    /// Calls answered, which are counted by themselves.
    Calls,
    /// The broker as a whole.
    Broker(fn(&Figures) -> Vec<Sample>),
    /// One counter of all topics together.
    Sum(TopicCounter),
    TopicCounters(&'static [(PartLabels, TopicCounter)]),
    TopicGauge(TopicGauge),
    TopicHistogram(TopicHistogram),
    SubscriptionCounters(&'static [(PartLabels, SubscriptionCounter)]),
    SubscriptionGauge(SubscriptionGauge),
    SubscriptionHistogram(SubscriptionHistogram),
}

/// Numbers a closed list of places in a block.
macro_rules! places {
    ($(#[$doc:meta])* $name:ident { $($place:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name { $($place,)+ }

        impl $name {
            pub(super) const LEN: usize = [$($name::$place,)+].len();
        }
    };
}

places! {
    /// What is counted of a topic.
    TopicCounter {
        MessagesIn,
        BytesIn,
        Sent,
        RefusedRetry,
        RefusedExhausted,
        RefusedInvalid,
        RefusedNotFound,
        RefusedAlreadyExists,
        RefusedPrecondition,
        RefusedUnauthenticated,
        RefusedDenied,
        RefusedUnsupported,
        RefusedInternal,
        Appends,
        AppendBytes,
        CheckedWarn,
        CheckedEnforce,
        MissingSchemaId,
        SubjectMismatch,
        UnknownVersion,
        PayloadInvalid,
        UnknownSubject,
        SchemaUnusable,
        HeartbeatPolls,
        NotifierPolls,
    }
}
places! {
    /// How a topic stands.
    TopicGauge { Producers, Consumers, Subscriptions, DeadLetters, }
}
places! {
    /// What is measured of a topic's publishes.
    TopicHistogram { SendLatency, MessageSize, }
}
places! {
    /// What is counted of a subscription.
    SubscriptionCounter {
        MessagesOut,
        BytesOut,
        Nacks,
        Redeliveries,
        AckTimeouts,
        Exhausted,
        DeadLetters,
        Dropped,
        Unmatched,
        Stalls,
        Gaps,
        GapMessages,
        Extensions,
    }
}
places! {
    /// How a subscription stands.
    SubscriptionGauge { ActiveConsumers, Lag, InFlight, PendingRedelivery, TerminalBlocked, OldestAt, }
}
places! {
    /// What is measured of a subscription's deliveries.
    SubscriptionHistogram { PublishToDeliver, }
}

impl TopicCounter {
    /// Publishes that were refused with a fault of `kind`.
    pub(super) fn refused(kind: FaultKind) -> TopicCounter {
        match kind {
            FaultKind::Retry => TopicCounter::RefusedRetry,
            FaultKind::Exhausted => TopicCounter::RefusedExhausted,
            FaultKind::Invalid => TopicCounter::RefusedInvalid,
            FaultKind::NotFound => TopicCounter::RefusedNotFound,
            FaultKind::AlreadyExists => TopicCounter::RefusedAlreadyExists,
            FaultKind::Precondition => TopicCounter::RefusedPrecondition,
            FaultKind::Unauthenticated => TopicCounter::RefusedUnauthenticated,
            FaultKind::Denied => TopicCounter::RefusedDenied,
            FaultKind::Unsupported => TopicCounter::RefusedUnsupported,
            FaultKind::Internal => TopicCounter::RefusedInternal,
        }
    }
}

/// Latencies are counted in microseconds and shown in milliseconds.
pub(super) static SEND_LATENCY: Classes = Classes {
    bounds: &[
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
        5_000_000,
    ],
    per_shown: 1_000.0,
};
pub(super) static MESSAGE_SIZE: Classes = Classes {
    bounds: &[64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
    per_shown: 1.0,
};
/// Message times are whole milliseconds, shown in seconds.
pub(super) static PUBLISH_TO_DELIVER: Classes = Classes {
    bounds: &[1, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 30_000, 300_000, 3_600_000],
    per_shown: 1_000.0,
};

/// The numbers of a topic's histograms, by place.
pub(super) static TOPIC_CLASSES: [&Classes; TopicHistogram::LEN] = [&SEND_LATENCY, &MESSAGE_SIZE];
/// The same of a subscription.
pub(super) static SUBSCRIPTION_CLASSES: [&Classes; SubscriptionHistogram::LEN] =
    [&PUBLISH_TO_DELIVER];

const PLAIN: PartLabels = &[];

macro_rules! metric {
    ($kind:ident $name:literal [$($label:literal),*] $help:literal $source:expr) => {
        Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
            source: $source,
        }
    };
}

/// A refused publish, by the code that its producer got.
macro_rules! refused {
    ($($code:literal $counter:ident,)+) => {
        &[
            (&[("result", "ok"), ("error_code", "")], TopicCounter::Sent),
            $((&[("result", "error"), ("error_code", $code)], TopicCounter::$counter),)+
        ]
    };
}

use Source::{Broker, Calls, Sum};

/// All metrics, in the order in which they are shown.
pub(super) static METRICS: &[Metric] = &[
    // The broker.
    metric!(Gauge "danube_build_info" ["version"] "1; the version is a label" Broker(Figures::build)),
    metric!(Counter "danube_broker_rpc_total" ["service", "method", "result"] "Calls answered; streams count when they open" Calls),
    metric!(Gauge "danube_broker_topics_owned" [] "Topics and topic partitions that this broker is there for, loaded or not" Broker(Figures::topics_owned)),
    metric!(Gauge "danube_broker_topics_loaded" [] "Those that somebody has used since the start" Broker(Figures::topics_loaded)),
    metric!(Counter "danube_broker_assignments_total" ["broker_id", "action"] "Topics taken into service (assign) and out of it (unassign) by this broker" Broker(Figures::assignments)),
    metric!(Counter "danube_dispatcher_heartbeat_polls_total" [] "Turns of topics that a timer caused" Sum(TopicCounter::HeartbeatPolls)),
    metric!(Counter "danube_dispatcher_notifier_polls_total" [] "Turns of topics that a request or a completion caused" Sum(TopicCounter::NotifierPolls)),
    // Topics.
    metric!(Counter "danube_topic_messages_in_total" ["topic"] "Messages stored, dead-letter copies among them" Source::TopicCounters(&[(PLAIN, TopicCounter::MessagesIn)])),
    metric!(Counter "danube_topic_bytes_in_total" ["topic"] "Bytes of these messages as they are stored" Source::TopicCounters(&[(PLAIN, TopicCounter::BytesIn)])),
    metric!(Histogram "danube_topic_message_size_bytes" ["topic"] "Size of these messages; those of one batch count with its mean size" Source::TopicHistogram(TopicHistogram::MessageSize)),
    metric!(Gauge "danube_topic_active_producers" ["topic"] "Producers attached" Source::TopicGauge(TopicGauge::Producers)),
    metric!(Gauge "danube_topic_active_consumers" ["topic"] "Consumers with an open stream" Source::TopicGauge(TopicGauge::Consumers)),
    metric!(Gauge "danube_topic_active_subscriptions" ["topic"] "Subscriptions" Source::TopicGauge(TopicGauge::Subscriptions)),
    metric!(Gauge "danube_topic_dead_letters" ["topic"] "Messages of a dead-letter topic that are kept and were not replayed; 0 for other topics" Source::TopicGauge(TopicGauge::DeadLetters)),
    metric!(Counter "danube_producer_send_total" ["topic", "result", "error_code"] "Messages that producers were answered for; error_code is the gRPC status" Source::TopicCounters(refused! {
        "UNAVAILABLE" RefusedRetry,
        "RESOURCE_EXHAUSTED" RefusedExhausted,
        "INVALID_ARGUMENT" RefusedInvalid,
        "NOT_FOUND" RefusedNotFound,
        "ALREADY_EXISTS" RefusedAlreadyExists,
        "FAILED_PRECONDITION" RefusedPrecondition,
        "UNAUTHENTICATED" RefusedUnauthenticated,
        "PERMISSION_DENIED" RefusedDenied,
        "UNIMPLEMENTED" RefusedUnsupported,
        "INTERNAL" RefusedInternal,
    })),
    metric!(Histogram "danube_producer_send_latency_ms" ["topic"] "From the arrival of a publish or batch to its answer, in milliseconds" Source::TopicHistogram(TopicHistogram::SendLatency)),
    metric!(Counter "danube_schema_validation_total" ["topic", "policy"] "Messages held against their topic's schema" Source::TopicCounters(&[
        (&[("policy", "warn")], TopicCounter::CheckedWarn),
        (&[("policy", "enforce")], TopicCounter::CheckedEnforce),
    ])),
    metric!(Counter "danube_schema_validation_failures_total" ["topic", "reason"] "Messages that do not fit their topic's schema" Source::TopicCounters(&[
        (&[("reason", "missing_schema_id")], TopicCounter::MissingSchemaId),
        (&[("reason", "subject_mismatch")], TopicCounter::SubjectMismatch),
        (&[("reason", "unknown_version")], TopicCounter::UnknownVersion),
        (&[("reason", "payload_invalid")], TopicCounter::PayloadInvalid),
        (&[("reason", "unknown_subject")], TopicCounter::UnknownSubject),
        (&[("reason", "schema_unusable")], TopicCounter::SchemaUnusable),
    ])),
    // Subscriptions.
    metric!(Counter "danube_consumer_messages_out_total" ["topic", "subscription"] "Messages handed to connections" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::MessagesOut)])),
    metric!(Counter "danube_consumer_bytes_out_total" ["topic", "subscription"] "Bytes handed to connections" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::BytesOut)])),
    metric!(Histogram "danube_subscription_publish_to_deliver_seconds" ["topic", "subscription"] "From the producer's publish time to the first delivery, in seconds; clocks of other machines count" Source::SubscriptionHistogram(SubscriptionHistogram::PublishToDeliver)),
    metric!(Gauge "danube_subscription_active_consumers" ["topic", "subscription"] "Consumers with an open stream" Source::SubscriptionGauge(SubscriptionGauge::ActiveConsumers)),
    metric!(Gauge "danube_subscription_lag_messages" ["topic", "subscription"] "Messages not finished" Source::SubscriptionGauge(SubscriptionGauge::Lag)),
    metric!(Gauge "danube_subscription_in_flight_messages" ["topic", "subscription"] "Messages handed out and not settled" Source::SubscriptionGauge(SubscriptionGauge::InFlight)),
    metric!(Gauge "danube_subscription_oldest_unacked_age_seconds" ["topic", "subscription"] "Age of the first unfinished message since its publish time, in seconds; 0 when there is none" Source::SubscriptionGauge(SubscriptionGauge::OldestAt)),
    metric!(Gauge "danube_subscription_pending_redelivery" ["topic", "subscription"] "Messages waiting for a retry" Source::SubscriptionGauge(SubscriptionGauge::PendingRedelivery)),
    metric!(Gauge "danube_subscription_terminal_blocked" ["topic", "subscription"] "Messages that failed for good and hold up what is behind them" Source::SubscriptionGauge(SubscriptionGauge::TerminalBlocked)),
    metric!(Counter "danube_subscription_nack_total" ["topic", "subscription"] "Negative acknowledgements" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Nacks)])),
    metric!(Counter "danube_subscription_redelivery_total" ["topic", "subscription"] "Deliveries after the first" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Redeliveries)])),
    metric!(Counter "danube_subscription_ack_timeout_total" ["topic", "subscription"] "Deliveries that were not settled in time" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::AckTimeouts)])),
    metric!(Counter "danube_subscription_lease_extension_total" ["topic", "subscription"] "Deliveries that a consumer asked more time for, and got it" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Extensions)])),
    metric!(Counter "danube_subscription_retry_exhausted_total" ["topic", "subscription"] "Messages that failed for good" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Exhausted)])),
    metric!(Counter "danube_subscription_dlq_total" ["topic", "subscription", "poison_policy"] "Messages moved to the dead-letter topic" Source::SubscriptionCounters(&[(&[("poison_policy", "dead_letter")], SubscriptionCounter::DeadLetters)])),
    metric!(Counter "danube_subscription_dropped_total" ["topic", "subscription"] "Messages dropped: a full queue, nobody there, a rate, or the policy drop" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Dropped)])),
    metric!(Counter "danube_subscription_unmatched_total" ["topic", "subscription"] "Messages skipped because nobody's key filter takes them" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Unmatched)])),
    metric!(Counter "danube_subscription_stall_total" ["topic", "subscription"] "Times that it was found standing still though it could move: a defect; the log says where" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Stalls)])),
    metric!(Counter "danube_subscription_gap_total" ["topic", "subscription"] "Places where the log has no messages that were not finished: damage, retention or a power loss took them" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::Gaps)])),
    metric!(Counter "danube_subscription_gap_messages_total" ["topic", "subscription"] "Messages missing at these places" Source::SubscriptionCounters(&[(PLAIN, SubscriptionCounter::GapMessages)])),
    // The log.
    metric!(Counter "danube_wal_append_total" ["topic"] "Messages written to the log" Source::TopicCounters(&[(PLAIN, TopicCounter::Appends)])),
    metric!(Counter "danube_wal_append_bytes_total" ["topic"] "Bytes of messages written to the log" Source::TopicCounters(&[(PLAIN, TopicCounter::AppendBytes)])),
    metric!(Counter "danube_wal_flush_total" [] "Group commits: one for all topics that wrote at the time" Broker(Figures::flushes)),
    metric!(Histogram "danube_wal_flush_latency_ms" [] "Time of a group commit, its sync included if one was asked for, in milliseconds" Broker(Figures::flush_latency)),
    metric!(Counter "danube_wal_sync_total" [] "Data syncs that a publish or an ack waited for" Broker(Figures::syncs)),
    metric!(Counter "danube_wal_written_bytes_total" [] "Bytes written to the journal: messages, progress and their frames" Broker(Figures::written_bytes)),
    metric!(Counter "danube_wal_frames_total" [] "Frames written to the journal" Broker(Figures::frames)),
    metric!(Counter "danube_wal_failures_total" [] "Group commits that failed" Broker(Figures::failures)),
    metric!(Counter "danube_wal_refused_total" [] "Appends refused because too many were waiting" Broker(Figures::refused)),
    metric!(Gauge "danube_wal_queued_bytes" [] "Bytes that wait to be written" Broker(Figures::queued_bytes)),
    metric!(Counter "danube_wal_file_rotate_total" ["reason"] "Journal files begun because the one before was full" Broker(Figures::rotations)),
    metric!(Counter "danube_wal_delete_total" ["reason"] "Files of the log removed because nobody needs their messages any more" Broker(Figures::deletions)),
    metric!(Counter "danube_wal_reads_total" ["mode"] "Reads of messages, answered from memory (cache) or from files (disk)" Broker(Figures::reads)),
    metric!(Gauge "danube_wal_files" [] "Journal files" Broker(Figures::files)),
    metric!(Gauge "danube_wal_segments" [] "Segments: files with older messages of one topic" Broker(Figures::segments)),
    metric!(Gauge "danube_wal_segment_bytes" [] "Bytes of segments" Broker(Figures::segment_bytes)),
    metric!(Gauge "danube_wal_cache_bytes" [] "Bytes of recent messages in memory" Broker(Figures::cache_bytes)),
    metric!(Counter "danube_wal_background_failures_total" [] "Passes of background work (segments, checkpoints, retention) that failed" Broker(Figures::tend_failures)),
    metric!(Gauge "danube_wal_damaged_topics" [] "Topics out of service because the log is damaged" Broker(Figures::damaged_topics)),
    // The catalog.
    metric!(Gauge "danube_leader_election_state" [] "1 when this broker leads the catalog, 0 otherwise" Broker(Figures::leads)),
    metric!(Gauge "danube_raft_term" [] "Term of the catalog's consensus" Broker(Figures::term)),
    metric!(Counter "danube_raft_elections_total" [] "Elections since this broker started; 1 is its own" Broker(Figures::elections)),
    metric!(Gauge "danube_raft_commit_index" [] "Entries of the catalog's log that this broker has" Broker(Figures::last_log_index)),
    metric!(Gauge "danube_raft_apply_lag_entries" [] "Entries of the catalog's log that this broker has and has not applied" Broker(Figures::apply_lag)),
    metric!(Gauge "danube_raft_snapshot_bytes" [] "Size of the catalog's latest snapshot; 0 while there is none" Broker(Figures::snapshot_bytes)),
    // The process.
    metric!(Counter "process_cpu_seconds_total" [] "Processor time of the broker, in seconds" Broker(Figures::cpu_seconds)),
    metric!(Gauge "process_resident_memory_bytes" [] "Memory of the broker" Broker(Figures::resident_bytes)),
    metric!(Gauge "process_open_fds" [] "Open files and connections" Broker(Figures::open_files)),
    metric!(Gauge "process_start_time_seconds" [] "When the broker started, in seconds since 1970" Broker(Figures::start_time)),
];
