//! Cases that people reported of other brokers, as far as the official clients cannot express them;
//! the table of all of them is in `interop/rust/tests/it/cases/mod.rs`.

mod dead_letter_crash;
mod failing_copy;
mod late_acks;
