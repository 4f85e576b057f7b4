//! The published official Rust client, and its generated stubs, against a broker of ours.
//!
//! `broker` starts the binary that `DANUBE_BIN` names; `clients` shortens what every test does;
//! the other files hold one theme each, and `checklist` holds what clients rely on without any
//! document saying so. Law: each test has a broker of its own, and waits for events, not for time.

mod active_consumer;
mod basic;
mod broker;
mod cases;
mod checklist;
mod clients;
mod key_shared;
mod partitions;
mod poison;
mod reconnect;
mod reliable;
mod restart;
mod schemas;
mod wire;
