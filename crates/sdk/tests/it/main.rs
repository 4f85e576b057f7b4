//! The client against scripted brokers: each test is the broker, step by step.
//!
//! What a real broker does with the protocol is proved elsewhere; here is what a client does with
//! brokers of every kind: slow, silent, refusing, dying, and moving.

mod consume;
mod publish;
mod resend;
mod server;
mod settle;
