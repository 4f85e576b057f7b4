//! Nothing acknowledged is delivered again, except by a seek. A crash may bring back what was
//! acknowledged only if the record of it was lost.

use crate::{Ledger, Sight};
use danube_core::subscription::Effect;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    match sight {
        Sight::Effect(Effect::Deliver { offset, .. } | Effect::DeadLetter { offset, .. })
            if ledger.acked.contains_key(&offset.0) =>
        {
            Err(format!("offset {offset} was acknowledged"))
        }
        _ => Ok(()),
    }
}
