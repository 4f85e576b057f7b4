//! The console: what a broker does, for people who look before they type. Pages made on the
//! server, embedded in the binary; readable without JavaScript, alive with a little of it.
//!
//! Everything it shows and does is an operation of [`danube_ops`], asked at the broker's admin port
//! like from anywhere else. What it leaves to others: every decision (the broker), where it is
//! served (the broker's HTTP address), whether it may act (the configuration).
//!
//! Law: nothing is computed while nobody looks, what comes from a message or a name stays text, and
//! nothing is changed but by a form of ours that somebody sent.

mod access;
mod act;
mod admin;
mod assets;
mod form;
mod history;
mod layout;
mod links;
mod live;
mod model;
mod outcome;
mod pages;
mod payload;
mod problem;
mod request;
mod server;
mod spark;
#[cfg(test)]
mod tests;
mod words;

pub use access::Access;
pub use server::{Console, Options};
