//! Nobody is blamed for what nobody saw: a message that merely lay in a client's buffer has not
//! failed, whatever became of the client.

use crate::{Ledger, Sight};
use danube_core::subscription::{Effect, Step};

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    match sight {
        Sight::Effect(Effect::Record(Step::Failed { offset, reason, .. }))
            if ledger.unseen.contains(&offset.0) =>
        {
            Err(format!("offset {offset} failed ({reason}) in the buffer of a client"))
        }
        _ => Ok(()),
    }
}
