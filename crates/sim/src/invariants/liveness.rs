//! It never stands still without a reason that somebody else has to remove, and once all faults
//! have ended, everything gets finished.

use crate::{Ledger, Sight};
use danube_core::subscription::Why;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    match sight {
        Sight::Stepped { engine, now, .. } => match (engine.stall(*now), engine.why(*now)) {
            (Some(Why::Stalled), why) | (_, why @ Why::Stalled) => Err(format!("stalls: {why:?}")),
            _ => Ok(()),
        },
        Sight::Healed { engine, .. } if !ledger.unfinished.is_empty() => {
            let why = engine.why(danube_core::Tick(u64::MAX));
            Err(format!("{:?} are not finished: {why}", ledger.unfinished))
        }
        _ => Ok(()),
    }
}
