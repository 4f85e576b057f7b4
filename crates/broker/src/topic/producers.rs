//! Who publishes to a topic. The same name again is the same producer, come back; an exclusive
//! producer keeps others out for as long as it shows life.
//!
//! Law: an id follows from topic and name, so an unknown one is not an error but a producer that
//! was here before the last restart.

use super::message::AccessMode;
use danube_core::name::ProducerName;
use danube_core::{Fault, ProducerId, Tick, TopicId};
use std::collections::HashMap;

/// How long an exclusive producer may be silent before another may take its place: three periods
/// of the official clients' health check.
const EXCLUSIVE_SILENCE_MAX_MS: u64 = 15_000;
/// Producers remembered per topic; beyond it the one that was silent longest is forgotten, which
/// costs it nothing, since the next message attaches it again.
const REMEMBERED_MAX: usize = 10_000;

struct Producer {
    name: ProducerName,
    exclusive: bool,
    seen: Tick,
}

/// The producers of one topic.
pub(super) struct Producers {
    topic: TopicId,
    known: HashMap<ProducerId, Producer>,
    /// Most at a time; 0 means unlimited.
    limit: u32,
}

impl Producers {
    pub(super) fn new(topic: TopicId, limit: u32) -> Producers {
        Producers { topic, known: HashMap::new(), limit }
    }

    /// From now on at most `limit` at a time; those who are here stay.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn ids(&self) -> Vec<ProducerId> {
        self.known.keys().copied().collect()
    }

    /// Attaches `name`, or greets it again.
    ///
    /// # Errors
    /// `Precondition` while an exclusive producer of another name lives (or this one wants to be
    /// exclusive while others live); `Exhausted` above the topic's limit.
    pub(super) fn attach(
        &mut self,
        now: Tick,
        name: ProducerName,
        mode: AccessMode,
    ) -> Result<ProducerId, Fault> {
        let id = ProducerId::derive(self.topic, name.as_str());
        let exclusive = mode == AccessMode::Exclusive;
        let in_the_way = self.known.iter().find(|(other, producer)| {
            **other != id
                && (exclusive || producer.exclusive)
                && now < producer.seen.after_ms(EXCLUSIVE_SILENCE_MAX_MS)
        });
        if let Some((_, other)) = in_the_way {
            return Err(Fault::precondition(format!(
                "producer `{name}` cannot attach: producer `{}` is attached{}; \
                 it gives way {EXCLUSIVE_SILENCE_MAX_MS} ms after its last sign of life",
                other.name,
                if other.exclusive { " exclusively" } else { "" },
            )));
        }
        if !self.known.contains_key(&id) {
            if self.limit > 0 && self.known.len() >= self.limit as usize {
                return Err(Fault::exhausted(format!(
                    "the topic has {} producers, its max_producers_per_topic; try again later",
                    self.limit
                )));
            }
            self.forget_one_if_full();
        }
        self.known.insert(id, Producer { name, exclusive, seen: now });
        Ok(id)
    }

    /// Notes a message of `id`, attaching it again if it is not known.
    ///
    /// # Errors
    /// As [`Producers::attach`], and `Invalid` when `id` is not that of `name`.
    pub(super) fn publishes(
        &mut self,
        now: Tick,
        id: ProducerId,
        name: &ProducerName,
    ) -> Result<(), Fault> {
        if let Some(producer) = self.known.get_mut(&id) {
            producer.seen = now;
            return Ok(());
        }
        if ProducerId::derive(self.topic, name.as_str()) != id {
            return Err(Fault::invalid(format!(
                "producer id {id} is not that of producer `{name}` on this topic; \
                 create the producer again"
            )));
        }
        self.attach(now, name.clone(), AccessMode::Shared).map(|_| ())
    }

    /// Notes a sign of life of `id`; whether it is known.
    pub(super) fn lives(&mut self, now: Tick, id: ProducerId) -> bool {
        self.known.get_mut(&id).map(|producer| producer.seen = now).is_some()
    }

    fn forget_one_if_full(&mut self) {
        if self.known.len() < REMEMBERED_MAX {
            return;
        }
        let silent = self.known.iter().min_by_key(|(_, producer)| producer.seen);
        if let Some(id) = silent.map(|(id, _)| *id) {
            self.known.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ProducerName {
        ProducerName::parse(text).expect("well formed")
    }

    #[test]
    fn the_same_name_is_the_same_producer() {
        let mut producers = Producers::new(TopicId(3), 0);
        let first = producers.attach(Tick(0), name("p"), AccessMode::Shared).expect("free");
        let again = producers.attach(Tick(9), name("p"), AccessMode::Shared).expect("free");
        assert_eq!((first, producers.len()), (again, 1));
    }

    #[test]
    fn an_exclusive_producer_keeps_others_out_until_it_is_silent() {
        let mut producers = Producers::new(TopicId(3), 0);
        let id = producers.attach(Tick(0), name("a"), AccessMode::Exclusive).expect("free");
        let refusal = producers.attach(Tick(10), name("b"), AccessMode::Shared);
        assert!(refusal.expect_err("taken").message.contains("`a` is attached exclusively"));
        assert!(producers.lives(Tick(10_000), id));
        assert!(producers.attach(Tick(20_000), name("b"), AccessMode::Shared).is_err());
        assert!(producers.attach(Tick(25_000), name("b"), AccessMode::Shared).is_ok());
    }

    #[test]
    fn an_id_from_before_a_restart_is_attached_by_its_message() {
        let mut producers = Producers::new(TopicId(3), 1);
        let id = ProducerId::derive(TopicId(3), "p");
        assert!(producers.publishes(Tick(0), id, &name("p")).is_ok());
        assert!(producers.publishes(Tick(0), ProducerId(id.0 ^ 1), &name("p")).is_err());
        let over = producers.attach(Tick(0), name("q"), AccessMode::Shared);
        assert!(over.expect_err("limit").message.contains("max_producers_per_topic"));
    }
}
