//! One holder per message; and in Exclusive and Failover, one consumer for all of them.

use crate::{Ledger, Sight};
use danube_core::SubscriptionType;
use danube_core::subscription::Effect;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Effect(Effect::Deliver { consumer, offset, .. }) = sight else { return Ok(()) };
    if let Some(holding) = ledger.out.get(&offset.0) {
        return Err(format!("offset {offset} is out already: {holding:?}"));
    }
    let is_single = matches!(ledger.kind, SubscriptionType::Exclusive | SubscriptionType::Failover);
    match ledger.out.values().find(|holding| holding.consumer != *consumer) {
        Some(other) if is_single => Err(format!("{consumer} and {} are active", other.consumer)),
        _ => Ok(()),
    }
}
