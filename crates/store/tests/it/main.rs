//! The store seen from outside: its promises, held against a disk that breaks.

mod corpus;
mod failed_sync;
mod full_disk;
mod power_loss;
mod sim;
