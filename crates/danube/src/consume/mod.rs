//! `danube consume`: receives the messages of a topic, prints and acknowledges them.
//!
//! Law: a message is printed and flushed before it is acknowledged, so one that a reader never
//! saw comes again.

mod print;
mod source;

use crate::compat::SubscriptionType;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::produce::plural;
use crate::schema::Decoder;
use crate::signals::Signals;
use crate::wire::Wire;
use danube_core::{SubscriptionName, TopicName};
use source::{Received, Source};
use std::time::Duration;

/// Receive messages of a topic and print them
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
    /// The topic; all its partitions are received
    #[arg(short, long, value_name = "TOPIC", default_value = "/default/test_topic")]
    topic: String,
    /// The consumer's name; the same name again takes over
    #[arg(short = 'n', long, value_name = "NAME", default_value = "consumer_pubsub")]
    consumer: String,
    /// The subscription, made if it does not exist
    #[arg(short = 'm', long, value_name = "NAME")]
    subscription: String,
    /// Who of the subscription's consumers receives a message
    #[arg(long, value_name = "TYPE", value_enum, default_value = "shared")]
    sub_type: SubscriptionType,
    /// key-shared: receive only keys that match; may be given several times
    #[arg(long, value_name = "PATTERN")]
    key_filter: Vec<String>,
    /// Stop after this many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop when no message came for this long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// How to print messages
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
    /// Do not acknowledge: all messages stay with the subscription
    #[arg(long)]
    no_ack: bool,
    /// Print payloads as they are, also those that an Avro or Protobuf schema decodes
    #[arg(long)]
    no_decode: bool,
    /// The protocol to speak
    #[arg(long, value_name = "WIRE", value_enum, default_value = "native")]
    wire: Wire,
}

/// Receives until told to stop.
///
/// # Errors
/// Why nothing can be received, or [`Exit::Partial`](crate::failure::Exit::Partial) and
/// [`Exit::Refused`](crate::failure::Exit::Refused) when fewer than `--count` came in time.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let topic = TopicName::parse(&arguments.topic)?;
    let subscription = SubscriptionName::parse(&arguments.subscription)?;
    if !arguments.key_filter.is_empty() && arguments.sub_type != SubscriptionType::KeyShared {
        return Err(Failure::usage("--key-filter needs --sub-type key-shared"));
    }
    let mut source = Source::subscribe(&arguments, &topic, &subscription).await?;
    // From here on nothing is missed; README's tour waits for this line before it produces.
    eprintln!("subscribed to {topic} as `{subscription}`, waiting for messages");
    let decoder = match arguments.no_decode {
        true => None,
        false => Some(Decoder::new(&arguments.service_addr)?),
    };
    let received = receive(&mut source, decoder, &arguments).await;
    // Whatever ended it, what was printed is acknowledged, and the rest goes back.
    source.close().await;
    let received = received?;
    eprintln!("received {} of {topic}", plural(received, "message"));
    Ok(())
}

/// Why receiving is over.
enum Next {
    Message(Box<Received>),
    Silence,
    Interrupted,
}

async fn receive(
    source: &mut Source,
    mut decoder: Option<Decoder>,
    arguments: &Arguments,
) -> Result<u64, Failure> {
    let mut signals = Signals::listen()?;
    let silence_max = arguments.timeout.map(Duration::from_secs);
    let mut received = 0;
    while arguments.count.is_none_or(|count| received < count) {
        let message = match next(source, &mut signals, silence_max).await? {
            Next::Message(message) => message,
            Next::Interrupted => break,
            Next::Silence => {
                reached(received, arguments)?;
                break;
            }
        };
        let printed = message.printed();
        let decoded = match &mut decoder {
            Some(decoder) => decoder.decode(printed.schema, &printed.payload).await,
            None => None,
        };
        output::line(match arguments.output {
            Format::Text => print::text(&printed, decoded.as_ref()),
            Format::Json => print::json(&printed, decoded.as_ref()).to_string(),
        })?;
        received += 1;
        if !arguments.no_ack {
            source.ack(&message).await;
        }
    }
    Ok(received)
}

async fn next(
    source: &mut Source,
    signals: &mut Signals,
    silence_max: Option<Duration>,
) -> Result<Next, Failure> {
    let silence = async {
        match silence_max {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // A message that is there already counts, also when the time is just over.
        biased;
        _ = signals.next() => Ok(Next::Interrupted),
        message = source.next() => message.map(|message| Next::Message(Box::new(message))),
        () = silence => Ok(Next::Silence),
    }
}

fn reached(received: u64, arguments: &Arguments) -> Result<(), Failure> {
    let Some(count) = arguments.count else { return Ok(()) };
    let message = format!(
        "received {received} of {}, then none for {} s",
        plural(count, "message"),
        arguments.timeout.unwrap_or_default()
    );
    Err(match received {
        0 => Failure::refused(message),
        _ => Failure::partial(message),
    })
}
