//! Any bytes as open; see `danube_store::fuzzing::open`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_store::fuzzing::open(bytes));
