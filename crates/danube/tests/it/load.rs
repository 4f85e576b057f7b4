//! Producers and consumers that keep a broker busy and remember what they were promised.
//!
//! A [`Load`] has topics of two intents, several producers on each, and a consumer that
//! acknowledges. It runs until the broker goes, any number of times over the broker's lives; then
//! [`Load::check`] compares what the log holds with what was promised.
//!
//! Law: every message is tried once only. So one that was acknowledged is in the log once, one
//! whose answer never came is there at most once, and nothing else is there. The same holds for
//! the consumer's acks: answered, it holds; asked and never answered, it may.

use crate::harness::Addresses;
use crate::wire::{Control, Wire, message, offset_of, within};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Streaming;

/// Topics and what they are for: one that the kernel's cache protects, two that a sync protects.
const TOPICS: [(&str, &str); 3] = [
    ("/default/load-events", "event_stream"),
    ("/default/load-tasks", "task_queue"),
    ("/default/load-ledger", "audit_log"),
];
/// Producers of each topic.
const PRODUCERS: usize = 3;
/// The subscription that is read under load.
pub const WORKERS: &str = "workers";
/// The subscription that is made first and read last: it holds the whole log.
pub const AUDIT: &str = "audit";

/// What one producer was promised.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// Sequence numbers tried: all below this.
    pub tried: u64,
    /// Those that were acknowledged.
    pub acknowledged: BTreeSet<u64>,
}

/// Who a producer is: its topic and its name.
type Who = (&'static str, String);

/// A load on one broker, and the memory of it.
#[derive(Debug, Default)]
pub struct Load {
    lanes: BTreeMap<Who, Lane>,
    acks: BTreeMap<&'static str, Acks>,
    /// How many messages were acknowledged, as it happens.
    served: watch::Sender<u64>,
}

/// What the consumer of one topic was promised.
#[derive(Debug, Default)]
pub struct Acks {
    /// Offsets whose ack was answered.
    pub answered: BTreeSet<u64>,
    /// Offsets whose ack was asked for when the broker went.
    pub asked: BTreeSet<u64>,
}

impl Load {
    /// Makes the topics and their subscriptions.
    pub async fn set_up(at: &Addresses) -> Load {
        let mut control = Control::connect(&at.admin).await;
        let mut wire = Wire::connect(&at.broker).await;
        let mut load = Load::default();
        for (topic, intent) in TOPICS {
            control.create_topic(topic, intent).await;
            for subscription in [AUDIT, WORKERS] {
                wire.subscribe(topic, subscription, "c").await.expect("subscribed");
            }
            load.acks.insert(topic, Acks::default());
            for producer in 0..PRODUCERS {
                load.lanes.insert((topic, format!("p{producer}")), Lane::default());
            }
        }
        load
    }

    /// Publishes and consumes until the broker goes, which `end` brings about.
    pub async fn run(&mut self, at: &Addresses, end: impl Future<Output = ()>) {
        let mut producers = JoinSet::new();
        let mut consumers = JoinSet::new();
        for (topic, _) in TOPICS {
            let wire = Wire::connect(&at.broker).await;
            for (who, lane) in self.lanes.iter().filter(|((of, _), _)| *of == topic) {
                let served = self.served.clone();
                producers.spawn(publish(wire.clone(), who.clone(), lane.clone(), served));
            }
            let acks = self.acks.remove(topic).expect("made in set_up");
            consumers.spawn(consume(wire, topic, acks));
        }
        end.await;
        while let Some(done) = within("the producers to notice", producers.join_next()).await {
            let (who, lane) = done.expect("no producer panics");
            self.lanes.insert(who, lane);
        }
        while let Some(done) = within("the consumers to notice", consumers.join_next()).await {
            let (topic, acks) =
                done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            self.acks.insert(topic, acks);
        }
    }

    /// Resolves when `count` more messages than now are acknowledged.
    pub fn in_the_middle(&self, count: u64) -> impl Future<Output = ()> + use<> {
        let mut served = self.served.subscribe();
        let goal = *served.borrow() + count;
        async move {
            let reached = served.wait_for(|served| *served >= goal);
            within("messages to be acknowledged", reached).await.expect("the load is there");
        }
    }

    /// How many messages were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.lanes.values().map(|lane| lane.acknowledged.len()).sum()
    }

    /// Reads everything and compares.
    pub async fn check(&mut self, at: &Addresses) {
        for (topic, _) in TOPICS {
            let mut wire = Wire::connect(&at.broker).await;
            let log = read_all(&mut wire, at, topic, AUDIT).await;
            self.check_log(topic, &log);
            // The rest of what the consumer did not get to under load.
            let rest = read_all(&mut wire, at, topic, WORKERS).await;
            let Acks { answered, asked } = self.acks.get_mut(topic).expect("made in set_up");
            for (offset, payload) in rest {
                assert!(answered.insert(offset), "{topic}: {payload} at {offset} after its ack");
            }
            let lost = log.iter().map(|(offset, _)| offset);
            let lost: Vec<_> = lost
                .filter(|offset| !answered.contains(offset) && !asked.contains(offset))
                .collect();
            assert!(lost.is_empty(), "{topic}: never came to the consumer: {lost:?}");
        }
    }

    fn check_log(&self, topic: &str, log: &[(u64, String)]) {
        let lanes = self.lanes.iter().filter(|((of, _), _)| *of == topic);
        check_log(topic, log, lanes.map(|((_, name), lane)| (name.as_str(), lane)));
    }
}

/// Compares what a topic holds with what its producers were promised.
pub fn check_log<'a>(
    topic: &str,
    log: &[(u64, String)],
    lanes: impl Iterator<Item = (&'a str, &'a Lane)>,
) {
    assert!(log.is_sorted_by(|a, b| a.0 < b.0), "{topic}: offsets grow");
    let mut found: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (offset, payload) in log {
        let (name, sequence) = parse(payload).unwrap_or_else(|| {
            panic!("{topic}: {payload:?} at {offset} was never published");
        });
        found.entry(name).or_default().push(sequence);
    }
    for (name, lane) in lanes {
        let found = found.remove(name).unwrap_or_default();
        assert!(
            found.is_sorted_by(|a, b| a < b),
            "{topic} {name}: out of order or twice: {found:?}"
        );
        assert!(found.last().is_none_or(|last| *last < lane.tried), "{topic} {name}: invented");
        let found: BTreeSet<u64> = found.into_iter().collect();
        let lost: Vec<_> = lane.acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "{topic} {name}: acknowledged and lost: {lost:?}");
    }
    assert!(found.is_empty(), "{topic}: from nobody: {:?}", found.keys());
}

/// The payload of a message: who published it, its number, and something to fill frames of
/// different sizes with.
pub fn payload(name: &str, sequence: u64) -> Vec<u8> {
    let filler = usize::try_from(sequence * 37 % 900).expect("small");
    format!("{name}/{sequence}/{}", "x".repeat(filler)).into_bytes()
}

/// The inverse; `None` for what [`payload`] never made.
pub fn parse(text: &str) -> Option<(&str, u64)> {
    let (name, rest) = text.split_once('/')?;
    let (sequence, _) = rest.split_once('/')?;
    let sequence = sequence.parse().ok()?;
    (payload(name, sequence) == text.as_bytes()).then_some((name, sequence))
}

/// Publishes one message after another until one is not acknowledged.
async fn publish(
    mut wire: Wire,
    who: Who,
    mut lane: Lane,
    served: watch::Sender<u64>,
) -> (Who, Lane) {
    let (topic, name) = &who;
    if let Ok(id) = wire.create_producer(topic, name).await {
        loop {
            let sequence = lane.tried;
            lane.tried += 1;
            let message = message(topic, id, name, payload(name, sequence));
            if wire.send(message).await.is_err() {
                break;
            }
            lane.acknowledged.insert(sequence);
            served.send_modify(|count| *count += 1);
        }
    }
    (who, lane)
}

/// Acknowledges whatever comes until the stream ends.
pub async fn consume(mut wire: Wire, topic: &'static str, mut acks: Acks) -> (&'static str, Acks) {
    let Ok(id) = wire.subscribe(topic, WORKERS, "c").await else { return (topic, acks) };
    let Ok(mut stream) = wire.receive(id).await else { return (topic, acks) };
    while let Ok(Some(message)) = within("a message or the end", stream.message()).await {
        let offset = offset_of(&message);
        assert!(!acks.answered.contains(&offset), "{topic}: {offset} came again after its ack");
        if wire.ack(&message, WORKERS).await.is_err() {
            acks.asked.insert(offset);
            break;
        }
        acks.answered.insert(offset);
    }
    (topic, acks)
}

/// All that a subscription still has, acknowledged.
pub async fn read_all(
    wire: &mut Wire,
    at: &Addresses,
    topic: &str,
    subscription: &str,
) -> Vec<(u64, String)> {
    let mut control = Control::connect(&at.admin).await;
    let id = wire.subscribe(topic, subscription, "c").await.expect("subscribed");
    let mut stream: Streaming<_> = wire.receive(id).await.expect("opened");
    let mut all = Vec::new();
    let reading = async {
        loop {
            // Short pauses only decide when to ask whether that was all.
            match tokio::time::timeout(Duration::from_millis(100), stream.message()).await {
                Ok(item) => {
                    let message = item.expect("the stream goes on").expect("it has not ended");
                    wire.ack(&message, subscription).await.expect("acknowledged");
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    all.push((offset_of(&message), text));
                }
                Err(_) if control.backlog(topic, subscription).await == 0 => break,
                Err(_) => {}
            }
        }
    };
    within("the whole log", reading).await;
    all
}
