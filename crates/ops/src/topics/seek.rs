//! `topics seek`: a subscription goes on from another place.

use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_core::Position;
use danube_wire::proto::control::SeekSubscriptionRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Put a subscription's cursor; what was delivered before and is not acknowledged is void
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Seek {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
    /// Where to: earliest, latest, offset:N or time:RFC3339
    #[arg(long, value_name = "POSITION")]
    to: Position,
    /// Print what would be done and do nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    /// Where the position is not kept any more or not there yet, take the nearest that is
    #[arg(long)]
    #[serde(default)]
    clamp: bool,
}

/// What became of each partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sought {
    subscription: String,
    dry_run: bool,
    partitions: Vec<Partition>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Partition {
    topic: String,
    old_offset: u64,
    new_offset: u64,
    /// Why it was not moved.
    error: Option<String>,
}

impl Operation for Seek {
    type Output = Sought;
    const SPEC: Spec = Spec {
        path: ("topics", "seek"),
        permission: Permission::ManageTopic,
        effect: Effect::Destructive,
        example: "/default/agent-jobs -s worker-pool --to time:2026-11-30T12:00:00Z --dry-run",
    };

    async fn run(self, session: &Session) -> Result<Sought, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let request = SeekSubscriptionRequest {
            name: topic.to_string(),
            subscription: subscription.to_string(),
            position: self.to.to_string(),
            dry_run: self.dry_run,
            clamp: self.clamp,
        };
        let mut control = session.control().await?;
        let doing = format!("subscription `{subscription}` of topic `{topic}` cannot seek");
        let answer = call(control.seek_subscription(request))
            .await
            .map_err(|status| channel::error(&doing, &status))?;
        let partitions = answer.partitions.into_iter().map(|wire| Partition {
            topic: wire.topic,
            old_offset: wire.old_offset,
            new_offset: wire.new_offset,
            error: wire.error,
        });
        let sought = Sought {
            subscription: subscription.to_string(),
            dry_run: self.dry_run,
            partitions: partitions.collect(),
        };
        match sought.failed().first() {
            Some(first) if sought.failed().len() == sought.partitions.len() => {
                Err(OpError::refused(format!("{doing}: {first}")))
            }
            _ => Ok(sought),
        }
    }
}

impl Sought {
    fn failed(&self) -> Vec<&str> {
        self.partitions.iter().filter_map(|partition| partition.error.as_deref()).collect()
    }
}

impl Output for Sought {
    fn text(&self) -> String {
        let new = if self.dry_run { "WOULD BE" } else { "NEW OFFSET" };
        let mut table = Table::new(&["SUBSCRIPTION", "TOPIC", "OLD OFFSET", new]);
        for partition in &self.partitions {
            table.row([
                self.subscription.clone(),
                partition.topic.clone(),
                partition.old_offset.to_string(),
                match &partition.error {
                    None => partition.new_offset.to_string(),
                    Some(_) => "not moved".to_owned(),
                },
            ]);
        }
        table.render()
    }

    fn partial(&self) -> Option<String> {
        let failed = self.failed();
        let first = failed.first()?;
        let count = self.partitions.len();
        Some(format!("{} of {count} partitions were not moved: {first}", failed.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_was_not_moved_is_said() {
        let partition = |index: u64, error: Option<&str>| Partition {
            topic: format!("/default/t-part-{index}"),
            old_offset: 7,
            new_offset: 80 + index,
            error: error.map(str::to_owned),
        };
        let mut sought = Sought {
            subscription: "workers".into(),
            dry_run: false,
            partitions: vec![partition(0, None), partition(1, Some("it is being unloaded"))],
        };
        expect![[r#"
            SUBSCRIPTION  TOPIC              OLD OFFSET  NEW OFFSET
            workers       /default/t-part-0  7           80
            workers       /default/t-part-1  7           not moved"#]]
        .assert_eq(&sought.text());
        let partial = sought.partial();
        assert_eq!(
            partial.as_deref(),
            Some("1 of 2 partitions were not moved: it is being unloaded")
        );
        sought.partitions.pop();
        assert_eq!(sought.partial(), None);
    }
}
