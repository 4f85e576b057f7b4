//! In the end the driver keeps no body. (That what is delivered or copied has one, the world sees
//! for itself: it cannot do what it is told.)

use crate::{Ledger, Sight};

/// See the module.
pub fn check(_: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    match sight {
        Sight::Healed { bodies, .. } if *bodies > 0 => Err(format!("{bodies} bodies are left")),
        _ => Ok(()),
    }
}
