//! Any bytes as a payload; see `danube_schema::fuzzing::payload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_schema::fuzzing::payload(bytes));
