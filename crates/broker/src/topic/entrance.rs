//! What a publish has to pass before it goes to the log: its producer is known, and the topic's rate
//! is kept.
//!
//! Numbered batches of a reliable topic go from their stream straight to the log, past the topic's
//! actor: the log itself puts them in order, and a batch that does not wait for the actor's turn is
//! answered a thread's wake-up earlier. So this, and nothing else of a topic, is shared by its
//! actor and those streams.
//!
//! Law: no publish is admitted after the topic was closed, and nothing waits under the lock.

use super::message::AccessMode;
use super::producers::Producers;
use super::{LiveSettings, TopicIdentity};
use danube_core::name::ProducerName;
use danube_core::rate::RateLimit;
use danube_core::settings::Limit;
use danube_core::{Fault, ProducerId, Tick};
use parking_lot::Mutex;
use std::sync::Arc;

/// The entrance of one topic.
pub(super) struct Entrance {
    topic: Arc<TopicIdentity>,
    settings: Arc<LiveSettings>,
    state: Mutex<State>,
}

struct State {
    producers: Producers,
    rate: RateLimit,
    is_closed: bool,
}

/// Why a publish may not pass.
pub(super) enum Turned {
    /// The topic is served here no more.
    Away,
    /// As the fault says.
    Down(Fault),
}

impl Entrance {
    pub(super) fn new(topic: &Arc<TopicIdentity>, settings: &Arc<LiveSettings>) -> Entrance {
        let now = settings.load();
        let state = State {
            producers: Producers::new(topic.id, now.limit(Limit::MaxProducersPerTopic).value),
            rate: RateLimit::new(now.limit(Limit::MaxPublishRate).value),
            is_closed: false,
        };
        Entrance {
            topic: Arc::clone(topic),
            settings: Arc::clone(settings),
            state: Mutex::new(state),
        }
    }

    /// Takes the settings as they are now.
    pub(super) fn settings_changed(&self) {
        let settings = self.settings.load();
        let mut state = self.state.lock();
        state.rate.set(settings.limit(Limit::MaxPublishRate).value);
        state.producers.set_limit(settings.limit(Limit::MaxProducersPerTopic).value);
    }

    /// Whether `count` messages of a producer may pass now.
    ///
    /// # Errors
    /// [`Turned`]: the topic is gone, the producer may not publish, or the rate is reached.
    pub(super) fn admit(
        &self,
        now: Tick,
        producer: ProducerId,
        name: &ProducerName,
        count: u64,
    ) -> Result<(), Turned> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Turned::Away);
        }
        state.producers.publishes(now, producer, name).map_err(Turned::Down)?;
        match state.rate.wait_ms(now) {
            0 => {
                state.rate.take(count);
                Ok(())
            }
            ms => Err(Turned::Down(self.too_many(ms))),
        }
    }

    fn too_many(&self, ms: u64) -> Fault {
        let max = self.settings.load().limit(Limit::MaxPublishRate).value;
        Fault::exhausted(format!(
            "topic `{}` is at its max_publish_rate of {max} messages per second; retry after {ms} \
             ms",
            self.topic.name
        ))
    }

    /// Attaches a producer; how many there are afterwards.
    pub(super) fn attach(
        &self,
        now: Tick,
        name: ProducerName,
        mode: AccessMode,
    ) -> (Result<ProducerId, Fault>, usize) {
        let mut state = self.state.lock();
        let attached = state.producers.attach(now, name, mode);
        (attached, state.producers.len())
    }

    /// How many producers are attached.
    pub(super) fn producer_count(&self) -> u64 {
        self.state.lock().producers.len() as u64
    }

    /// Notes a sign of life; whether the producer is known.
    pub(super) fn lives(&self, now: Tick, producer: ProducerId) -> bool {
        self.state.lock().producers.lives(now, producer)
    }

    /// Lets nothing in any more; answers who was attached.
    pub(super) fn close(&self) -> Vec<ProducerId> {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.producers.ids()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::catalog::Catalog;
    use danube_core::change::{Change, Command, CreateTopic};
    use danube_core::settings::{BrokerDefaults, TopicSettings};
    use danube_core::{Delivery, FaultKind, TopicName, WallMs};

    /// The entrance of a topic, with what its actor has of it.
    struct House {
        catalog: Catalog,
        name: TopicName,
        settings: Arc<LiveSettings>,
        entrance: Entrance,
    }

    impl House {
        fn new(limits: &[(Limit, u32)]) -> House {
            let name = TopicName::parse("/default/t").expect("well formed");
            let create = CreateTopic {
                name: name.clone(),
                partitions: None,
                intent: None,
                delivery: Delivery::Reliable,
                schema_subject: None,
                dead_letter_topic: None,
                implicit: false,
            };
            let mut catalog = Catalog::default();
            let create = Command::new(Change::CreateTopic(create), WallMs(1));
            catalog.apply(&create).expect("created");
            let topic = catalog.topic(&name).expect("created");
            let held = resolve(&catalog, &name, limits);
            let identity = Arc::new(TopicIdentity {
                name: name.clone(),
                id: topic.id,
                epoch: topic.epoch,
                delivery: topic.delivery,
                wal_sync_mode: held.wal_sync_mode.value,
            });
            let settings = Arc::new(LiveSettings::from_pointee(held));
            let entrance = Entrance::new(&identity, &settings);
            House { catalog, name, settings, entrance }
        }

        /// From now on these limits hold, and no others.
        fn change(&self, limits: &[(Limit, u32)]) {
            self.settings.store(Arc::new(resolve(&self.catalog, &self.name, limits)));
            self.entrance.settings_changed();
        }

        fn id(&self, producer: &str) -> ProducerId {
            ProducerId::derive(self.entrance.topic.id, producer)
        }

        fn admit(&self, now: u64, producer: &str, count: u64) -> Result<(), Turned> {
            self.entrance.admit(Tick(now), self.id(producer), &name(producer), count)
        }

        /// Whether the publish passes; else why it is turned down.
        fn told(&self, now: u64, producer: &str, count: u64) -> Option<Fault> {
            self.admit(now, producer, count).err().map(down)
        }
    }

    fn resolve(catalog: &Catalog, name: &TopicName, limits: &[(Limit, u32)]) -> TopicSettings {
        let defaults = BrokerDefaults {
            limits: limits.iter().copied().collect(),
            max_unacked_messages: 64,
            max_unacked_messages_native: 64,
        };
        TopicSettings::resolve(catalog, name, catalog.topic(name).expect("created"), &defaults)
    }

    fn name(text: &str) -> ProducerName {
        ProducerName::parse(text).expect("well formed")
    }

    fn down(turned: Turned) -> Fault {
        match turned {
            Turned::Down(fault) => fault,
            Turned::Away => panic!("the topic is served"),
        }
    }

    #[test]
    fn after_the_topic_closed_everybody_is_turned_away() {
        let house = House::new(&[(Limit::MaxPublishRate, 1)]);
        let (attached, count) = house.entrance.attach(Tick(0), name("p"), AccessMode::Shared);
        assert_eq!((attached, count), (Ok(house.id("p")), 1));
        assert_eq!(house.told(0, "p", 1), None);
        assert_eq!(house.entrance.close(), [house.id("p")]);
        // Above the rate, a stranger, and long after: the topic is gone before anything is asked.
        for (now, producer) in [(0, "p"), (0, "q"), (60_000, "p")] {
            assert!(matches!(house.admit(now, producer, 1), Err(Turned::Away)), "{producer}");
        }
        assert_eq!(house.entrance.producer_count(), 1, "nobody is attached any more");
    }

    #[test]
    fn an_id_of_another_name_is_turned_down_and_one_from_before_a_restart_is_not() {
        let house = House::new(&[(Limit::MaxPublishRate, 1)]);
        let forged = house.entrance.admit(Tick(0), house.id("q"), &name("p"), 1);
        let fault = down(forged.expect_err("not the id of `p`"));
        assert_eq!(fault.kind, FaultKind::Invalid);
        assert!(fault.message.contains("`p`"), "{fault}");
        assert_eq!(house.entrance.producer_count(), 0);
        assert_eq!(house.told(0, "p", 1), None, "what was turned down takes nothing of the rate");
        assert!(house.entrance.lives(Tick(0), house.id("p")));
        assert!(!house.entrance.lives(Tick(0), house.id("q")));
    }

    #[test]
    fn at_the_rate_the_wait_is_named_and_after_it_the_next_passes() {
        let house = House::new(&[(Limit::MaxPublishRate, 10)]);
        assert_eq!(house.told(5, "p", 10), None, "a second's worth at once");
        assert_eq!(house.told(6, "p", 1), None);
        let fault = house.told(6, "p", 1).expect("the rate is reached");
        assert_eq!(fault.kind, FaultKind::Exhausted);
        let told = "topic `/default/t` is at its max_publish_rate of 10 messages per second; retry \
                    after 100 ms";
        assert_eq!(fault.message, told);
        assert!(house.told(105, "q", 1).is_some(), "the rate is the topic's, and 1 ms is missing");
        assert_eq!(house.told(106, "q", 1), None);
    }

    #[test]
    fn limits_that_change_hold_at_once() {
        let house = House::new(&[]);
        assert_eq!(house.told(0, "p", 1_000_000), None, "no limit");
        assert_eq!(house.told(0, "q", 1), None);
        house.change(&[(Limit::MaxPublishRate, 2), (Limit::MaxProducersPerTopic, 2)]);
        assert_eq!(house.told(0, "p", 2), None, "a limit that is new begins with a second's worth");
        let fault = house.told(0, "p", 1).expect("the rate is reached");
        assert!(fault.message.contains("max_publish_rate of 2 messages"), "{fault}");
        let fault = house.told(2_000, "r", 1).expect("a third producer");
        assert_eq!(fault.kind, FaultKind::Exhausted);
        assert!(fault.message.contains("max_producers_per_topic"), "{fault}");
        let (attached, count) = house.entrance.attach(Tick(2_000), name("r"), AccessMode::Shared);
        assert!(attached.is_err());
        assert_eq!(count, 2, "those who are here stay");
        house.change(&[(Limit::MaxProducersPerTopic, 3)]);
        assert_eq!(house.told(2_000, "r", 1_000_000), None);
        assert_eq!(house.told(2_000, "r", 1), None, "neither limit is left");
    }
}
