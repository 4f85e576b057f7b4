//! Order: in KeyShared a message goes only when everything before it of its key is finished; in
//! the others first deliveries are in offset order, and nothing passes a block.

use crate::{Ledger, Sight};
use danube_core::SubscriptionType;
use danube_core::subscription::Effect;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Effect(Effect::Deliver { offset, attempt, .. }) = sight else { return Ok(()) };
    if ledger.kind == SubscriptionType::KeyShared {
        let Some(Some(key)) = ledger.log.get(offset.0 as usize) else {
            return Err(format!("offset {offset} is not in the log"));
        };
        let first = ledger.by_key.get(key).and_then(|open| open.first());
        if first != Some(&offset.0) {
            return Err(format!("offset {offset} overtakes {first:?} of key {key}"));
        }
        return Ok(());
    }
    let blocked = ledger.progress.failures().find(|(_, attempts)| attempts.blocked);
    if let Some((blocked, _)) = blocked
        && blocked < *offset
    {
        return Err(format!("offset {offset} passes {blocked}, which blocks"));
    }
    let is_first = *attempt == 1 && !ledger.seen.contains(&offset.0);
    if is_first && ledger.newest.is_some_and(|newest| newest > offset.0) {
        return Err(format!("offset {offset} goes out after {:?}", ledger.newest));
    }
    Ok(())
}
