//! Topics: one actor per topic partition owns its state; everybody else holds a [`TopicHandle`].
//!
//! The actor assigns nothing to chance: messages of its mailbox come in order, publishes go to
//! the log in that order, and the log numbers them. What this module leaves to others: which
//! topics exist (the catalog), which actor serves which name ([`crate::topics`]), and how bytes
//! are kept (the log).
//!
//! Law: nobody but the actor touches a topic's state, but for what is at its entrance, and the actor
//! never waits for anything but its own inputs.

mod actor;
mod claim;
mod describe;
mod dispatch;
mod entrance;
mod fanout;
mod message;
mod producers;
mod reliable;
mod stream;
#[cfg(test)]
mod tests;
mod vitals;

pub(crate) use claim::{Claim, Outcome, Verdict};
pub(crate) use describe::{SubscriptionDescription, TopicDescription};
pub(crate) use fanout::VolatileOffsets;
pub(crate) use message::{
    AccessMode, BatchFault, OpenedProducer, OpenedStream, PublishBatch, StopReason, Stopped,
    Subscribe,
};
pub use stream::ConsumerStream;
pub(crate) use stream::{Ended, QueueReader, Terms, Wire};
pub(crate) use vitals::{Vital, Vitals};

use crate::context::{CALL_TIMEOUT, Context};
use crate::metrics::TopicMetrics;
use crate::schema::TopicGate;
use arc_swap::ArcSwap;
use bytes::Bytes;
use danube_core::name::ProducerName;
use danube_core::settings::{Limit, TopicSettings};
use danube_core::{
    ConsumerId, Delivery, Epoch, FailurePolicy, Fault, Offset, ProducerId, SubscriptionName,
    TopicId, TopicName, WalSyncMode, catalog,
};
use entrance::Entrance;
use message::{Message, Publish, Reply};
use reliable::Straight;
use std::sync::Arc;
use stream::Signals;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait in a topic's mailbox.
const MAILBOX_LEN_MAX: usize = 1024;

/// What never changes about a topic while it is loaded.
#[derive(Debug)]
pub(crate) struct TopicIdentity {
    pub(crate) name: TopicName,
    pub(crate) id: TopicId,
    pub(crate) epoch: Epoch,
    pub(crate) delivery: Delivery,
    pub(crate) wal_sync_mode: WalSyncMode,
}

impl TopicIdentity {
    fn no_subscription(&self, name: &SubscriptionName) -> Fault {
        Fault::not_found(format!(
            "topic `{}` has no subscription `{name}`; subscribe first",
            self.name
        ))
    }
}

/// What holds for a topic; it can change while messages pass.
pub(crate) type LiveSettings = ArcSwap<TopicSettings>;

/// The way to a topic's actor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TopicHandle {
    identity: Arc<TopicIdentity>,
    settings: Arc<LiveSettings>,
    gate: Arc<TopicGate>,
    metrics: Arc<TopicMetrics>,
    vitals: Arc<Vitals>,
    mailbox: mpsc::Sender<Message>,
    entrance: Arc<Entrance>,
    /// The way to the log, where there is one.
    straight: Option<Arc<Straight>>,
}

impl TopicHandle {
    /// Loads the topic: makes its state from the catalog and the log, and starts its actor.
    pub(crate) fn load(
        context: &Arc<Context>,
        name: &TopicName,
        topic: &catalog::Topic,
    ) -> TopicHandle {
        let settings = context.settings(&context.meta.view(), name, topic);
        let identity = Arc::new(TopicIdentity {
            name: name.clone(),
            id: topic.id,
            epoch: topic.epoch,
            delivery: topic.delivery,
            wal_sync_mode: settings.wal_sync_mode.value,
        });
        let settings = Arc::new(LiveSettings::from_pointee(settings));
        let (mailbox, requests) = mpsc::channel(MAILBOX_LEN_MAX);
        let entrance = Arc::new(Entrance::new(&identity, &settings));
        let metrics = context.metrics.topic(name);
        let signals: Arc<Signals> = Arc::default();
        let straight = (identity.delivery == Delivery::Reliable)
            .then(|| Arc::new(Straight::new(context, &identity, &metrics, &signals)));
        let vitals = Arc::default();
        let actor = actor::TopicActor::load(
            context,
            &identity,
            &settings,
            &entrance,
            (Arc::clone(&metrics), signals, Arc::clone(&vitals)),
            topic,
            requests,
        );
        tokio::spawn(actor.run());
        let gate = Arc::new(TopicGate::new(name, &metrics));
        TopicHandle { identity, settings, gate, metrics, vitals, mailbox, entrance, straight }
    }

    pub(crate) fn identity(&self) -> &TopicIdentity {
        &self.identity
    }

    /// One of the limits that hold now; 0 is no limit.
    pub(crate) fn limit(&self, limit: Limit) -> u32 {
        self.settings.load().limit(limit).value
    }

    /// Its figures as its actor left them last.
    pub(crate) fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// What a message has to pass before it is published.
    pub(crate) fn gate(&self) -> &TopicGate {
        &self.gate
    }

    pub(crate) fn metrics(&self) -> &Arc<TopicMetrics> {
        &self.metrics
    }

    fn stopped(&self) -> Fault {
        Fault::retry(format!("topic `{}` is being unloaded; try again", self.identity.name))
    }

    async fn call<T>(&self, make: impl FnOnce(Reply<T>) -> Message) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let call = async {
            self.mailbox.send(make(reply)).await.map_err(|_| self.stopped())?;
            answer.await.map_err(|_| self.stopped())?
        };
        tokio::time::timeout(CALL_TIMEOUT, call).await.unwrap_or_else(|_| {
            Err(Fault::retry(format!(
                "topic `{}` did not answer within {} s; it is not known whether the request \
                 took effect",
                self.identity.name,
                CALL_TIMEOUT.as_secs()
            )))
        })
    }

    /// Publishes one record; the answer is its offset, once it is as durable as the topic says.
    pub(crate) async fn publish(
        &self,
        context: &Context,
        producer: ProducerId,
        producer_name: ProducerName,
        record: Bytes,
    ) -> Result<Offset, Fault> {
        let bytes = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let memory = Arc::clone(&context.publish_memory);
        let permit = memory.try_acquire_many_owned(bytes).map_err(|_| {
            Fault::exhausted(format!(
                "topic `{}`: too many publishes wait for the log; retry after 100 ms",
                self.identity.name
            ))
        })?;
        let arrived = context.clock.elapsed();
        self.call(|reply| {
            let publish = Publish { producer, producer_name, record, arrived, permit, reply };
            Message::Publish(Box::new(publish))
        })
        .await
    }

    pub(crate) async fn create_producer(
        &self,
        name: ProducerName,
        mode: AccessMode,
    ) -> Result<ProducerId, Fault> {
        self.call(|reply| Message::CreateProducer { name, mode, reply }).await
    }

    /// Whether a consumer may attach; the answer is where a new subscription would start.
    pub(crate) async fn admit(&self, wish: Subscribe) -> Result<Offset, Fault> {
        self.call(|reply| Message::Admit { wish: Box::new(wish), reply }).await
    }

    pub(crate) async fn attach(
        &self,
        wish: Subscribe,
        record: catalog::Subscription,
    ) -> Result<ConsumerId, Fault> {
        let (wish, record) = (Box::new(wish), Box::new(record));
        self.call(|reply| Message::Attach { wish, record, reply }).await
    }

    /// Opens the stream of an attached consumer; one that it had before ends.
    pub(crate) async fn open(
        &self,
        consumer: ConsumerId,
        wire: Wire,
    ) -> Result<OpenedStream, Fault> {
        self.call(|reply| Message::Open { consumer, wire, reply }).await
    }

    /// Attaches a producer that numbers its messages; its earlier streams are fenced.
    pub(crate) async fn open_producer(
        &self,
        name: ProducerName,
        mode: AccessMode,
    ) -> Result<OpenedProducer, Fault> {
        self.call(|reply| Message::OpenProducer { name, mode, reply }).await
    }

    /// Hands over a numbered batch. Waits while the topic has no room for it.
    ///
    /// # Errors
    /// The batch, when the topic has stopped.
    pub(crate) async fn publish_batch(&self, batch: PublishBatch) -> Result<(), Box<PublishBatch>> {
        if let Some(straight) = &self.straight {
            return straight.publish(&self.entrance, batch);
        }
        let sent = self.mailbox.send(Message::PublishBatch(Box::new(batch))).await;
        sent.map_err(|refused| match refused.0 {
            Message::PublishBatch(batch) => batch,
            _ => unreachable!("it comes back as it was sent"),
        })
    }

    /// Takes in what a client says of messages that it was given; the outcome of each claim, once
    /// a restart would know of it.
    pub(crate) async fn settle(
        &self,
        subscription: SubscriptionName,
        claims: Vec<Claim>,
    ) -> Result<Vec<Outcome>, Fault> {
        claim::check(&claims)?;
        self.call(|reply| Message::Settle { subscription, claims, reply }).await
    }

    pub(crate) async fn consumer_health(&self, consumer: ConsumerId) -> Result<(), Fault> {
        self.call(|reply| Message::ConsumerHealth { consumer, reply }).await
    }

    pub(crate) async fn producer_health(&self, producer: ProducerId) -> Result<(), Fault> {
        self.call(|reply| Message::ProducerHealth { producer, reply }).await
    }

    pub(crate) async fn describe(&self) -> Result<TopicDescription, Fault> {
        self.call(|reply| Message::Describe { reply }).await
    }

    /// Tells the topic that the catalog has a new failure policy.
    pub(crate) async fn policy_changed(
        &self,
        subscription: SubscriptionName,
        policy: FailurePolicy,
    ) {
        let message = Message::PolicyChanged { subscription, policy: Box::new(policy) };
        // A topic that has just stopped reads the policy when it is loaded again.
        let _ = self.mailbox.send(message).await;
    }

    /// Tells the topic what holds from now on.
    pub(crate) async fn settings_changed(&self, settings: TopicSettings) {
        if **self.settings.load() != settings {
            self.settings.store(Arc::new(settings));
            // A topic that has just stopped reads its settings when it is loaded again.
            let _ = self.mailbox.send(Message::SettingsChanged).await;
        }
    }

    /// Tells the topic that the catalog has a subscription that nobody has attached to yet.
    pub(crate) async fn subscription_created(
        &self,
        name: SubscriptionName,
        record: catalog::Subscription,
    ) {
        let message = Message::SubscriptionCreated { name, record: Box::new(record) };
        // A topic that has just stopped reads its subscriptions when it is loaded again.
        let _ = self.mailbox.send(message).await;
    }

    /// Tells the topic that the catalog has another window for the subscription.
    pub(crate) async fn window_changed(
        &self,
        subscription: SubscriptionName,
        max_unacked_messages: u32,
    ) {
        let message = Message::WindowChanged { subscription, max_unacked_messages };
        // A topic that has just stopped reads the window when it is loaded again.
        let _ = self.mailbox.send(message).await;
    }

    /// Tells the topic that its log has more than it appended itself.
    pub(crate) fn log_grew(&self) {
        // One that has its mailbox full takes a turn anyway, and one that stopped reads it all when
        // it is loaded again.
        let _ = self.mailbox.try_send(Message::LogGrew);
    }

    /// Puts the cursor of a subscription; answers where it was, once a restart would know.
    pub(crate) async fn seek(
        &self,
        subscription: SubscriptionName,
        to: Offset,
    ) -> Result<Offset, Fault> {
        let (before, old) = oneshot::channel();
        self.call(|reply| Message::Seek { subscription, to, before, reply }).await?;
        old.await.map_err(|_| self.stopped())
    }

    /// Tells the topic that the catalog no longer has the subscription.
    pub(crate) async fn unsubscribed(&self, subscription: SubscriptionName) {
        let _ = self.mailbox.send(Message::Unsubscribed { subscription }).await;
    }

    /// Stops the actor, after everything that was asked before; answers what was attached.
    pub(crate) async fn stop(&self, reason: StopReason) -> Stopped {
        let (reply, answer) = oneshot::channel();
        if self.mailbox.send(Message::Stop { reason, reply }).await.is_err() {
            return Stopped::default();
        }
        answer.await.unwrap_or_default()
    }
}
