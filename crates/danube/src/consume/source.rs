//! Where messages come from: a consumer on either wire.
//!
//! Law: an ack is asked for before the next message is printed, and answered before the command
//! ends; one that fails is told, and changes nothing else.

use super::Arguments;
use super::print::Printed;
use crate::compat::{self, Cluster, ConsumerSpec, SubscriptionType};
use crate::failure::Failure;
use crate::wire::{self, Wire};
use danube_core::{SubscriptionName, TopicName};
use danube_sdk::{Ack, Client};
use std::collections::VecDeque;

/// Acks that are not answered; beyond them the oldest is waited for.
const ACKS_MAX: usize = 1_000;
/// Messages that may wait for being printed.
const PREFETCH_MAX: u64 = 1_000;

/// A consumer on either wire.
pub enum Source {
    /// Over `danube.stream.v1`.
    Native {
        /// The consumer.
        consumer: danube_sdk::Consumer,
        /// Asked for and not known to be answered, oldest first.
        acks: VecDeque<Ack>,
    },
    /// As the published clients do it.
    Compatible(compat::Consumer),
}

/// A message that is not settled yet.
pub enum Received {
    /// From [`Source::Native`].
    Native(danube_sdk::Message),
    /// From [`Source::Compatible`].
    Compatible(compat::Received),
}

impl Received {
    /// What is printed of it.
    pub fn printed(&self) -> Printed {
        match self {
            Received::Native(message) => message.into(),
            Received::Compatible(received) => (&received.message).into(),
        }
    }
}

impl Source {
    /// Subscribes as the flags say.
    ///
    /// # Errors
    /// Why nothing can be received.
    pub async fn subscribe(
        arguments: &Arguments,
        topic: &TopicName,
        subscription: &SubscriptionName,
    ) -> Result<Source, Failure> {
        if arguments.wire == Wire::Compatible {
            let cluster = Cluster::connect(&arguments.service_addr).await?;
            let spec = ConsumerSpec {
                name: arguments.consumer.clone(),
                topic: topic.to_string(),
                subscription: subscription.to_string(),
                kind: arguments.sub_type,
                key_filters: arguments.key_filter.clone(),
            };
            return Ok(Source::Compatible(compat::Consumer::subscribe(&cluster, spec).await?));
        }
        let doing = format!("no subscription `{subscription}` on topic `{topic}`");
        let failed = |error| wire::failure(&doing, &error);
        let client = Client::connect(&arguments.service_addr).await.map_err(failed)?;
        let builder = client.consumer(topic.as_str(), subscription.as_str());
        let builder = match arguments.sub_type {
            SubscriptionType::Exclusive => builder.exclusive(),
            SubscriptionType::Shared => builder.shared(),
            SubscriptionType::Failover => builder.failover(),
            SubscriptionType::KeyShared => builder.key_shared(arguments.key_filter.iter()),
        };
        // What will not be printed stays with the broker, for other consumers.
        let prefetch = arguments.count.unwrap_or(PREFETCH_MAX).min(PREFETCH_MAX);
        let builder = builder.name(&arguments.consumer).prefetch(prefetch as u32);
        let consumer = builder.subscribe().await.map_err(failed)?;
        Ok(Source::Native { consumer, acks: VecDeque::new() })
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// That nothing can be received any more, and why.
    pub async fn next(&mut self) -> Result<Received, Failure> {
        match self {
            Source::Compatible(consumer) => consumer.next().await.map(Received::Compatible),
            Source::Native { consumer, .. } => {
                let next = consumer.next().await.map(Received::Native);
                next.map_err(|error| wire::failure("nothing can be received any more", &error))
            }
        }
    }

    /// Finishes a message.
    pub async fn ack(&mut self, received: &Received) {
        match (self, received) {
            (Source::Native { consumer, acks }, Received::Native(message)) => {
                acks.push_back(consumer.ack(message));
                if acks.len() > ACKS_MAX
                    && let Some(oldest) = acks.pop_front()
                {
                    warn_if_failed(oldest.await.map_err(|error| error.to_string()));
                }
            }
            (Source::Compatible(consumer), Received::Compatible(received)) => {
                let acked = consumer.ack(received).await;
                warn_if_failed(acked.map_err(|status| status.message().to_owned()));
            }
            _ => unreachable!("a message is acknowledged where it came from"),
        }
    }

    /// Waits for what is not answered, and gives back what is not acknowledged.
    pub async fn close(self) {
        if let Source::Native { consumer, acks } = self {
            for ack in acks {
                warn_if_failed(ack.await.map_err(|error| error.to_string()));
            }
            consumer.close().await;
        }
    }
}

/// It comes again, once the broker is back; that is what at least once means.
fn warn_if_failed(acked: Result<(), String>) {
    if let Err(why) = acked {
        eprintln!("warning: a message was not acknowledged: {why}");
    }
}
