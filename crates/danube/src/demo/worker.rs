//! The workers of the story: they make thumbnails, after a fashion.
//!
//! Law: a worker says of a job only what it did with it: acknowledged, refused, or nothing at all.

use super::stage::{Stage, Turn};
use crate::compat::{Cluster, Consumer, ConsumerSpec, Received, SubscriptionType};
use crate::failure::Failure;
use danube_wire::proto::danube::StreamMessage;
use std::time::Duration;
use tonic::Status;

/// How long a worker waits for a job before the story has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A worker.
pub struct Worker {
    name: &'static str,
    consumer: Consumer,
}

/// A job in a worker's hands.
pub struct Job {
    received: Received,
    /// What it is to work on.
    pub file: String,
}

impl Job {
    /// The message that it came as.
    pub fn message(&self) -> &StreamMessage {
        &self.received.message
    }
}

impl Worker {
    /// Subscribes.
    ///
    /// # Errors
    /// What the broker said.
    pub async fn hire(
        name: &'static str,
        cluster: &Cluster,
        topic: &str,
        subscription: &str,
    ) -> Result<Worker, Failure> {
        let spec = ConsumerSpec {
            name: name.to_owned(),
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            kind: SubscriptionType::Shared,
            key_filters: Vec::new(),
        };
        Ok(Worker { name, consumer: Consumer::subscribe(cluster, spec).await? })
    }

    /// Waits for the next job.
    ///
    /// # Errors
    /// That none came.
    pub async fn next(&mut self) -> Result<Job, Failure> {
        let next = tokio::time::timeout(PATIENCE, self.consumer.next()).await;
        let received = next.map_err(|_| {
            Failure::refused(format!("{} got no job for {} s", self.name, PATIENCE.as_secs()))
        })??;
        let file = String::from_utf8_lossy(&received.message.payload).into_owned();
        Ok(Job { received, file })
    }

    /// It is done.
    ///
    /// # Errors
    /// What the broker said, or that nobody reads.
    pub async fn done(&self, stage: &Stage, job: &Job, note: &str) -> Result<(), Failure> {
        self.consumer.ack(&job.received).await.map_err(|status| self.refused(&status))?;
        stage.happens(self.name, &job.file, Turn::Good, &format!("done{note}")).await
    }

    /// It cannot be done.
    ///
    /// # Errors
    /// What the broker said, or that nobody reads.
    pub async fn fails(
        &self,
        stage: &Stage,
        job: &Job,
        reason: &str,
        note: &str,
    ) -> Result<(), Failure> {
        let nacked = self.consumer.nack(&job.received, reason).await;
        nacked.map_err(|status| self.refused(&status))?;
        stage.happens(self.name, &job.file, Turn::Bad, &format!("failed: {reason}{note}")).await
    }

    /// Dies with a job in its hands: its connection ends, and nobody says anything.
    ///
    /// # Errors
    /// That nobody reads.
    pub async fn dies(self, stage: &Stage, job: Job) -> Result<(), Failure> {
        let Worker { name, consumer } = self;
        drop(consumer);
        stage.happens(name, &job.file, Turn::Bad, "killed in the middle of it").await
    }

    fn refused(&self, status: &Status) -> Failure {
        Failure::refused(format!(
            "the broker did not listen to {}: {}",
            self.name,
            status.message()
        ))
    }
}
