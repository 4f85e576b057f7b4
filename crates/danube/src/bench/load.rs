//! The arguments that the workloads share, and how long a workload goes on.

use super::process;
use crate::channel;
use crate::compat;
use crate::failure::Failure;
use crate::output::Format;
use crate::wire::Wire;
use danube_core::{Intent, TopicName};
use danube_ops::Session;
use danube_wire::proto::control::CreateTopicRequest;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a run takes when nobody says.
const RUN_DEFAULT: Duration = Duration::from_secs(10);
/// Room that a message needs for the time of its publish.
const SIZE_MIN: u64 = 8;
/// What fits into a message with its fields on the compatible wire.
const SIZE_MAX: u64 = (4 << 20) - (64 << 10);

/// What is sent, how much of it at a time, and how the report looks.
#[derive(Debug, Clone, clap::Args)]
pub struct Load {
    /// Size of a payload, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u64).range(SIZE_MIN..=SIZE_MAX)
    )]
    pub size: u64,
    /// Messages in flight, over all connections together
    #[arg(
        long,
        value_name = "N",
        default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub in_flight: u32,
    /// Connections that publish
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub connections: u32,
    /// Native wire: send batches of this many messages, waiting a little for the last of them
    /// [default: whatever waits goes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub batch: Option<u32>,
    /// Messages sent before the clock starts
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub warm_up: u64,
    /// How to print the report
    #[arg(long, value_enum, default_value = "text")]
    pub output: Format,
}

impl Load {
    /// The payload of every message.
    pub fn payload(&self) -> bytes::Bytes {
        vec![b'd'; self.size_bytes()].into()
    }

    /// Size of a payload.
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.size).expect("within SIZE_MAX")
    }

    /// How many of the messages in flight connection `index` has.
    pub fn in_flight_of(&self, index: u32) -> usize {
        let share = self.in_flight / self.connections;
        let rest = u32::from(index < self.in_flight % self.connections);
        usize::try_from((share + rest).max(1)).expect("within the range of the flag")
    }
}

/// How long a run goes on.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Extent {
    /// How many messages
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub count: Option<u64>,
    /// How long [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
}

/// The broker that is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Subject {
    /// The broker's client address
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "DANUBE_SERVICE_ADDR",
        default_value = "http://127.0.0.1:6650"
    )]
    pub service_addr: String,
    /// The topic [default: a new one]
    #[arg(short, long, value_name = "TOPIC")]
    pub topic: Option<String>,
    /// Make the topic a reliable one; this is the default
    #[arg(long, conflicts_with = "non_reliable")]
    reliable: bool,
    /// Make the topic a non-reliable one
    #[arg(long)]
    non_reliable: bool,
    /// Make the topic for this: realtime (in memory), event_stream (a crash loses nothing),
    /// task_queue or audit_log (a loss of power loses nothing)
    #[arg(long, value_name = "INTENT", conflicts_with_all = ["reliable", "non_reliable"])]
    pub intent: Option<String>,
    /// The broker's admin address, which --intent needs
    #[arg(
        long,
        value_name = "URL",
        env = "DANUBE_ADMIN_ENDPOINT",
        default_value = "http://127.0.0.1:50051"
    )]
    pub endpoint: String,
    /// The protocol to speak
    #[arg(long, value_name = "WIRE", value_enum, default_value = "native")]
    pub wire: Wire,
    /// The broker's process id: the report shows its CPU time and memory [default: whoever
    /// listens at the client address on this machine]
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

impl Subject {
    /// The topic, or a new name; made if there is an intent for it.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage) for a malformed name or intent, and what the
    /// broker said.
    pub async fn make_topic(&self) -> Result<TopicName, Failure> {
        let topic = match &self.topic {
            Some(topic) => TopicName::parse(topic)?,
            None => TopicName::parse(&format!("/default/{}", fresh("bench")))?,
        };
        if self.intent.is_some() {
            self.make(&Session::new(self.endpoint.clone()), topic.as_str()).await?;
        }
        Ok(topic)
    }

    /// The same broker, with a new topic for `intent`.
    pub fn with_intent(&self, intent: &str) -> Subject {
        Subject { topic: None, intent: Some(intent.to_owned()), ..self.clone() }
    }

    /// Makes `topic` for the intent.
    ///
    /// # Errors
    /// As [`make_topic`](Self::make_topic).
    pub async fn make(&self, session: &Session, topic: &str) -> Result<(), Failure> {
        if let Some(intent) = &self.intent {
            Intent::parse(intent)?;
        }
        let request = CreateTopicRequest {
            name: topic.to_owned(),
            intent: self.intent.clone(),
            ..CreateTopicRequest::default()
        };
        let mut control = session.control().await?;
        let made = channel::call(control.create_topic(request)).await;
        made.map(|_| ())
            .map_err(|status| channel::failure(&format!("topic `{topic}` cannot be made"), &status))
    }

    /// Whether the topic is to be a reliable one.
    pub fn is_reliable(&self) -> bool {
        let intent = self.intent.as_deref().and_then(|intent| Intent::parse(intent).ok());
        match intent {
            // The only one that keeps nothing.
            Some(intent) => intent != Intent::Realtime,
            None => !self.non_reliable,
        }
    }

    /// The broker's process, given or found.
    pub fn process(&self) -> Option<u32> {
        self.pid.or_else(|| process::listening_at(&self.service_addr))
    }
}

/// A name that nothing has yet.
pub fn fresh(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{what}-{}-{}", compat::unix_ms(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Deals out the messages of a run until it is over. Shared by all connections.
#[derive(Debug)]
pub struct Pace {
    count: u64,
    end: Option<Instant>,
    taken: AtomicU64,
}

impl Pace {
    /// A run of `count` messages.
    pub fn of_count(count: u64) -> Pace {
        Pace { count, end: None, taken: AtomicU64::new(0) }
    }

    /// A run of this length, which starts now.
    pub fn for_time(length: Duration) -> Pace {
        Pace { end: Some(Instant::now() + length), ..Pace::of_count(u64::MAX) }
    }

    /// A part of `whole`: up to `count` of the messages that are left of it.
    pub fn part_of(whole: &Pace, count: u64) -> Pace {
        let taken = (0..count).take_while(|_| whole.take().is_some()).count();
        Pace::of_count(taken as u64)
    }

    /// A run as the flags say, which starts now.
    pub fn starting_now(extent: Extent) -> Pace {
        match extent.count {
            Some(count) => Pace::of_count(count),
            None => Pace::for_time(extent.seconds.map_or(RUN_DEFAULT, Duration::from_secs)),
        }
    }

    /// The number of the next message, from 0; `None` when the run is over.
    pub fn take(&self) -> Option<u64> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return None;
        }
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_what_is_in_flight() {
        let load = |in_flight, connections| Load {
            size: 8,
            in_flight,
            connections,
            batch: None,
            warm_up: 0,
            output: Format::Text,
        };
        let shares = |load: Load| (0..load.connections).map(|i| load.in_flight_of(i)).collect();
        let cases: [Vec<usize>; 3] =
            [shares(load(128, 1)), shares(load(10, 3)), shares(load(1, 2))];
        assert_eq!(cases, [vec![128], vec![4, 3, 3], vec![1, 1]]);
    }

    #[test]
    fn a_counted_run_deals_out_exactly_its_messages() {
        let pace = Pace::of_count(3);
        let taken: Vec<Option<u64>> = (0..5).map(|_| pace.take()).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), None, None]);
    }
}
