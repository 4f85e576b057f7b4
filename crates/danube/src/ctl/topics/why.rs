//! `danube ctl topics why`: the first reason why a subscription does not move.

use super::description;
use crate::ctl::admin::{Admin, SubscriptionArgument};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_wire::proto::control::Subscription;
use serde_json::{Value, json};

/// Print why a subscription does not move
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subscription: SubscriptionArgument,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Prints one sentence per partition.
///
/// # Errors
/// That there is no such subscription, what the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let (topic, name) = arguments.subscription.names()?;
    let answer = description(&topic, admin).await?;
    let found = answer.subscriptions.into_iter().filter(|s| s.name == name.as_str());
    let found: Vec<Subscription> = found.collect();
    if found.is_empty() {
        return Err(Failure::refused(format!("topic `{topic}` has no subscription `{name}`"))
            .help(format!("see what it has: danube ctl topics subscriptions {topic}")));
    }
    match arguments.output {
        Format::Text => found
            .iter()
            .try_for_each(|found| output::line(format!("{}: {}", found.topic, reason(found)))),
        Format::Json => {
            let document = |found: &Subscription| json!({"topic": found.topic, "why": found.why});
            output::json(&found.iter().map(document).collect::<Value>())
        }
    }
}

fn reason(subscription: &Subscription) -> &str {
    match subscription.why.as_str() {
        "" => "it moves",
        why => why,
    }
}
