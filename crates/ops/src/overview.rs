//! `overview`: what the broker does, what needs attention first, and its topics with figures.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::{Table, one_line, time};
use danube_wire::proto::control::{self, OverviewRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Topics that are told unless somebody says how many.
const LIMIT_DEFAULT: u32 = 20;

/// Print what the broker does, what needs attention first, and its topics with their figures
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Overview {
    /// Only topics whose name has this in it
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    search: Option<String>,
    /// Only the topics of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    #[serde(default)]
    namespace: Option<String>,
    /// In which order: name, or a figure, the highest first [default: backlog]
    #[arg(long, value_name = "BY", value_parser = ["name", "backlog", "in", "out", "blocked", "consumers", "messages"])]
    #[serde(default)]
    sort: Option<String>,
    /// Pass over this many topics
    #[arg(long, value_name = "N")]
    #[serde(default)]
    skip: Option<u32>,
    /// Print this many topics at most [default: 20]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=500))]
    #[serde(default)]
    limit: Option<u32>,
}

/// A broker as it stands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Status {
    broker_id: String,
    version: String,
    /// In milliseconds since 1970.
    started_at: u64,
    now: u64,
    /// Topics, a partitioned one as one.
    topics: u64,
    total: Figures,
    /// The oldest message that somebody has yet to finish, among the topic partitions with the
    /// largest backlog.
    oldest: Option<Unfinished>,
    /// Most urgent first; at most 50.
    attention: Vec<Attention>,
    attention_total: u64,
    log: Log,
    /// How many topics were found.
    found: u64,
    rows: Vec<Row>,
}

/// At most about a second old.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Figures {
    in_per_s: f64,
    out_per_s: f64,
    backlog: u64,
    in_flight: u64,
    waiting: u64,
    blocked: u64,
    subscriptions: u64,
    consumers: u64,
    producers: u64,
    messages: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Unfinished {
    topic: String,
    subscription: String,
    offset: u64,
    /// By the producer's clock, in milliseconds since 1970.
    publish_time: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Attention {
    /// A word for programs, such as `key_blocked` or `dead_letters`.
    code: String,
    topic: String,
    subscription: Option<String>,
    why: String,
    /// Messages that wait because of it.
    backlog: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Log {
    files: u64,
    bytes: u64,
    cache_bytes: u64,
    /// Writes that failed since the start.
    failures: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    topic: String,
    /// 0 for a plain topic.
    partitions: u32,
    delivery: String,
    intent: Option<String>,
    wal_sync_mode: String,
    /// What an acknowledged publish survives.
    survives: String,
    figures: Figures,
}

impl Operation for Overview {
    type Output = Status;
    const SPEC: Spec = Spec {
        path: ("", "overview"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "--sort backlog -n 10",
    };

    async fn run(self, session: &Session) -> Result<Status, OpError> {
        let request = OverviewRequest {
            search: self.search.unwrap_or_default(),
            sort: self.sort.unwrap_or_else(|| "backlog".to_owned()),
            skip: self.skip.unwrap_or_default(),
            limit: self.limit.unwrap_or(LIMIT_DEFAULT),
            namespace: self.namespace.unwrap_or_default(),
        };
        let mut control = session.control().await?;
        let answer = call(control.overview(request)).await;
        let answer =
            answer.map_err(|status| channel::error("the broker cannot be looked over", &status))?;
        Ok(answer.into())
    }
}

impl From<control::OverviewResponse> for Status {
    fn from(wire: control::OverviewResponse) -> Status {
        Status {
            total: wire.total.map(Into::into).unwrap_or_default(),
            oldest: wire.oldest.map(|oldest| Unfinished {
                topic: oldest.topic,
                subscription: oldest.subscription,
                offset: oldest.offset,
                publish_time: oldest.publish_time,
            }),
            attention: wire.attention.into_iter().map(Into::into).collect(),
            rows: wire.rows.into_iter().map(Into::into).collect(),
            log: Log {
                files: wire.log_files,
                bytes: wire.log_bytes,
                cache_bytes: wire.cache_bytes,
                failures: wire.log_failures,
            },
            broker_id: wire.broker_id,
            version: wire.version,
            started_at: wire.started_at,
            now: wire.now,
            topics: wire.topics,
            attention_total: wire.attention_total,
            found: wire.found,
        }
    }
}

impl From<control::Attention> for Attention {
    fn from(wire: control::Attention) -> Attention {
        Attention {
            code: wire.code,
            topic: wire.topic,
            subscription: wire.subscription,
            why: wire.why,
            backlog: wire.backlog,
        }
    }
}

impl From<control::Figures> for Figures {
    fn from(wire: control::Figures) -> Figures {
        Figures {
            in_per_s: wire.in_per_s,
            out_per_s: wire.out_per_s,
            backlog: wire.backlog,
            in_flight: wire.in_flight,
            waiting: wire.waiting,
            blocked: wire.blocked,
            subscriptions: wire.subscriptions,
            consumers: wire.consumers,
            producers: wire.producers,
            messages: wire.messages,
        }
    }
}

impl From<control::TopicFigures> for Row {
    fn from(wire: control::TopicFigures) -> Row {
        let survives = match wire.delivery.as_str() {
            "Reliable" => danube_core::WalSyncMode::parse(&wire.wal_sync_mode)
                .map_or("", danube_core::WalSyncMode::survives),
            _ => "nothing: messages go to whoever listens, and none is kept",
        };
        Row {
            survives: survives.to_owned(),
            topic: wire.name,
            partitions: wire.partitions,
            delivery: wire.delivery,
            intent: wire.intent,
            wal_sync_mode: wire.wal_sync_mode,
            figures: wire.figures.map(Into::into).unwrap_or_default(),
        }
    }
}

impl Output for Status {
    fn text(&self) -> String {
        let total = &self.total;
        let mut text = format!(
            "Broker {} {}, up since {}\nTopics: {}  Subscriptions: {}  Consumers: {}\n\
             In: {:.1}/s  Out: {:.1}/s  Backlog: {}  In flight: {}  Waiting: {}  Blocked: {}",
            self.broker_id,
            self.version,
            time(self.started_at),
            self.topics,
            total.subscriptions,
            total.consumers,
            total.in_per_s,
            total.out_per_s,
            total.backlog,
            total.in_flight,
            total.waiting,
            total.blocked
        );
        if let Some(oldest) = &self.oldest {
            text += &format!(
                "\nOldest unfinished: offset {} of {} for {}, published {}",
                oldest.offset,
                oldest.topic,
                oldest.subscription,
                time(oldest.publish_time)
            );
        }
        match self.attention.is_empty() {
            true => text += "\n\nNothing needs attention.",
            false => text += "\n\nNeeds attention:",
        }
        for line in &self.attention {
            let of = line.subscription.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            text += &format!("\n  {}{of}: {}", line.topic, one_line(&line.why));
        }
        if self.rows.is_empty() {
            return text;
        }
        let mut table = Table::new(&[
            "TOPIC",
            "INTENT",
            "IN/S",
            "OUT/S",
            "BACKLOG",
            "IN FLIGHT",
            "BLOCKED",
            "CONSUMERS",
        ]);
        for row in &self.rows {
            let figures = &row.figures;
            table.row([
                row.topic.clone(),
                row.intent.clone().unwrap_or_else(|| "-".to_owned()),
                format!("{:.1}", figures.in_per_s),
                format!("{:.1}", figures.out_per_s),
                figures.backlog.to_string(),
                figures.in_flight.to_string(),
                figures.blocked.to_string(),
                figures.consumers.to_string(),
            ]);
        }
        text + "\n\n" + &table.render()
    }

    fn notes(&self) -> Vec<String> {
        let told = self.attention.len() as u64;
        let mut notes = Vec::new();
        if self.attention_total > told {
            notes.push(format!("{} more need attention", self.attention_total - told));
        }
        if self.found > self.rows.len() as u64 {
            let shown = self.rows.len();
            notes.push(format!("{shown} of {} topics; --skip and -n show others", self.found));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_needs_attention_stands_before_the_topics() {
        let figures = control::Figures {
            in_per_s: 12.25,
            backlog: 5,
            blocked: 1,
            subscriptions: 1,
            ..control::Figures::default()
        };
        let status = Status::from(control::OverviewResponse {
            broker_id: "1".into(),
            version: "0.1.0".into(),
            started_at: 1_796_040_000_250,
            total: Some(figures),
            topics: 2,
            attention: vec![control::Attention {
                code: "key_blocked".into(),
                topic: "/default/orders".into(),
                subscription: Some("billing".into()),
                why: "key `order-7` is blocked by offset 41\nfor 3.0 s".into(),
                backlog: 5,
            }],
            attention_total: 3,
            found: 2,
            rows: vec![control::TopicFigures {
                name: "/default/orders".into(),
                delivery: "Reliable".into(),
                wal_sync_mode: "fsync_batch".into(),
                intent: Some("audit_log".into()),
                figures: Some(figures),
                ..control::TopicFigures::default()
            }],
            ..control::OverviewResponse::default()
        });
        expect![[r#"
            Broker 1 0.1.0, up since 2026-11-30T12:00:00.250Z
            Topics: 2  Subscriptions: 1  Consumers: 0
            In: 12.2/s  Out: 0.0/s  Backlog: 5  In flight: 0  Waiting: 0  Blocked: 1

            Needs attention:
              /default/orders billing: key `order-7` is blocked by offset 41\nfor 3.0 s

            TOPIC            INTENT     IN/S  OUT/S  BACKLOG  IN FLIGHT  BLOCKED  CONSUMERS
            /default/orders  audit_log  12.2  0.0    5        0          1        0"#]]
        .assert_eq(&status.text());
        expect![[r#"
            2 more need attention
            1 of 2 topics; --skip and -n show others"#]]
        .assert_eq(&status.notes().join("\n"));
    }
}
