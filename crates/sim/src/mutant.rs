//! Planted faults: each changes what passes between the world and the engine, as a defect of the
//! engine would. They prove that the harness sees such defects.
//!
//! Law: a mutant never tells the ledger; it lies to the engine, or in the engine's name.

use crate::chance::Chance;
use danube_core::Offset;
use danube_core::subscription::{Effect, Event, Step};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Some acks are answered and never taken.
    LosesAcks,
    /// Some deliveries are made twice.
    RepeatsDeliveries,
    /// Two deliveries of one step change places.
    SwapsDeliveries,
    /// Some finishes take in the message behind.
    FinishesMore,
    /// Some records are not made.
    LosesRecords,
    /// Some attempts are one too high.
    CountsTwice,
    /// A smaller window is not heard of.
    IgnoresWindow,
    /// Whoever speaks is heard.
    HearsTheLost,
    /// Some fetches are never made.
    ForgetsFetches,
    /// Some timers do not ring.
    ForgetsTimers,
    /// Bodies stay.
    KeepsBodies,
    /// What a client has taken counts as seen.
    BlamesTheUnseen,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 12] = [
        Mutant::LosesAcks,
        Mutant::RepeatsDeliveries,
        Mutant::SwapsDeliveries,
        Mutant::FinishesMore,
        Mutant::LosesRecords,
        Mutant::CountsTwice,
        Mutant::IgnoresWindow,
        Mutant::HearsTheLost,
        Mutant::ForgetsFetches,
        Mutant::ForgetsTimers,
        Mutant::KeepsBodies,
        Mutant::BlamesTheUnseen,
    ];

    /// What the engine is told instead; `None` for nothing.
    pub(crate) fn event(self, event: Event, chance: &mut Chance) -> Option<Event> {
        match (self, event) {
            (Mutant::LosesAcks, Event::Acked { .. }) if chance.one_in(4) => None,
            (Mutant::IgnoresWindow, Event::WindowChanged(_)) => None,
            (Mutant::BlamesTheUnseen, Event::ReadsAhead { .. }) => None,
            (Mutant::ForgetsTimers, Event::Deadline) => None,
            (Mutant::HearsTheLost, Event::Acked { offset, .. }) => {
                Some(Event::Acked { offset, attempt: None })
            }
            (_, event) => Some(event),
        }
    }

    /// What the engine seems to want instead.
    pub(crate) fn effects(self, effects: &mut Vec<Effect>, chance: &mut Chance) {
        match self {
            Mutant::RepeatsDeliveries => {
                let again = effects.iter().rfind(|e| matches!(e, Effect::Deliver { .. })).cloned();
                if chance.one_in(8) {
                    effects.extend(again);
                }
            }
            Mutant::SwapsDeliveries => swap(effects),
            Mutant::FinishesMore => {
                for effect in effects {
                    if let Effect::Record(Step::Finished { end, .. }) = effect
                        && chance.one_in(8)
                    {
                        *end = Offset(end.0 + 1);
                    }
                }
            }
            Mutant::LosesRecords => {
                effects.retain(|e| !matches!(e, Effect::Record(_)) || !chance.one_in(8));
            }
            Mutant::CountsTwice => {
                for effect in effects {
                    if let Effect::Deliver { attempt, .. } = effect
                        && chance.one_in(8)
                    {
                        *attempt += 1;
                    }
                }
            }
            Mutant::ForgetsFetches => {
                effects.retain(|e| !matches!(e, Effect::Fetch { .. }) || !chance.one_in(4));
            }
            Mutant::KeepsBodies => effects.retain(|e| !matches!(e, Effect::Release { .. })),
            Mutant::LosesAcks
            | Mutant::IgnoresWindow
            | Mutant::HearsTheLost
            | Mutant::ForgetsTimers
            | Mutant::BlamesTheUnseen => {}
        }
    }
}

fn swap(effects: &mut [Effect]) {
    let mut places = (0..effects.len()).filter(|n| matches!(effects[*n], Effect::Deliver { .. }));
    if let (Some(first), Some(second)) = (places.next(), places.next()) {
        effects.swap(first, second);
    }
}
