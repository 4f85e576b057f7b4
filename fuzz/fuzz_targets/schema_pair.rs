//! Any bytes as two versions; see `danube_schema::fuzzing::pair`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_schema::fuzzing::pair(bytes));
