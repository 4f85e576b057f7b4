//! Any bytes as step; see `danube_store::fuzzing::step`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_store::fuzzing::step(bytes));
