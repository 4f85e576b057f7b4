//! Time: what happens to a message whose timer is due.
//!
//! Law: timers are ticks of the monotonic clock; late deadlines do more at once, never something
//! else.

use super::slot::State;
use super::{Effect, Note, Subscription};
use crate::ids::{Offset, Tick};

/// Recorded reason of a delivery that nobody settled in time.
const ACK_TIMEOUT: &str = "ack timeout";

impl Subscription {
    pub(super) fn on_deadline(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.reader.wake(now);
        self.read_again(now, out);
        for offset in self.slots.due(now) {
            self.on_due(now, offset, out);
        }
    }

    fn on_due(&mut self, now: Tick, offset: Offset, out: &mut Vec<Effect>) {
        let Some(id) = self.slots.find(offset) else { return };
        match self.slots.get(id).state() {
            State::InFlight { stream, .. } => {
                out.push(Effect::Note(Note::AckTimeout(offset)));
                let delay_ms = self.redelivery_delay_ms(id, None);
                self.fail(now, id, ACK_TIMEOUT.to_owned(), delay_ms, out);
                self.relieve(stream);
            }
            State::Waiting { .. } => self.put(id, State::Ready),
            State::DeadLettering { .. } => self.dead_letter(id, out),
            State::Ready | State::Queued { .. } | State::Blocked { .. } => {}
        }
    }
}
