//! `danube bench topics`: many topics, one message to each per round.
//!
//! Making the topics is timed apart.

use super::drive::drive;
use super::load::{Load, Pace, Subject, fresh};
use super::outlet::{Outlet, client};
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use crate::channel;
use crate::failure::Failure;
use crate::wire::{self, Wire};
use danube_ops::Session;
use danube_sdk::{NewMessage, Receipt};
use futures::stream::{self, FuturesUnordered};
use futures::{StreamExt, TryStreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topics that are made, or opened, at a time.
const MADE_AT_ONCE: usize = 64;

/// Publish one message to each of many topics, again and again
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    load: Load,
    /// How many topics
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    topics: u32,
    /// Messages to each topic
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    rounds: u32,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, load, topics, rounds } = arguments;
    measure(&subject, &load, topics, rounds).await?.print(load.output)
}

/// Makes the topics and measures.
///
/// # Errors
/// As [`run`].
pub async fn measure(
    subject: &Subject,
    load: &Load,
    topics: u32,
    rounds: u32,
) -> Result<Report, Failure> {
    let base = fresh("bench");
    let names: Vec<_> = (0..topics).map(|index| format!("/default/{base}-{index}")).collect();
    let progress = Progress::new("making topics");
    let started = Instant::now();
    if subject.intent.is_some() {
        let session = Session::new(subject.endpoint.clone());
        let making = stream::iter(&names).map(|name| subject.make(&session, name));
        making.buffer_unordered(MADE_AT_ONCE).try_collect::<Vec<()>>().await?;
    }
    let outlets = open(subject, load, &names).await?;
    let setup = started.elapsed();
    progress.finish();
    let one_round = Pace::of_count(u64::from(topics).min(load.warm_up));
    drive(&outlets[..1], load, one_round, &Progress::none()).await?;

    let progress = Progress::new("publishing");
    let watch = Watch::start(subject.process())?;
    let started = Instant::now();
    let rounds = (0..rounds).flat_map(|_| &outlets);
    let latencies = match subject.wire {
        Wire::Native => stream(rounds, load, &progress).await?,
        Wire::Compatible => call(rounds, load, &progress).await?,
    };
    let elapsed = started.elapsed();
    let usage = watch.and_then(Watch::end);
    progress.finish();
    Ok(Report {
        setting: format!("{topics} topics, {} in flight", load.in_flight),
        size: load.size,
        messages: latencies.count(),
        latencies,
        latency_of: "call to acknowledgement",
        elapsed,
        usage,
        setup: Some(setup),
        ..Report::new("topics")
    })
}

async fn open(
    subject: &Subject,
    load: &Load,
    names: &[String],
) -> Result<Vec<Arc<Outlet>>, Failure> {
    let (client, shared) = match subject.wire {
        Wire::Native => (Some(client(subject, "/default/bench").await?), None),
        Wire::Compatible => (None, Some(channel::connect(&subject.service_addr).await?)),
    };
    let opening = stream::iter(names).map(|name| {
        let (client, shared) = (client.as_ref(), shared.clone());
        async move {
            if let Some(client) = client {
                return Outlet::open(client, subject, name, (load, 0)).await.map(Arc::new);
            }
            let (url, reliable) = (&subject.service_addr, subject.is_reliable());
            let shared = shared.expect("one of the two is there");
            let lane = super::lane::Lane::attach(url, shared, name, reliable, (load, 0)).await;
            lane.map(|lane| Arc::new(Outlet::Compatible(Box::new(lane))))
        }
    });
    opening.buffered(MADE_AT_ONCE).try_collect().await
}

async fn stream<'a>(
    outlets: impl Iterator<Item = &'a Arc<Outlet>>,
    load: &Load,
    progress: &Progress,
) -> Result<Latencies, Failure> {
    let refused = |error| wire::failure("a publish was refused", &error);
    let mut latencies = Latencies::new();
    let mut waiting: VecDeque<(Instant, Receipt)> = VecDeque::new();
    let mut note = |(at, answered): (Instant, Result<_, _>)| {
        answered.map_err(refused)?;
        latencies.record(at.elapsed());
        progress.one_more();
        Ok::<_, Failure>(())
    };
    for outlet in outlets {
        let Outlet::Native(producer, _) = &**outlet else { continue };
        if waiting.len() >= load.in_flight as usize
            && let Some((at, receipt)) = waiting.pop_front()
        {
            note((at, receipt.await))?;
        }
        let at = Instant::now();
        let receipt = producer.enqueue(NewMessage::new(load.payload())).await;
        waiting.push_back((at, receipt.map_err(refused)?));
    }
    for (at, receipt) in waiting {
        note((at, receipt.await))?;
    }
    Ok(latencies)
}

async fn call<'a>(
    outlets: impl Iterator<Item = &'a Arc<Outlet>>,
    load: &Load,
    progress: &Progress,
) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::new();
    let mut calls = FuturesUnordered::new();
    let mut note = |answered: Result<Duration, _>| {
        let refused = |status| channel::failure("a publish was refused", &status);
        latencies.record(answered.map_err(refused)?);
        progress.one_more();
        Ok::<_, Failure>(())
    };
    for (number, outlet) in (0..).zip(outlets) {
        let Outlet::Compatible(lane) = &**outlet else { continue };
        if calls.len() >= load.in_flight as usize
            && let Some(answered) = calls.next().await
        {
            note(answered)?;
        }
        calls.push(lane.send(number, load.payload()));
    }
    while let Some(answered) = calls.next().await {
        note(answered)?;
    }
    Ok(latencies)
}
