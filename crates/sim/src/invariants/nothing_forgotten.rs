//! Nothing unfinished is forgotten: a message is finished once, and for a reason: an ack, a durable
//! copy, a policy that drops, a key that nobody wants, a hole in the log.

use crate::{Ledger, Sight};
use danube_core::subscription::{Effect, Step};

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Effect(Effect::Record(Step::Finished { first, end })) = sight else {
        return Ok(());
    };
    for offset in first.0..end.0 {
        if !ledger.unfinished.contains(&offset) {
            return Err(format!("offset {offset} is finished twice"));
        }
        if !ledger.reasons.contains(&offset) {
            return Err(format!("offset {offset} is finished without a reason"));
        }
    }
    Ok(())
}
