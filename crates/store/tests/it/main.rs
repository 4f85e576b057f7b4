//! The store seen from outside: its promises, held against a disk that breaks.

mod corpus;
mod full_disk;
mod power_loss;
mod sim;
