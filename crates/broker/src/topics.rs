//! Which actor serves which topic.
//!
//! Topics are loaded by the first request that needs them and stay until they are deleted,
//! unloaded, or the broker stops. What this leaves to others: whether a topic exists is the
//! catalog's word alone.
//!
//! Law: at most one actor per topic at a time: loading happens under one lock, and a topic is
//! taken out of the map before its actor is told to stop.

use crate::clock::Clock;
use crate::context::Context;
use crate::topic::{StopReason, TopicHandle, VolatileOffsets};
use danube_core::change::{Change, CreateTopic};
use danube_core::{
    ConsumerId, Delivery, Fault, FaultKind, Incarnation, ProducerId, TopicId, TopicName, catalog,
};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ids remembered to be told "close" at their next health check.
const CLOSING_LEN_MAX: usize = 65_536;

/// Topics looked at in one go at the start.
const LOADED_AT_ONCE: usize = 64;

/// The loaded topics of a broker.
#[derive(Default)]
pub(crate) struct Topics {
    loaded: RwLock<HashMap<TopicId, TopicHandle>>,
    volatile: Mutex<HashMap<TopicId, VolatileOffsets>>,
    closing: Mutex<Closing>,
    stopping: AtomicBool,
}

impl Topics {
    /// The topic of that name, loaded if need be.
    ///
    /// # Errors
    /// `NotFound` when the catalog has no such topic; `Retry` while the broker stops.
    pub(crate) fn get(
        &self,
        context: &Arc<Context>,
        name: &TopicName,
    ) -> Result<TopicHandle, Fault> {
        let catalog = context.meta.view();
        let topic = catalog.topic(name).ok_or_else(|| {
            Fault::not_found(format!(
                "topic `{name}` not found; create it, or let its first producer do so"
            ))
        })?;
        self.load(context, name, topic)
    }

    /// The topic of that number, loaded if need be; `None` when the catalog has no such topic.
    pub(crate) fn get_by_id(
        &self,
        context: &Arc<Context>,
        id: TopicId,
    ) -> Result<Option<TopicHandle>, Fault> {
        if let Some(handle) = self.loaded.read().get(&id) {
            return Ok(Some(handle.clone()));
        }
        let catalog = context.meta.view();
        let Some((name, topic)) = catalog.topic_by_id(id) else { return Ok(None) };
        self.load(context, name, topic).map(Some)
    }

    fn load(
        &self,
        context: &Arc<Context>,
        name: &TopicName,
        topic: &danube_core::catalog::Topic,
    ) -> Result<TopicHandle, Fault> {
        if let Some(handle) = self.loaded.read().get(&topic.id) {
            return Ok(handle.clone());
        }
        let mut loaded = self.loaded.write();
        if self.is_stopping() {
            return Err(Fault::retry("the broker is stopping; connect again"));
        }
        // The catalog may have moved on while we waited for the lock.
        let view = context.meta.view();
        let Some((_, topic)) = view.topic_by_id(topic.id) else {
            return Err(Fault::not_found(format!("topic `{name}` was deleted")));
        };
        let handle = loaded.entry(topic.id).or_insert_with(|| {
            let handle = TopicHandle::load(context, name, topic);
            // Under the lock: whoever changes it later finds the topic in the map.
            handle.gate().set(context, &view, topic);
            handle
        });
        Ok(handle.clone())
    }

    /// The topic of that name, created as `delivery` when there is none.
    ///
    /// # Errors
    /// As [`Topics::get`], and whatever the catalog refuses.
    pub(crate) async fn get_or_create(
        &self,
        context: &Arc<Context>,
        name: &TopicName,
        delivery: Delivery,
    ) -> Result<TopicHandle, Fault> {
        match self.get(context, name) {
            Err(fault) if fault.kind == FaultKind::NotFound => {}
            found => return found,
        }
        if !context.options.auto_create_topics {
            return Err(Fault::not_found(format!(
                "topic `{name}` not found and auto_create_topics is off; create it with \
                 `danube ctl topics create {name}`"
            )));
        }
        let change = Change::CreateTopic(CreateTopic {
            name: name.clone(),
            partitions: None,
            intent: None,
            delivery,
            schema_subject: None,
            dead_letter_topic: None,
            implicit: true,
        });
        match context.meta.propose(change, Clock::wall()).await {
            Ok(_) => {
                tracing::info!(topic = %name, delivery = delivery.as_str(), "created for its first producer")
            }
            // Another producer was first; or the name clashes, which `get` will tell below.
            Err(fault) if fault.kind == FaultKind::AlreadyExists => {
                return self.get(context, name).map_err(|_| fault);
            }
            Err(fault) => return Err(fault),
        }
        self.get(context, name)
    }

    /// Stops the topic's actor, if it is loaded; its consumers and producers are told to close at
    /// their next health check.
    pub(crate) async fn stop(&self, id: TopicId, reason: StopReason) {
        let handle = self.loaded.write().remove(&id);
        let Some(handle) = handle else { return };
        let stopped = handle.stop(reason).await;
        let mut closing = self.closing.lock();
        stopped.consumers.into_iter().for_each(|id| closing.insert(id.0));
        stopped.producers.into_iter().for_each(|ProducerId(id)| closing.insert(id));
    }

    /// Loads the topics with unfinished messages or dead letters, so that the metrics tell of them
    /// before anybody connects.
    pub(crate) async fn load_waiting(&self, context: &Arc<Context>) {
        let catalog = context.meta.view();
        for (index, (name, topic)) in catalog.topics().enumerate() {
            if topic.delivery == Delivery::Reliable && has_waiting(context, name, topic) {
                // One that was deleted meanwhile, or a broker that stops, needs no metrics.
                if let Ok(Some(handle)) = self.get_by_id(context, topic.id) {
                    handle.log_grew();
                }
            }
            if index % LOADED_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The topic of that number, if it is loaded.
    pub(crate) fn if_loaded(&self, id: TopicId) -> Option<TopicHandle> {
        self.loaded.read().get(&id).cloned()
    }

    /// The topics that are loaded now.
    pub(crate) fn loaded(&self) -> Vec<TopicHandle> {
        self.loaded.read().values().cloned().collect()
    }

    /// How many topics are loaded now.
    pub(crate) fn len(&self) -> usize {
        self.loaded.read().len()
    }

    /// Whether the broker is on its way out.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Stops every actor; none is loaded any more.
    pub(crate) async fn stop_all(&self) {
        self.stopping.store(true, Ordering::Release);
        let handles: Vec<TopicHandle> = {
            let mut loaded = self.loaded.write();
            loaded.drain().map(|(_, handle)| handle).collect()
        };
        for handle in handles {
            handle.stop(StopReason::Shutdown).await;
        }
    }

    /// Whether `id` belonged to a topic that stopped since it was last asked about.
    pub(crate) fn take_closing(&self, id: u64) -> bool {
        self.closing.lock().remove(id)
    }

    /// A consumer that attached again need not be told to close.
    pub(crate) fn not_closing(&self, consumer: ConsumerId) {
        self.closing.lock().remove(consumer.0);
    }

    /// The offsets of a `NonReliable` topic; the same ones when it is loaded again.
    pub(crate) fn volatile_offsets(
        &self,
        incarnation: Incarnation,
        id: TopicId,
    ) -> VolatileOffsets {
        let mut volatile = self.volatile.lock();
        volatile.entry(id).or_insert_with(|| VolatileOffsets::starting(incarnation)).clone()
    }

    /// Forgets what was kept for a topic that is deleted for good.
    pub(crate) fn forget(&self, id: TopicId) {
        self.volatile.lock().remove(&id);
    }
}

fn has_waiting(context: &Context, name: &TopicName, topic: &catalog::Topic) -> bool {
    let log = context.store.topic(topic.id, topic.epoch);
    let bounds = log.bounds();
    let behind = |known: &catalog::Subscription| {
        log.subscription(known.id, known.start).backlog(bounds.next) > 0
    };
    bounds.next > bounds.start
        && (name.is_dead_letter() || topic.subscriptions.values().any(behind))
}

/// Ids to be told "close" once. Bounded: beyond its length the oldest are forgotten, and are then
/// told "not found", which ends a client's health check as well.
#[derive(Default)]
struct Closing {
    ids: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Closing {
    fn insert(&mut self, id: u64) {
        if self.ids.insert(id) {
            self.order.push_back(id);
        }
        while self.order.len() > CLOSING_LEN_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, id: u64) -> bool {
        self.ids.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_to_close_once_and_the_list_is_bounded() {
        let mut closing = Closing::default();
        closing.insert(7);
        assert!(closing.remove(7));
        assert!(!closing.remove(7));
        for id in 0..(CLOSING_LEN_MAX as u64 + 10) {
            closing.insert(id);
        }
        assert!(closing.order.len() <= CLOSING_LEN_MAX && closing.ids.len() <= CLOSING_LEN_MAX);
        assert!(closing.remove(CLOSING_LEN_MAX as u64));
    }
}
