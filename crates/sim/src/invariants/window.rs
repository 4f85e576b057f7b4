//! No more is out than the window allows, at the moment something goes out.

use crate::{Ledger, Sight};
use danube_core::subscription::Effect;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Effect(Effect::Deliver { .. }) = sight else { return Ok(()) };
    let window_max = ledger.window_max.max(1) as usize;
    match ledger.out.len() >= window_max {
        true => Err(format!("{} are out, and {window_max} are allowed", ledger.out.len())),
        false => Ok(()),
    }
}
