//! What must hold, whatever happens: one law per file, under one closed list.
//!
//! Each looks at a [`Sight`] with the [`Ledger`] as it was before, and says what is wrong.
//!
//! Law: an invariant that no planted fault breaks is decoration; see the harness's own tests.

mod acked_is_over;
mod attempts_rise_by_one;
mod bodies_are_there;
mod cursor_never_skips;
mod key_order;
mod liveness;
mod lost_is_lost;
mod nothing_forgotten;
mod one_holder;
mod unseen_is_blameless;
mod window;

use crate::{Ledger, Sight};

/// An invariant: its name, and what judges a sight.
pub type Invariant = (&'static str, fn(&Ledger, &Sight<'_>) -> Result<(), String>);

/// All of them.
pub const ALL: &[Invariant] = &[
    ("nothing acknowledged is delivered again", acked_is_over::check),
    ("nothing unfinished is forgotten", nothing_forgotten::check),
    ("per-key order", key_order::check),
    ("one holder per message", one_holder::check),
    ("the cursor never skips", cursor_never_skips::check),
    ("attempts rise by one", attempts_rise_by_one::check),
    ("the window is never exceeded", window::check),
    ("what was lost stays lost", lost_is_lost::check),
    ("nobody is blamed for what nobody saw", unseen_is_blameless::check),
    ("what is delivered has a body", bodies_are_there::check),
    ("liveness", liveness::check),
];
