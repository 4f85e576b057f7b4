//! Any bytes as a definition; see `danube_schema::fuzzing::definition`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| danube_schema::fuzzing::definition(bytes));
