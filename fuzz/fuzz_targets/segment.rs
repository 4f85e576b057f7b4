//! Any bytes as segment; see `danube_store::fuzzing::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_store::fuzzing::segment(bytes));
