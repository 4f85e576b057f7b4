//! The story: six jobs, a worker that dies, a job that nobody can do until somebody can.
//!
//! Law: each turn of it is checked where it happens; what does not come as told is an error.

use super::stage::{Stage, Turn};
use super::temporary::TemporaryBroker;
use super::worker::{Job, Worker};
use crate::compat::{Cluster, Message, Producer, ProducerSpec};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const TOPIC: &str = "/default/thumbnails";
const WORKERS: &str = "workers";
const FILES: [&str; 6] = ["ant.png", "bee.png", "cat.png", "dog.svg", "elk.png", "fox.png"];
/// The job at which the first worker dies.
const FATAL: &str = "cat.png";
/// The job that the first version of the worker cannot do, and what it says of it.
const HARD: &str = "dog.svg";
const COMPLAINT: &str = "cannot read SVG";
/// Deliveries that the policy allows.
const DELIVERIES_MAX: u32 = 3;
/// How long dead letters may take to appear.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has happened so far.
#[derive(Default)]
struct Ledger {
    deliveries: BTreeMap<String, u32>,
    done: BTreeMap<String, u32>,
}

impl Ledger {
    /// Counts a delivery; answers which one of its job it is.
    fn delivered(&mut self, job: &Job) -> u32 {
        let count = self.deliveries.entry(job.file.clone()).or_default();
        *count += 1;
        *count
    }

    fn done(&mut self, job: &Job) {
        *self.done.entry(job.file.clone()).or_default() += 1;
    }
}

/// Plays it.
///
/// # Errors
/// What did not come as told.
pub async fn play(stage: &Stage, broker: &TemporaryBroker) -> Result<(), Failure> {
    let began = Instant::now();
    let at = broker.addresses();
    let dir = broker.dir().display();
    stage
        .say(&format!(
            "A task queue and its flaky workers. The broker runs in this process, on\n\
             http://{}, with its files in {dir}.",
            at.broker
        ))
        .await?;
    let cluster = Cluster::connect(&format!("http://{}", at.broker)).await?;
    let mut ledger = Ledger::default();

    let first = make_queue(stage, &cluster).await?;
    publish(stage, &cluster).await?;
    let second = lose_a_worker(stage, &cluster, first, &mut ledger).await?;
    let second = wear_out(stage, second, &mut ledger).await?;
    read_dead_letter(stage).await?;
    drop(second);
    mend_and_replay(stage, &cluster, &mut ledger).await?;
    drain(stage, &ledger, began).await
}

async fn make_queue(stage: &Stage, cluster: &Cluster) -> Result<Worker, Failure> {
    stage.heading("1. Say what the queue is for").await?;
    stage.ctl(&format!("topics create {TOPIC} --intent task_queue")).await?;
    stage
        .say(
            "Its messages are on the disk before a producer hears \"ok\"; a failed one comes\n\
             again, and one that fails too often steps aside. Three deliveries shall do here:",
        )
        .await?;
    let worker = Worker::hire("worker-1", cluster, TOPIC, WORKERS).await?;
    let change =
        format!("--max-redelivery-count {} --base-redelivery-delay-ms 500", DELIVERIES_MAX - 1);
    stage.ctl(&format!("topics set-failure-policy {TOPIC} -s {WORKERS} {change}")).await?;
    Ok(worker)
}

async fn publish(stage: &Stage, cluster: &Cluster) -> Result<(), Failure> {
    stage.heading("2. Hand out six jobs").await?;
    let spec = ProducerSpec {
        name: "producer".to_owned(),
        topic: TOPIC.to_owned(),
        partitions: None,
        reliable: true,
        schema: None,
    };
    let mut producer = Producer::create(cluster, spec).await?;
    for file in FILES {
        let message = Message { payload: file.into(), ..Message::default() };
        producer.send(&message).await?;
        stage.happens("producer", file, Turn::Good, "ok, it is on the disk").await?;
    }
    Ok(())
}

async fn lose_a_worker(
    stage: &Stage,
    cluster: &Cluster,
    mut first: Worker,
    ledger: &mut Ledger,
) -> Result<Worker, Failure> {
    stage.heading("3. A worker dies").await?;
    loop {
        let job = first.next().await?;
        ledger.delivered(&job);
        if job.file == FATAL {
            first.dies(stage, job).await?;
            break;
        }
        first.done(stage, &job, "").await?;
        ledger.done(&job);
    }
    stage
        .say("It cannot say what it had. The broker knows, and gives it to the next at once:")
        .await?;
    let mut second = Worker::hire("worker-2", cluster, TOPIC, WORKERS).await?;
    let job = second.next().await?;
    let count = ledger.delivered(&job);
    expect(job.file == FATAL && count == 2, || format!("{} came instead of {FATAL}", job.file))?;
    second.done(stage, &job, " (2nd delivery)").await?;
    ledger.done(&job);
    Ok(second)
}

async fn wear_out(
    stage: &Stage,
    mut worker: Worker,
    ledger: &mut Ledger,
) -> Result<Worker, Failure> {
    stage.heading("4. A job that fails every time").await?;
    let mut failed: Option<Instant> = None;
    let mut others = FILES.len() - 4;
    loop {
        let job = worker.next().await?;
        let count = ledger.delivered(&job);
        if job.file != HARD {
            worker.done(stage, &job, ", it does not wait for the one before").await?;
            ledger.done(&job);
            others -= 1;
            continue;
        }
        let note = match failed {
            None => String::new(),
            Some(failed) => {
                format!(" ({}, after {} ms)", ordinal(count), failed.elapsed().as_millis())
            }
        };
        failed = Some(Instant::now());
        worker.fails(stage, &job, COMPLAINT, &note).await?;
        if count == DELIVERIES_MAX {
            break;
        }
    }
    expect(others == 0, || format!("{others} jobs waited behind the one that fails"))?;
    stage
        .say("The pause doubles each time. That was the last delivery that the policy allows.")
        .await?;
    Ok(worker)
}

async fn read_dead_letter(stage: &Stage) -> Result<(), Failure> {
    stage.heading("5. The dead letter tells its story").await?;
    let until = Instant::now() + PATIENCE;
    while stage.ask(&format!("topics peek {TOPIC}-dlq")).await?.data == serde_json::json!([]) {
        expect(Instant::now() < until, || "no dead letter came".to_owned())?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let peeked = stage.ctl(&format!("topics peek {TOPIC}-dlq --output json")).await?;
    let letter = &peeked.data[0];
    let reason = &letter["attributes"]["x-failure-reason"];
    expect(letter["payload"] == HARD && reason == COMPLAINT, || format!("it says {letter}"))?;
    stage.say("Peeking moves nothing: no cursor, no counter, no consumer.").await
}

async fn mend_and_replay(
    stage: &Stage,
    cluster: &Cluster,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    stage.heading("6. Mend the worker, replay the dead letter").await?;
    stage.say("worker-3 is a new version: it reads SVG. What would a replay do?").await?;
    let mut worker = Worker::hire("worker-3", cluster, TOPIC, WORKERS).await?;
    stage.ctl(&format!("topics replay-dlq {TOPIC}-dlq --dry-run")).await?;
    let replay = stage.ctl(&format!("topics replay-dlq {TOPIC}-dlq")).await?;
    expect(replay.data["replayed"] == 1, || format!("the replay says {}", replay.data))?;
    let job = worker.next().await?;
    ledger.delivered(&job);
    let replays = job.message().attributes.get("x-replay-count").cloned().unwrap_or_default();
    expect(job.file == HARD && replays == "1", || format!("{} came, replay {replays}", job.file))?;
    worker.done(stage, &job, ", its attempts counted anew").await?;
    ledger.done(&job);
    Ok(())
}

async fn drain(stage: &Stage, ledger: &Ledger, began: Instant) -> Result<(), Failure> {
    stage.heading("7. Drained").await?;
    let why = stage.ctl(&format!("topics why {TOPIC} -s {WORKERS}")).await?;
    expect(why.text.contains("drained"), || why.text.clone())?;
    let all_done = FILES.iter().all(|file| ledger.done.get(*file) == Some(&1));
    expect(all_done, || format!("not every job was done once: {:?}", ledger.done))?;
    let delivered: u32 = ledger.deliveries.values().sum();
    let again = delivered as usize - FILES.len();
    stage.heading("Six jobs in, six jobs done, none lost and none done twice").await?;
    let seconds = began.elapsed().as_secs_f64();
    stage
        .say(&format!(
            "{delivered} deliveries, {again} of them again; 1 worker killed, 1 dead letter, \
             1 replay; {seconds:.1} s.\n\
             The broker and its files are gone now. For one that stays: danube start"
        ))
        .await
}

fn ordinal(count: u32) -> String {
    match count {
        2 => "2nd delivery".to_owned(),
        3 => "3rd delivery".to_owned(),
        _ => format!("delivery {count}"),
    }
}

/// Holds the story to what it tells.
fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds {
        return Ok(());
    }
    Err(Failure::refused(format!("the demo did not go as it should: {}", otherwise()))
        .help("please report this, with the output above"))
}
