//! The two ways in which a topic delivers, behind one face.
//!
//! [`ReliableTopic`](super::reliable::ReliableTopic) goes through the log and the subscription
//! engine; [`FanoutTopic`](super::fanout::FanoutTopic) goes from memory to whoever listens. The
//! actor knows only this face.
//!
//! Law: no method waits. A method that starts something slow hears of it later through
//! [`Dispatch::advance`].

use super::claim::{Claim, Outcome};
use super::describe::SubscriptionDescription;
use super::message::{OpenedProducer, OpenedStream, Publish, PublishBatch, Reply, Subscribe};
use super::stream::Wire;
use super::vitals::Sums;
use danube_core::settings::TopicSettings;
use danube_core::{
    ConsumerId, FailurePolicy, Fault, Offset, ProducerId, SubscriptionName, SubscriptionType, Tick,
    catalog,
};

/// What a topic can read: first offset kept, offset of the next message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) start: Offset,
    pub(super) next: Offset,
}

/// Why a consumer may not attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The subscription is exclusive, and this consumer holds it.
    Held(ConsumerId),
    /// The subscription has another type, and consumers.
    InUse(SubscriptionType),
}

/// How a topic delivers.
pub(super) trait Dispatch: Send {
    /// Takes a message; its reply is answered when it is as safe as the topic promises.
    fn publish(&mut self, publish: Publish);

    /// Opens a producer that numbers its messages, which the topic has attached.
    fn open_producer(&mut self, producer: ProducerId, reply: Reply<OpenedProducer>);

    /// Takes a numbered batch, as [`Dispatch::publish`] does.
    fn publish_batch(&mut self, batch: PublishBatch);

    /// What can be read now. A new subscription starts at its end.
    fn range(&self) -> Range;

    /// Whether `consumer` may attach to `subscription`, as type `kind` or as the type that it has.
    ///
    /// # Errors
    /// [`Refusal`]: somebody else is in the way.
    fn admit(
        &self,
        now: Tick,
        consumer: ConsumerId,
        subscription: &SubscriptionName,
        kind: Option<SubscriptionType>,
    ) -> Result<(), Refusal>;

    /// Whether there is a subscription of that name.
    fn has(&self, subscription: &SubscriptionName) -> bool;

    /// Attaches an admitted consumer to the subscription, which the catalog has as `record`.
    fn attach(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        wish: &Subscribe,
        record: &catalog::Subscription,
    );

    /// Opens the stream of an admitted consumer; one it had before ends.
    ///
    /// # Errors
    /// `NotFound`: there is no such subscription.
    fn open(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        subscription: &SubscriptionName,
        key_filters: &[String],
        wire: Wire,
    ) -> Result<OpenedStream, Fault>;

    /// Takes in what a client says of messages that it was given.
    fn settle(
        &mut self,
        now: Tick,
        subscription: &SubscriptionName,
        claims: Vec<Claim>,
        reply: Reply<Vec<Outcome>>,
    );

    /// Applies a new failure policy.
    fn set_policy(&mut self, now: Tick, subscription: &SubscriptionName, policy: FailurePolicy);

    /// Applies the topic's settings as they are now.
    fn set_settings(&mut self, now: Tick, settings: &TopicSettings);

    /// Makes a subscription that nobody has attached to yet.
    fn create(&mut self, now: Tick, name: &SubscriptionName, record: &catalog::Subscription);

    /// Applies another window.
    fn set_window(&mut self, now: Tick, subscription: &SubscriptionName, window_max: u32);

    /// Puts the cursor of a subscription and takes back what its streams have not taken. Answers
    /// where the cursor was; `None` when `reply` has been told why it cannot be.
    fn seek(
        &mut self,
        now: Tick,
        subscription: &SubscriptionName,
        to: Offset,
        reply: Reply<()>,
    ) -> Option<Offset>;

    /// Lets a subscription go; its consumers are told `fault`.
    fn remove(&mut self, subscription: &SubscriptionName, fault: &Fault);

    /// Takes note of everything that happened outside: a longer log, streams that drained or
    /// closed, work that completed, deadlines that passed. Answers the subscriptions that are to
    /// be removed because nobody has used them for too long.
    fn advance(&mut self, now: Tick) -> Vec<SubscriptionName>;

    /// Sends off what the turn collected.
    fn flush(&mut self);

    /// When [`Dispatch::advance`] has to be called next, if nothing else happens.
    fn next_deadline(&self) -> Option<Tick>;

    /// How many subscriptions there are.
    fn subscription_count(&self) -> usize;

    /// How many consumers have an open stream.
    fn connected(&self) -> u64;

    /// Brings the subscriptions' gauges up to date, and sums them up.
    fn measure(&mut self, now: Tick) -> Sums;

    /// The subscriptions as they stand, without their consumers' names; see
    /// [`Dispatch::consumer`].
    fn describe(&self, now: Tick) -> Vec<SubscriptionDescription>;

    /// Whether a consumer has an open stream, and how many messages it holds.
    fn consumer(&self, subscription: &SubscriptionName, consumer: ConsumerId) -> (bool, u64);

    /// Ends all streams with `fault`, because the topic stops.
    fn stop(&mut self, fault: &Fault);
}
