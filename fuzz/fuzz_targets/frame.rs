//! Any bytes as frame; see `danube_store::fuzzing::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_store::fuzzing::frame(bytes));
