//! SIGKILL under a mixed load on two hundred topics of all kinds that a broker has: what a sync
//! protects, what the kernel's cache protects, and what is only passed on.
//!
//! They share one journal, so a kill in the middle of a group hits many topics at once.

use crate::crash::Random;
use crate::harness::{Addresses, Node};
use crate::load::{AUDIT, Acks, Lane, WORKERS, check_log, consume, payload, read_all};
use crate::wire::{Control, Wire, message, within};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::{JoinSet, block_in_place};

/// How many topics there are of each intent, and whether the log has them.
const KINDS: [(&str, usize, bool); 4] = [
    ("event_stream", 80, true),
    ("task_queue", 60, true),
    ("audit_log", 40, true),
    ("realtime", 20, false),
];
/// Topics with a consumer that acknowledges.
const CONSUMED_EVERY: usize = 5;
/// Connections that publish; each has its own share of the topics.
const PUBLISHERS: usize = 8;
/// Kills.
const ROUNDS: u32 = 6;
/// Longest life under load.
const LIFE_MAX_US: u64 = 700_000;
/// Topics read back at the same time.
const READERS: usize = 16;
/// Who publishes.
const NAME: &str = "p";

/// One topic and what was promised.
struct Topic {
    name: &'static str,
    logged: bool,
    lane: Lane,
    acks: Option<Acks>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_topics_keep_their_promises_over_kills() {
    let (mut random, seed) = Random::seeded();
    println!("moments from DANUBE_TEST_SEED={seed}");
    // Small files, so that kills also hit the change from one to the next.
    let config = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(config.path(), "storage:\n  journal_file_bytes: 262144\n").expect("written");
    let config = config.path().to_str().expect("a plain path");
    let mut node = block_in_place(|| Node::start_with(&["--config-file", config]));
    let addresses = node.addresses().clone();
    let mut topics = set_up(&addresses).await;
    for round in 1..=ROUNDS {
        let life = if round % 3 == 0 { LIFE_MAX_US } else { random.below(LIFE_MAX_US) };
        let killing = async {
            tokio::time::sleep(Duration::from_micros(life)).await;
            block_in_place(|| node.kill());
        };
        topics = live(&addresses, topics, killing).await;
        block_in_place(|| node.restart());
        let acknowledged: usize = topics.iter().map(|topic| topic.lane.acknowledged.len()).sum();
        println!("round {round}: killed after {life} us, {acknowledged} acknowledged");
    }
    let busy = topics.iter().filter(|topic| !topic.lane.acknowledged.is_empty()).count();
    assert!(busy > topics.len() / 2, "{busy} of {} topics were written to", topics.len());
    check(&addresses, topics).await;
}

async fn set_up(at: &Addresses) -> Vec<Topic> {
    let mut control = Control::connect(&at.admin).await;
    let mut wire = Wire::connect(&at.broker).await;
    let mut topics = Vec::new();
    for (intent, count, logged) in KINDS {
        for index in 0..count {
            let name: &'static str = format!("/default/many-{intent}-{index}").leak();
            control.create_topic(name, intent).await;
            let consumed = logged && index % CONSUMED_EVERY == 0;
            if logged {
                wire.subscribe(name, AUDIT, "c").await.expect("subscribed");
            }
            if consumed {
                wire.subscribe(name, WORKERS, "c").await.expect("subscribed");
            }
            let acks = consumed.then(Acks::default);
            topics.push(Topic { name, logged, lane: Lane::default(), acks });
        }
    }
    topics
}

/// Publishes and consumes until the broker goes, which `end` brings about.
async fn live(at: &Addresses, topics: Vec<Topic>, end: impl Future<Output = ()>) -> Vec<Topic> {
    let mut publishers = JoinSet::new();
    let mut consumers = JoinSet::new();
    let mut shares: Vec<Vec<Topic>> = (0..PUBLISHERS).map(|_| Vec::new()).collect();
    for (at_topic, mut topic) in topics.into_iter().enumerate() {
        if let Some(acks) = topic.acks.take() {
            // A connection carries a few topics, as a real worker's does.
            let wire = Wire::connect(&at.broker).await;
            consumers.spawn(consume(wire, topic.name, acks));
        }
        shares[at_topic % PUBLISHERS].push(topic);
    }
    for share in shares {
        publishers.spawn(publish(Wire::connect(&at.broker).await, share));
    }
    end.await;
    let mut topics = Vec::new();
    while let Some(done) = within("the publishers to notice", publishers.join_next()).await {
        topics.extend(done.expect("no publisher panics"));
    }
    while let Some(done) = within("the consumers to notice", consumers.join_next()).await {
        let (name, acks) =
            done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let topic = topics.iter_mut().find(|topic: &&mut Topic| topic.name == name);
        topic.expect("its publisher gave it back").acks = Some(acks);
    }
    topics
}

/// Publishes to each topic in turn, a few of them in flight at a time, until one is refused.
async fn publish(wire: Wire, mut topics: Vec<Topic>) -> Vec<Topic> {
    let mut ids = BTreeMap::new();
    loop {
        let mut going = JoinSet::new();
        let share = std::mem::take(&mut topics);
        for mut topic in share {
            let (mut wire, id) = (wire.clone(), ids.get(topic.name).copied());
            going.spawn(async move {
                let id = match id {
                    Some(id) => id,
                    None => match create(&mut wire, &topic).await {
                        Some(id) => id,
                        None => return (topic, None),
                    },
                };
                let sequence = topic.lane.tried;
                topic.lane.tried += 1;
                let message = message(topic.name, id, NAME, payload(NAME, sequence));
                if wire.send(message).await.is_err() {
                    return (topic, None);
                }
                topic.lane.acknowledged.insert(sequence);
                (topic, Some(id))
            });
        }
        let mut refused = false;
        while let Some(done) = going.join_next().await {
            let (topic, id) = done.expect("no publish panics");
            match id {
                Some(id) => drop(ids.insert(topic.name, id)),
                None => refused = true,
            }
            topics.push(topic);
        }
        if refused {
            return topics;
        }
    }
}

/// CreateProducer; a topic that is only passed on keeps the strategy it has.
async fn create(wire: &mut Wire, topic: &Topic) -> Option<u64> {
    if topic.logged {
        return wire.create_producer(topic.name, NAME).await.ok();
    }
    wire.create_fleeting_producer(topic.name, NAME).await.ok()
}

/// Reads everything back and compares.
async fn check(at: &Addresses, topics: Vec<Topic>) {
    let mut left: Vec<Topic> = topics.into_iter().filter(|topic| topic.logged).collect();
    let mut reading = JoinSet::new();
    loop {
        while reading.len() < READERS
            && let Some(topic) = left.pop()
        {
            reading.spawn(check_topic(at.clone(), topic));
        }
        let Some(done) = within("a topic to be read", reading.join_next()).await else { return };
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    }
}

async fn check_topic(at: Addresses, topic: Topic) {
    let mut wire = Wire::connect(&at.broker).await;
    let log = read_all(&mut wire, &at, topic.name, AUDIT).await;
    check_log(topic.name, &log, std::iter::once((NAME, &topic.lane)));
    let Some(mut acks) = topic.acks else { return };
    for (offset, payload) in read_all(&mut wire, &at, topic.name, WORKERS).await {
        let first = acks.answered.insert(offset);
        assert!(first, "{}: {payload} at {offset} came again after its ack", topic.name);
    }
    let came = |offset: &u64| acks.answered.contains(offset) || acks.asked.contains(offset);
    let lost: Vec<u64> = log.iter().map(|(offset, _)| *offset).filter(|at| !came(at)).collect();
    assert!(lost.is_empty(), "{}: never came to the consumer: {lost:?}", topic.name);
}
