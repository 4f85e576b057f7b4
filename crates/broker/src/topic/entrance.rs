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
