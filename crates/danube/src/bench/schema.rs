//! What `enforce` costs a publish: two topics of one broker, one of them with a schema, by turns.
//!
//! Rounds alternate, so that whatever else the machine does falls on both; the median of the ratios
//! is the answer. Law: the messages of both topics differ in nothing but schema id and version.

use super::drive::drive;
use super::load::{Load, Pace, Subject};
use super::outlet::{Outlet, outlets, outlets_of};
use super::report::Progress;
use crate::channel::{self, call};
use crate::compat::{self, SchemaTag};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_wire::proto::danube_schema as proto;
use proto::schema_registry_client::SchemaRegistryClient;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Turns of each topic.
const ROUNDS: usize = 10;

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(subject: &Subject, seconds: u64, load: &Load) -> Result<(), Failure> {
    let url = &subject.service_addr;
    let name = format!("bench-{}", compat::unix_ms());
    let topic = |kind: &str| format!("/default/{name}-{kind}");
    let shared = |outlets: Vec<Outlet>| outlets.into_iter().map(Arc::new).collect::<Vec<_>>();
    let plain = shared(outlets(subject, &topic("plain"), load).await?);
    // Its first producers make the topic.
    drop(outlets(subject, &topic("enforced"), load).await?);
    let tag = enforce(url, &name, &topic("enforced")).await?;
    let enforced = shared(outlets_of(subject, &topic("enforced"), load, Some(&tag)).await?);

    let progress = Progress::new("publishing, by turns");
    let mut ratios = Vec::with_capacity(ROUNDS);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for each in [&plain, &enforced] {
        drive(each, load, Pace::of_count(load.warm_up), &progress).await?;
    }
    for round in 0..ROUNDS {
        // Which of the two goes first changes too.
        let (first, second) = match round % 2 {
            0 => (&plain, &enforced),
            _ => (&enforced, &plain),
        };
        let (first, second) = (
            rate(first, load, seconds, &progress).await?,
            rate(second, load, seconds, &progress).await?,
        );
        let (plain, enforced) = if round % 2 == 0 { (first, second) } else { (second, first) };
        ratios.push(enforced / plain);
        without.push(plain);
        with.push(enforced);
    }
    progress.finish();
    let (without, with, ratio) = (median(without), median(with), median(ratios));
    match load.output {
        Format::Text => output::line(format!(
            "no schema  {without:.0} messages/s\nenforce    {with:.0} messages/s\nenforce \
             reaches {:.1} % (median of {ROUNDS} rounds of {seconds} s each)",
            ratio * 100.0
        )),
        Format::Json => output::json(&json!({
            "no_schema": without, "enforce": with, "ratio": ratio, "rounds": ROUNDS,
        })),
    }
}

async fn rate(
    outlets: &[Arc<Outlet>],
    load: &Load,
    seconds: u64,
    progress: &Progress,
) -> Result<f64, Failure> {
    let measured =
        drive(outlets, load, Pace::for_time(Duration::from_secs(seconds)), progress).await?;
    Ok(measured.latencies.count() as f64 / measured.elapsed.as_secs_f64())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    figures.get(middle).copied().unwrap_or_default()
}

/// Registers a schema and has the topic enforce it; answers what messages carry.
async fn enforce(url: &str, subject: &str, topic: &str) -> Result<SchemaTag, Failure> {
    let mut registry = SchemaRegistryClient::new(channel::connect(url).await?);
    let doing = format!("topic `{topic}` cannot enforce a schema");
    let request = proto::RegisterSchemaRequest {
        subject: subject.to_owned(),
        schema_type: "bytes".to_owned(),
        created_by: "danube-bench".to_owned(),
        ..Default::default()
    };
    let answer = call(registry.register_schema(request)).await;
    let answer = answer.map_err(|status| channel::failure(&doing, &status))?;
    let request = proto::ConfigureTopicSchemaRequest {
        topic_name: topic.to_owned(),
        schema_subject: subject.to_owned(),
        validation_policy: "enforce".to_owned(),
        enable_payload_validation: false,
    };
    let configured = call(registry.configure_topic_schema(request)).await;
    configured.map_err(|status| channel::failure(&doing, &status))?;
    let (schema_id, version) = (answer.schema_id, answer.version);
    Ok(SchemaTag { subject: subject.to_owned(), schema_id, version })
}
