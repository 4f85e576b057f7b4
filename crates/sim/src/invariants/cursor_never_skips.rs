//! The cursor is where the records say, at the first unfinished message; and what the engine says
//! of its progress is what a restart would find.

use crate::{Ledger, Sight};
use danube_core::Offset;

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let Sight::Stepped { engine, .. } = sight else { return Ok(()) };
    let cursor = engine.progress().cursor();
    if let Some(first) = ledger.unfinished.first()
        && cursor > Offset(*first)
    {
        return Err(format!("the cursor is at {cursor}, and {first} is not finished"));
    }
    if engine.progress() != &ledger.progress {
        return Err(format!(
            "the engine says {:?}, its records {:?}",
            engine.progress(),
            ledger.progress
        ));
    }
    Ok(())
}
