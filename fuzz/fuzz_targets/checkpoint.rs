//! Any bytes as checkpoint; see `danube_store::fuzzing::checkpoint`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_store::fuzzing::checkpoint(bytes));
