//! Who says which delivery it speaks of is heard exactly while it holds that one; otherwise it is
//! told so, and nothing changes.

use crate::{Ledger, Sight};
use danube_core::subscription::{Answer, Effect, Event};

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Stepped { event, answer, effects, .. } = sight else { return Ok(()) };
    let Some(holds) = ledger.claim_holds else { return Ok(()) };
    let is_stale = *answer == Answer::Stale;
    // An extension may come after the time is up and before the timer.
    let may_be_late = matches!(event, Event::Extended { .. });
    if holds && is_stale && !may_be_late {
        return Err(format!("{event:?} comes from the holder and is refused"));
    }
    if !holds && !is_stale {
        return Err(format!("{event:?} does not come from the holder and is heard"));
    }
    let changes = |effect: &&Effect| matches!(effect, Effect::Record(_) | Effect::Deliver { .. });
    match effects.iter().find(changes) {
        Some(effect) if is_stale => Err(format!("{event:?} is stale and leads to {effect:?}")),
        _ => Ok(()),
    }
}
