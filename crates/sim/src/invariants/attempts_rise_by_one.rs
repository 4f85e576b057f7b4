//! Attempts rise by one: a delivery's number is one more than the deliveries on record, and what is
//! recorded is the number that was delivered.

use crate::{Ledger, Sight};
use danube_core::subscription::{Effect, Step};

/// See the module.
pub fn check(ledger: &Ledger, sight: &Sight<'_>) -> Result<(), String> {
    let recorded = |offset| ledger.progress.attempts(offset).map_or(0, |attempts| attempts.count);
    match sight {
        Sight::Effect(Effect::Deliver { offset, attempt, .. })
            if *attempt != recorded(*offset) + 1 =>
        {
            Err(format!("offset {offset}: attempt {attempt} after {}", recorded(*offset)))
        }
        Sight::Effect(Effect::Record(Step::Failed { offset, attempt, .. })) => {
            let before = recorded(*offset);
            if before != *attempt && before + 1 != *attempt {
                return Err(format!("offset {offset}: failure {attempt} after {before}"));
            }
            Ok(())
        }
        Sight::Effect(Effect::DeadLetter { offset, attempt, .. })
            if *attempt != recorded(*offset) =>
        {
            Err(format!("offset {offset}: copied at {attempt}, recorded {}", recorded(*offset)))
        }
        _ => Ok(()),
    }
}
