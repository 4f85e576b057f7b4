//! `danube produce`: publishes a text or a file to a topic, once or many times.
//!
//! Each acknowledged message is a line on stdout; the summary goes to stderr. Flags are those of
//! the product's earlier client tool, so that scripts go on working.

use crate::compat::{self, Cluster, ProducerSpec, SchemaTag};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::schema::{Codec, SchemaArguments};
use crate::wire::{self, Wire};
use bytes::Bytes;
use danube_core::TopicName;
use danube_sdk::SchemaChoice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// From this many messages on, a bar shows how far it is.
const PROGRESS_COUNT_MIN: u64 = 100;

/// Publish messages to a topic
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The broker's client address
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "DANUBE_SERVICE_ADDR",
        default_value = "http://127.0.0.1:6650"
    )]
    service_addr: String,
    /// The producer's name; the same name again is the same producer
    #[arg(short = 'n', long, value_name = "NAME", default_value = "test_producer")]
    producer_name: String,
    /// The topic, made if it does not exist
    #[arg(short, long, value_name = "TOPIC", default_value = "/default/test_topic")]
    topic: String,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    schema: SchemaArguments,
    /// Attributes, such as `source:app-1,priority:high`
    #[arg(short, long, value_name = "KEY:VALUE,…", value_parser = parse_attributes)]
    attributes: Option<BTreeMap<String, String>>,
    /// The routing key: messages of one key stay together and in order
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// How many partitions to publish to [default: those of the topic]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    partitions: Option<u32>,
    /// How often to publish it
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Pause between two messages, in milliseconds
    #[arg(short, long, value_name = "MS", default_value_t = 500)]
    interval: u64,
    /// Make the topic a reliable one if it does not exist: messages survive a crash
    #[arg(long)]
    reliable: bool,
    /// The protocol to speak
    #[arg(long, value_name = "WIRE", value_enum, default_value = "native")]
    wire: Wire,
}

/// What a message carries.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Content {
    /// The text to publish; JSON where an Avro or Protobuf schema encodes it
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// The file to publish, as it is; where a schema encodes, each line of it is a message in JSON
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// `k:v,k:v`; a value may contain colons.
fn parse_attributes(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    pairs
        .map(|pair| match pair.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(format!("`{pair}` is not of the form `key:value`")),
        })
        .collect()
}

/// Publishes, until all messages are acknowledged or one is refused.
///
/// # Errors
/// Why a message was refused; [`Exit::Partial`] when others were acknowledged before.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let topic = TopicName::parse(&arguments.topic)?;
    let content = arguments.content.payload()?;
    let codec = arguments.schema.resolve(&arguments.service_addr).await?;
    // All of it before the first is sent, so that a bad line leaves nothing behind.
    let payloads = match codec.as_ref().filter(|codec| codec.encodes()) {
        Some(codec) => encoded(codec, &content)?,
        None => vec![content],
    };
    let bytes: usize = payloads.iter().map(Bytes::len).sum();
    let messages: Vec<compat::Message> = payloads
        .into_iter()
        .map(|payload| compat::Message {
            payload,
            attributes: arguments.attributes.clone().unwrap_or_default(),
            key: arguments.key.clone(),
        })
        .collect();
    let total = arguments.count.saturating_mul(messages.len() as u64);
    let schema = codec.map(|codec| SchemaTag {
        subject: codec.schema().subject().to_owned(),
        schema_id: codec.schema().id(),
        version: codec.schema().version(),
    });
    let mut publisher = Publisher::open(&arguments, &topic, schema).await?;

    let started = Instant::now();
    let bar = progress_bar(total);
    let interval = Duration::from_millis(arguments.interval);
    let rounds = (0..arguments.count).flat_map(|_| &messages);
    for (sent, message) in (0..).zip(rounds) {
        if sent > 0 && !interval.is_zero() {
            tokio::time::sleep(interval).await;
        }
        let published = publisher.send(message).await.and_then(|line| {
            bar.inc(1);
            bar.suspend(|| output::line(line))
        });
        published.map_err(|failure| after(sent, total, failure))?;
    }
    bar.finish_and_clear();
    let partitions = match publisher.partition_count() {
        1 => String::new(),
        count => format!(" ({count} partitions)"),
    };
    eprintln!(
        "sent {} of {} to {topic}{partitions} in {:.1?}",
        plural(total, "message"),
        match messages.len() {
            1 => format!("{} each", plural(bytes as u64, "byte")),
            count => format!("{} each on average", plural((bytes / count.max(1)) as u64, "byte")),
        },
        started.elapsed()
    );
    publisher.close().await
}

/// A producer on either wire.
enum Publisher {
    Native { producer: danube_sdk::Producer, requests: u64 },
    Compatible(compat::Producer),
}

impl Publisher {
    async fn open(
        arguments: &Arguments,
        topic: &TopicName,
        schema: Option<SchemaTag>,
    ) -> Result<Publisher, Failure> {
        if arguments.wire == Wire::Compatible {
            let cluster = Cluster::connect(&arguments.service_addr).await?;
            let spec = ProducerSpec {
                name: arguments.producer_name.clone(),
                topic: topic.to_string(),
                partitions: arguments.partitions,
                reliable: arguments.reliable,
                schema,
            };
            return Ok(Publisher::Compatible(compat::Producer::create(&cluster, spec).await?));
        }
        let failed = |error| wire::failure(&format!("no producer on topic `{topic}`"), &error);
        let connecting = danube_sdk::Client::connect(&arguments.service_addr);
        let client = connecting.await.map_err(failed)?;
        let builder = client.producer(topic.as_str()).name(&arguments.producer_name);
        let builder = match arguments.reliable {
            true => builder.reliable(),
            false => builder.non_reliable(),
        };
        let builder = match arguments.partitions {
            Some(count) => builder.partitions(count),
            None => builder,
        };
        let builder = match schema {
            Some(tag) => builder.schema(SchemaChoice::version(tag.subject, tag.version)),
            None => builder,
        };
        let producer = builder.open().await.map_err(failed)?;
        Ok(Publisher::Native { producer, requests: 0 })
    }

    /// Publishes one message and gives the line that says so.
    async fn send(&mut self, content: &compat::Message) -> Result<String, Failure> {
        match self {
            Publisher::Compatible(producer) => {
                let sent = producer.send(content).await?;
                Ok(format!("sent topic={} request={}", sent.topic, sent.request_id))
            }
            Publisher::Native { producer, requests } => {
                let mut message = danube_sdk::NewMessage::new(content.payload.clone())
                    .attributes(content.attributes.clone());
                if let Some(key) = &content.key {
                    message = message.key(key);
                }
                let sent = producer.send_message(message).await.map_err(|error| {
                    let doing = format!("message refused by topic `{}`", producer.topic());
                    wire::failure(&doing, &error)
                })?;
                *requests += 1;
                let (topic, offset) = (sent.topic(), sent.offset());
                Ok(format!("sent topic={topic} request={requests} offset={offset}"))
            }
        }
    }

    fn partition_count(&self) -> usize {
        match self {
            Publisher::Native { producer, .. } => producer.partition_count(),
            Publisher::Compatible(producer) => producer.partition_count(),
        }
    }

    async fn close(self) -> Result<(), Failure> {
        match self {
            // Everything is answered already, so nothing can fail.
            Publisher::Native { producer, .. } => producer
                .close()
                .await
                .map_err(|error| wire::failure("the producer cannot be closed", &error)),
            Publisher::Compatible(_) => Ok(()),
        }
    }
}

/// Each line that is not empty, encoded.
fn encoded(codec: &Codec, content: &[u8]) -> Result<Vec<Bytes>, Failure> {
    let text = std::str::from_utf8(content)
        .map_err(|_| Failure::usage("what is to be encoded is not UTF-8, so it is not JSON"))?;
    // One document may also be written over many lines.
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        let payload = codec.encode(text);
        return payload.map(|one| vec![one]).map_err(|why| Failure::usage(format!("it {why}")));
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let payloads: Result<Vec<Bytes>, Failure> = lines
        .map(|(number, line)| {
            codec.encode(line).map_err(|why| {
                Failure::usage(format!("line {number} {why}")).help("nothing was sent; mend it")
            })
        })
        .collect();
    match payloads?.as_slice() {
        [] => Err(Failure::usage("there is no line to send")),
        lines => Ok(lines.to_vec()),
    }
}

/// Some were sent before this one failed, and a script wants to know.
fn after(sent: u64, count: u64, failure: Failure) -> Failure {
    if sent == 0 || failure.exit == Exit::PipeClosed {
        return failure;
    }
    let message = format!("sent {sent} of {}, then: {}", plural(count, "message"), failure.message);
    Failure { exit: Exit::Partial, message, ..failure }
}

/// `1 message`, `2 messages`.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl Content {
    fn payload(&self) -> Result<Bytes, Failure> {
        match &self.file {
            None => Ok(self.message.clone().unwrap_or_default().into()),
            Some(path) => std::fs::read(path).map(Bytes::from).map_err(|error| {
                Failure::usage(format!("file `{}` cannot be read: {error}", path.display()))
                    .help("give the path of a readable file, or a text with --message")
            }),
        }
    }
}

/// A bar on stderr; hidden for a few messages and where nobody watches.
fn progress_bar(count: u64) -> ProgressBar {
    let target = match count > PROGRESS_COUNT_MIN && std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {per_sec}  {eta} left");
    ProgressBar::with_draw_target(Some(count), target)
        .with_style(style.expect("a constant template"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_pairs() {
        let parsed = parse_attributes("a:1, url:http://h:1/ ,").expect("well formed");
        let pairs: Vec<(&str, &str)> = parsed.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(pairs, [("a", "1"), ("url", "http://h:1/")]);
        for text in ["a", "a:1,b", ":1"] {
            assert!(parse_attributes(text).is_err(), "{text}");
        }
    }
}
