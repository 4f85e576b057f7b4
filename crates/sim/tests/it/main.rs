//! The subscription engine under random histories, the harness under planted faults, and the
//! engine's weight.
//!
//! Law: a failing seed is printed and plays again; see `examples/subscriptions.rs`.

mod mutants;
mod seeds;
mod weight;

#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
